"""Hard use of the server, which takes minutes: no part of the tests.

    python tests/stress/serving.py                  # all, about 25 minutes on two cores
    python tests/stress/serving.py terminate mixed  # some of them

terminate (3 min): SIGTERM, at random times under load; nothing accepted is lost.
senders (1 min): hundreds of slow senders keep nobody out.
chunks (1 min): endless bodies are refused, and memory stays.
swap (5 min): new versions under load take over, and no request fails.
mixed (15 min): 10,000 requests, right and wrong, to models of all kinds; none is 5xx.

Each prints its counts, and ends with an error if one is wrong. A detector is read from
KERAS_CAPTION_DATA, if it is set.
"""

import argparse
import base64
import collections
import contextlib
import gzip
import io
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PROJECT = pathlib.Path(__file__).parents[2]
FOLDERS = ("", "helpers", "serving")
sys.path[:0] = [str(PROJECT), *(str(PROJECT / "tests" / x) for x in FOLDERS)]

import httpx  # noqa: E402
import numpy as np  # noqa: E402

SCENES = PROJECT / "saved_models" / "ngsan_scenes.keras"
LOST = (httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError)


# === A server in a process of its own ===


@contextlib.contextmanager
def served(*arguments):
    """A process of `keras-caption serve`, and its address, once it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(PROJECT / "keras_caption_cli.py"), "serve"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*command, *map(str, arguments), f"--port={port}"],
            env=environment,
            stderr=log,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            until(lambda: is_ready(url, process), 300)
            yield process, url
        finally:
            process.kill()
            process.wait()


def is_ready(url, process):
    assert process.poll() is None, "The server has ended."
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.ConnectError:
        return False


def until(condition, seconds):
    """Waits until something holds; returns for how many seconds."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, f"It takes more than {seconds} s."
        time.sleep(0.1)
    return time.monotonic() - begin


def scene_record():
    import keras_caption as kc

    scene = kc.synthetic.scenes.make_example(np.random.default_rng(3))
    return {name: scene[name].tolist() for name in ("regions", "boxes")}


class Load:
    """Threads that ask one thing again and again.

    Attributes:
        counts: `collections.Counter` of statuses, and of names of errors.
        slowest: float, seconds.
    """

    def __init__(self, url, body, threads=8):
        self.counts = collections.Counter()
        self.slowest = 0.0
        self.ended = threading.Event()
        self.pool = ThreadPoolExecutor(threads)
        self.futures = [
            self.pool.submit(self.run, url, json.dumps(body)) for _ in range(threads)
        ]

    def run(self, url, content):
        with httpx.Client(timeout=120) as http:
            while not self.ended.is_set():
                begin = time.monotonic()
                try:
                    answer = http.post(url, content=content)
                    self.counts[answer.status_code] += 1
                except httpx.ConnectError:
                    self.counts["refused"] += 1
                    time.sleep(0.01)
                except LOST as error:
                    self.counts[type(error).__name__] += 1
                self.slowest = max(self.slowest, time.monotonic() - begin)

    def end(self):
        self.ended.set()
        self.pool.shutdown()


# === The scenarios ===


def terminate():
    total, rng = collections.Counter(), random.Random(0)
    body = {"records": [scene_record()]}
    for _ in range(8):
        with served(SCENES) as (process, url):
            load = Load(f"{url}/v1/models/ngsan_scenes:answer", body, 16)
            time.sleep(rng.uniform(1, 5))
            process.send_signal(signal.SIGTERM)
            begin = time.monotonic()
            status = process.wait(70)
            print(f"  ends with {status} after {time.monotonic() - begin:.1f} s")
            load.end()
            total += load.counts
            assert status == 0
    print(f"  8 times SIGTERM under load: {dict(total)}")
    # A connection that was not yet accepted is reset by the system: it may come again.
    assert {*total} <= {200, "refused", "ReadError", "RemoteProtocolError"}
    assert total[200] > 100


def senders(count=300):
    body = {"records": [scene_record()]}
    head = b"POST /v1/models/ngsan_scenes:answer HTTP/1.1\r\nHost: localhost\r\n"
    begun = head + b"Content-Length: 1000000\r\n\r\n"
    with served(SCENES, "--timeout=20") as (_, url):
        address = "127.0.0.1", int(url.rpartition(":")[2])
        slow = [socket.create_connection(address) for _ in range(count)]
        ended = threading.Event()

        def drip():
            for i, connection in enumerate(slow):
                connection.sendall((b"", head, begun)[i % 3])
            while not ended.wait(1):
                for i, connection in enumerate(slow):
                    with contextlib.suppress(OSError):
                        connection.sendall((b"P", b"x: y\r\n", b"{")[i % 3])

        with ThreadPoolExecutor(1) as thread:
            dripping = thread.submit(drip)
            load = Load(f"{url}/v1/models/ngsan_scenes:answer", body, 4)
            time.sleep(40)
            ended.set()
            load.end()
            dripping.result()
        ends = collections.Counter()
        for connection in slow:
            connection.settimeout(5)
            try:
                ends[connection.recv(12).decode() or "closed"] += 1
            except OSError as error:
                ends[type(error).__name__] += 1
        print(f"  {count} slow senders: {dict(ends)}")
        print(f"  others: {dict(load.counts)}, slowest {load.slowest:.2f} s")
        assert {*load.counts} == {200}
        assert "TimeoutError" not in ends


def chunks(count=30):
    with served(SCENES) as (process, url):
        before = memory_of(process)
        ends, most = collections.Counter(), []

        def endless(i):
            sent = 0

            def parts():
                nonlocal sent
                while True:
                    sent += 2**16
                    yield b" " * 2**16 if i % 2 else b'{"records": [' + b"[" * 2**16

            try:
                answer = httpx.post(
                    f"{url}/v1/models/ngsan_scenes:answer", content=parts(), timeout=60
                )
                ends[answer.status_code] += 1
            except httpx.TransportError as error:  # closed while it sends
                ends[type(error).__name__] += 1
            most.append(sent)

        grown = []
        for _ in range(2):
            with ThreadPoolExecutor(8) as threads:
                list(threads.map(endless, range(count)))
            grown.append(memory_of(process) - before)
        answer = httpx.get(f"{url}/v1/models/ngsan_scenes")
        print(
            f"  {2 * count} endless bodies: {dict(ends)}, at most {max(most):,} bytes"
        )
        print(
            f"  memory {before:,.0f} MB, then {', '.join(f'{x:+,.0f}' for x in grown)}"
        )
        assert answer.status_code == 200
        assert grown[1] < max(1.3 * grown[0], 500)


def memory_of(process):
    """Megabytes that a process has in memory."""
    text = pathlib.Path(f"/proc/{process.pid}/statm").read_text()
    return int(text.split()[1]) * resource.getpagesize() / 2**20


def swap():
    import keras_caption as kc

    with tempfile.TemporaryDirectory() as folder:
        versions = pathlib.Path(folder, "scenes")
        first, second = versions / "1", pathlib.Path(folder, "next")
        kc.serving.export(kc.models.load(SCENES), first)
        shutil.copytree(first, second)
        body = {"records": [scene_record()]}
        with served(versions, "--poll=0.5") as (_, url):
            address = f"{url}/v1/models/scenes"
            quiet = time_of_swap(versions, second, 2, address)
            load = Load(f"{address}:answer", body, 8)
            time.sleep(3)
            times = [time_of_swap(versions, second, n, address) for n in (3, 4, 5)]
            load.end()
        print(f"  a new version without load: {quiet:.1f} s")
        print(f"  under load: {', '.join(f'{x:.1f} s' for x in times)}")
        print(f"  meanwhile {dict(load.counts)}, slowest {load.slowest:.2f} s")
        assert {*load.counts} == {200}


def time_of_swap(versions, source, number, address):
    """Seconds until a new version answers."""
    shutil.copytree(source, versions / f"copy{number}")
    (versions / f"copy{number}").rename(versions / str(number))

    def has_swapped():
        states = httpx.get(address).json()["model_version_status"]
        return any(
            x["version"] == str(number) and x["state"] == "AVAILABLE" for x in states
        )

    return until(has_swapped, 120)


# === Models of all kinds ===


def models_of_all_kinds(folder):
    """Predictors by name, and what a right record of each is."""
    import keras
    from clip_files import write_clip
    from conftest import tiny
    from PIL import Image
    from yolox_file import photo, white_yolox

    import keras_caption as kc

    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    words = kc.text.Vocabulary(["a", "dog", "runs", "here"])
    sizes = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "feedforward_dim": 8}
    sentences = ["a dog runs", "a dog sleeps here", "two dogs run"] * 30
    tokenizers = {
        "words": kc.text.WordTokenizer.build(sentences, 1),
        "characters": kc.text.CharacterTokenizer.build(sentences),
        "subwords": kc.text.SubwordTokenizer.build(sentences, 280),
    }
    detector = kc.objects.Yolox(white_yolox(), image_size=64)
    categories = list(kc.objects.CATEGORIES)
    grids = kc.features.Extractor("MobileNet", image_size=32, arguments={"alpha": 0.25})
    clips = kc.features.ClipExtractor(grids, num_frames=4)
    objects = {"region_dim": 80, "num_layers": 1}
    models = {"scenes": kc.models.load(SCENES)}
    for name in ("aoanet", "updown", "ngsan"):
        models[name] = kc.models.create(name, vocabulary=words, **tiny(name))
    models["objects"] = kc.models.create(
        "ngsan",
        vocabulary=words,
        categories=categories,
        extractor=detector,
        **tiny("ngsan", **objects),
    )
    models["asked"] = kc.models.create(
        "mcan_gsa",
        answers=["yes", "no", "two"],
        question=kc.text.QuestionTokenizer(["is", "it", "a", "dog"]),
        extractor=detector,
        **tiny("mcan_gsa", pooling_dim=8, fusion_dim=12, **objects),
    )
    models["grids"] = kc.models.create(
        "spatial",
        vocabulary=words,
        extractor=grids,
        grid_height=1,
        grid_width=1,
        grid_dim=grids.grid_shape[-1],
        **sizes,
    )
    models["clips"] = kc.models.create(
        "video_nsa",
        vocabulary=words,
        extractor=clips,
        frame_dim=clips.frame_dim,
        **sizes,
    )
    for kind, tokenizer in tokenizers.items():
        models[f"translator_{kind}"] = kc.models.TransformerTranslator(
            tokenizer, tokenizer, **sizes
        )
    for model in models.values():
        if isinstance(model, kc.models.Seq2Seq):
            model.decoding = model.decoding.override(max_length=12)
    png = io.BytesIO()
    Image.fromarray(photo(64, 48, [(1, 1), (5, 3)])).save(png, "png")
    clip = folder / "clip.webm"
    write_clip(clip, 6)
    b64 = {
        "photo": {"b64": base64.b64encode(png.getvalue()).decode()},
        "clip": {"b64": base64.b64encode(clip.read_bytes()).decode()},
    }
    boxes = [[0.1, 0.1, 0.5, 0.5], [0.5, 0.5, 0.9, 0.9]]
    regions = rng.normal(size=(2, 6)).round(3).tolist()
    record = {"regions": regions, "boxes": boxes}
    records = {
        "scenes": scene_record(),
        **dict.fromkeys(("aoanet", "updown", "ngsan"), record),
        "objects": {"photo": b64["photo"]},
        "asked": {"photo": b64["photo"], "question": "is it a dog?"},
        "grids": {"photo": b64["photo"]},
        "clips": {"clip": b64["clip"]},
        **{f"translator_{kind}": {"source": "a dog runs"} for kind in tokenizers},
    }
    for name in ("aoanet", "updown"):  # which read no boxes
        records[name] = {"regions": regions}
    predictors = {name: kc.serving.Predictor(model) for name, model in models.items()}
    for name in ("scenes", "objects", "asked", "translator_words"):
        path = folder / "exports" / name / "1"
        kc.serving.export(models[name], path)
        predictors[f"{name}_export"] = kc.serving.ExportedPredictor(path)
        records[f"{name}_export"] = records[name]
    for predictor in predictors.values():
        predictor.warm_up()
    return predictors, records


WEIRD = (
    *(None, True, -1, 0, 1.5, 1e308, 10**400, "", "x", "\ud800", "a" * 2000),
    *([], [[]], [[1], [1, 2]], {}, {"b64": ""}, {"b64": "!"}, {"b64": "AAAA"}),
    *([float("nan")] * 3, [[float("inf")] * 6] * 2, [99999, -5], "data:,x"),
    *([[0.0] * 6] * 1025, [["a"]], "a dog " * 900),
)
OPTIONS = (
    {},
    *({"beam_size": 1}, {"beam_size": 2, "max_length": 5}, {"temperature": 1.0}),
    *({"required": ["dog"]}, {"forbidden": ["dog", "zyx"]}, {"prefix": "a dog"}),
    *({"required": ["a dog"], "forbidden": "dog"}, {"min_length": 12}),
    *({"required": ["dog dog"], "no_repeat_ngram": 1}, {"length_penalty": 1e38}),
    *({"self": 1}, {"beam_size": 10**9}, {"max_length": 10**9}, {"prefix": ["a"] * 3}),
    *({"forbidden": [1]}, {"seed": 1}, {"temperature": 1e9, "top_k": 1}),
    {"required": ["a", "dog"] * 50, "beam_size": 20, "max_length": 1024},
)
BODIES = (b"", b"{", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"[]", b"null", b"\0" * 99)


def mixed_request(rng, record):
    """A verb, the content of a request and its headers, wrong in some way or right."""
    record, headers = dict(record), {}
    if rng.random() < 0.4:
        body = {
            "records": [record] * rng.choice((1, 1, 2, 5)),
            "n": rng.choice((None, 2)),
        }
        return "answer", json.dumps(body).encode(), headers
    if rng.random() < 0.4:
        key = rng.choice([*record, "photo", "regions", "source", "question", "\ud800"])
        record[key] = rng.choice(WEIRD)
    if rng.random() < 0.1:
        record.pop(rng.choice([*record]))
    verb = rng.choice(("answer", "answer", "predict"))
    if verb == "answer":
        body = {"records": [record] * rng.choice((1, 1, 1, 3, 20))}
        body["options"] = rng.choice(OPTIONS if rng.random() < 0.4 else OPTIONS[:1])
        body["n"] = rng.choice((None, None, 1, 2, 5, 21, "2", 0, -1, 10**30))
        body["attention"] = rng.choice((None, None, False, True, 1))
        if rng.random() < 0.1:
            body["records"] = rng.choice(WEIRD)
    else:
        signatures = "serving_default", "features", "photos", "tokens", "logits", "none"
        body = {"signature_name": rng.choice(signatures)}
        row = {("image_bytes" if k == "photo" else k): x for k, x in record.items()}
        if rng.random() < 0.3:
            row["tokens"] = rng.choice(([1, 4], [1, 99999], [-1, 2], "x", [[1]]))
        body[rng.choice(("instances", "inputs"))] = rng.choice(
            ([row], row, [], [row] * 3)
        )
    content = json.dumps(body).encode()
    chance = rng.random()
    if chance < 0.05:
        content = rng.choice(BODIES)
    elif chance < 0.1:
        content = content[: rng.randrange(len(content))]
    elif chance < 0.15:
        headers["content-encoding"] = rng.choice(("gzip", "br", "deflate"))
        content = gzip.compress(content)
    elif chance < 0.17:
        headers["content-type"] = rng.choice(
            ("multipart/form-data", "application/json")
        )
    return verb, content, headers


def mixed(count=10_000):
    import keras_caption as kc

    rng, counts = random.Random(0), collections.Counter()
    failures, slowest = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        predictors, records = models_of_all_kinds(pathlib.Path(folder))
        server = kc.serving.Server(kc.serving.Limits(batch_delay=0.002))
        for name, predictor in predictors.items():
            server.service.add(name, str(SCENES), lambda path, p=predictor: p)
        names = sorted(predictors)
        requests = [
            (name, *mixed_request(rng, records[name]))
            for name in rng.choices(names, k=count)
        ]
        begin = time.monotonic()
        with server.serving() as url, httpx.Client(timeout=120) as http:

            def ask(request):
                nonlocal slowest
                name, verb, content, headers = request
                address = f"{url}/v1/models/{name}:{verb}"
                started = time.monotonic()
                try:
                    answer = http.post(address, content=content, headers=headers)
                except LOST:  # an idle connection that was closed meanwhile
                    counts["again"] += 1
                    answer = http.post(address, content=content, headers=headers)
                slowest = max(slowest, time.monotonic() - started)
                counts[answer.status_code] += 1
                said = answer.json()  # of every status
                if answer.status_code != 200 and not isinstance(said["error"], str):
                    failures.append((name, verb, content[:200], said))
                if answer.status_code >= 500:
                    failures.append((name, verb, content[:300], said))

            with ThreadPoolExecutor(8) as threads:
                for done, _ in enumerate(threads.map(ask, requests), 1):
                    if not done % 1000:
                        print(f"  {done:,}: {dict(counts)}", flush=True)
    print(f"  {count:,} requests to {len(names)} models: {dict(counts)}")
    print(f"  in {time.monotonic() - begin:.0f} s, the slowest {slowest:.1f} s")
    for failure in failures[:20]:
        print("  ", *failure)
    assert not failures
    assert counts[200] > count / 10
    assert counts["again"] < count / 1000 + 2


SCENARIOS = {x.__name__: x for x in (terminate, senders, chunks, swap, mixed)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*SCENARIOS, []], default=[])
    parser.add_argument("--requests", type=int, default=10_000, help="of mixed")
    options = parser.parse_args()
    for name in options.names or SCENARIOS:
        print(f"{name}:", flush=True)
        begin = time.monotonic()
        SCENARIOS[name](*[options.requests] * (name == "mixed"))
        print(f"  {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
