"""Load on a server: mixed requests in parallel, against the same models in a loop.

    python experiments/benchmarks/serving.py --photos FOLDER --detector yolox.keras \
        --captioner saved_models/ngsan_coco.keras --minutes 10

Requests are captions of photos of three sizes and of 1 to 36 regions, questions about
photos if there is an --answerer, translations if there is a --translator with --text;
one in twenty is wrong, by a photo that is damaged or boxes in pixels. A process of its
own answers each of them once, in a loop, with `keras_caption.serving.Predictor`: what
the server says then has to be the same, and wrong requests have to be refused. The
server runs in another process; its memory is read once a second. With --minutes 0, only
its start-up is measured.

KServe's server of the same predictors is measured next to it. It needs earlier versions
of pandas and psutil than this environment has, and thus an environment of its own with
KServe and this package, whose Python is `--peer_python`:

    python3.11 -m venv kserve && kserve/bin/pip install '.[photos,server]' kserve
"""

import asyncio
import base64
import io
import os
import pathlib
import random
import socket
import subprocess
import sys
import time

import httpx
import numpy as np

import keras_caption as kc
from experiments.benchmarks.common import in_a_process, resident_memory
from keras_caption.commands.command_line import Parser, count, start

SIZES = (256, 512, 1024)  # of the longer side of photos, in pixels
REGIONS = (1, 4, 12, 24, 36)
DISTINCT = 40  # requests of each kind
WRONG = 0.05
PARTS = 5  # equal parts of the time; memory is printed for each
PEER = pathlib.Path(__file__).with_name("kserve_peer.py")
QUESTIONS = ("What is in the photo?", "How many dogs are there?", "Is it outdoors?")
CATEGORIES = 80


def main(arguments):
    parser = Parser("experiments/benchmarks/serving.py", __doc__)
    parser.add_argument("--photos", required=True, help="folder of photos")
    parser.add_argument("--captioner", default="saved_models/ngsan_coco.keras")
    parser.add_argument("--answerer", help="model that answers questions")
    parser.add_argument("--translator", help="model that translates")
    parser.add_argument("--text", help="text file of sentences for it")
    parser.add_argument("--detector", required=True)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--parallel", type=count, default=16, help="requests at once")
    parser.add_argument("--peer_python", help="Python with KServe and this package")
    options = parser.parse_args(arguments)
    models = {"captioner": options.captioner, "answerer": options.answerer}
    models["translator"] = options.translator
    models = {name: path for name, path in models.items() if path}
    requests = make_requests(options, models)
    expected = None
    if options.minutes:
        expected, rate = in_a_process(in_a_loop, models, options.detector, requests)
        print(f"in a loop: {rate:.1f} requests/s of {len(requests)} without wrong ones")
    port = str(free_port())
    pairs = [f"{name}={path}" for name, path in models.items()]
    command = [sys.executable, "-m", "keras_caption_cli", "serve", "--port", port]
    command += ["--detector", options.detector, *pairs]
    measure("keras-caption serve", command, port, ask, (requests, expected, options))
    if options.peer_python:
        port = str(free_port())
        command = [options.peer_python, PEER, port, options.detector, *pairs]
        measure("KServe", command, port, ask_kserve, (requests, expected, options))


def measure(name, command, port, ask, work):
    """Starts a server, and prints how it answers."""
    url, begin = f"http://127.0.0.1:{port}", time.perf_counter()
    models = {model for model, _ in work[0]}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as server:
        try:
            while not all(is_ready(url, model) for model in models):
                if server.poll() is not None:
                    raise kc.InputError(f"{name} does not start.")
                time.sleep(0.5)
            print(
                f"{name}, start-up: {time.perf_counter() - begin:.1f} s, "
                f"{cpu_seconds(server.pid):.1f} s of CPU, "
                f"{resident_memory(server.pid):.0f} MB"
            )
            if work[-1].minutes:
                summarize(*asyncio.run(load(url, server.pid, ask, *work)))
        finally:
            server.terminate()


def is_ready(url, model):
    """Whether a model is loaded."""
    try:
        return httpx.get(f"{url}/v1/models/{model}", timeout=60).is_success
    except httpx.TransportError:
        return False


async def ask(client, url, name, record):
    """What our server says of a record, or `None` if it refuses it."""
    body = {"records": [in_json(record)]}
    answer = await post(client, f"{url}/v1/models/{name}:answer", body)
    return answer and answer["text"]


async def ask_kserve(client, url, name, record):
    """What KServe's server says of a record, or `None` if it refuses it."""
    body = {"instances": [in_json(record)]}
    return await post(client, f"{url}/v1/models/{name}:predict", body)


async def post(client, address, body):
    answer = await client.post(address, json=body)
    if answer.status_code == 400:
        return None
    return answer.raise_for_status().json()["predictions"][0]


def in_json(record):
    if "photo" not in record:
        return record
    return {**record, "photo": {"b64": base64.b64encode(record["photo"]).decode()}}


def make_requests(options, models):
    """Pairs of a model's name and a record: some of each kind."""
    rng = np.random.default_rng(0)
    requests = []
    paths = kc.features.find_photos(options.photos)[: DISTINCT // len(SIZES) + 1]
    photos = [resized(path, size) for path in paths for size in SIZES][:DISTINCT]
    requests += [("captioner", {"photo": photo}) for photo in photos]
    for i in range(DISTINCT):
        n = REGIONS[i % len(REGIONS)]
        regions = np.eye(CATEGORIES)[rng.integers(0, CATEGORIES, n)].tolist()
        corners = np.sort(rng.random((n, 2, 2)), axis=1).reshape(n, 4)
        record = {"regions": regions, "boxes": corners.round(4).tolist()}
        requests.append(("captioner", record))
    if "answerer" in models:
        requests += [
            ("answerer", {"photo": photo, "question": QUESTIONS[i % len(QUESTIONS)]})
            for i, photo in enumerate(photos)
        ]
    if "translator" in models:
        lines = pathlib.Path(options.text).read_text(encoding="utf-8").splitlines()
        requests += [("translator", {"source": line}) for line in lines[:DISTINCT]]
    return requests


def resized(path, size):
    """A photo as a JPEG file whose longer side has so many pixels."""
    from PIL import Image

    with Image.open(path) as image:
        scale = size / max(image.size)
        image = image.convert("RGB").resize([round(scale * x) for x in image.size])
    content = io.BytesIO()
    image.save(content, "jpeg")
    return content.getvalue()


def wrong_request(requests):
    """One that has to be refused."""
    if random.random() < 0.5:
        photo = next(record["photo"] for _, record in requests if "photo" in record)
        return "captioner", {"photo": photo[: len(photo) // 2]}
    return "captioner", {"regions": [[0.0] * CATEGORIES], "boxes": [[3, 4, 90, 80]]}


def in_a_loop(models, detector, requests):
    """What the models say of each request, and requests a second."""
    from keras_caption.apps.serve.server import load_predictor

    predictors = {name: load_predictor(path, detector) for name, path in models.items()}
    begin = time.perf_counter()
    texts = [predictors[name]([record])[0].text for name, record in requests]
    return texts, len(requests) / (time.perf_counter() - begin)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def load(url, pid, ask, requests, expected, options):
    """Sends requests for so many minutes.

    Returns:
        Seconds of each that was answered, numbers of wrong answers and refusals, how
        long it all took, and the server's memory in MB by seconds.
    """
    end = time.perf_counter() + 60 * options.minutes
    seconds, memory, counts = [], [], {"wrong": 0, "refused": 0, "failed": 0}

    async def work(client):
        while time.perf_counter() < end:
            is_wrong = random.random() < WRONG
            place = random.randrange(len(requests))
            name, record = wrong_request(requests) if is_wrong else requests[place]
            begin = time.perf_counter()
            try:
                text = await ask(client, url, name, record)
            except httpx.HTTPError:
                counts["failed"] += 1
                continue
            if text is None:
                counts["refused" if is_wrong else "failed"] += 1
                continue
            seconds.append(time.perf_counter() - begin)
            counts["wrong"] += is_wrong or text != expected[place]

    async def watch():
        while time.perf_counter() < end:
            memory.append(resident_memory(pid))
            await asyncio.sleep(1)

    begin = time.perf_counter()
    async with httpx.AsyncClient(timeout=120) as client:
        workers = [work(client) for _ in range(options.parallel)]
        await asyncio.gather(watch(), *workers)
    return seconds, counts, time.perf_counter() - begin, memory


def cpu_seconds(pid):
    """CPU time of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def summarize(seconds, counts, took, memory):
    p50, p95, p99 = 1000 * np.percentile(seconds, [50, 95, 99])
    rate = len(seconds) / took
    print(f"served: {rate:.1f} requests/s, {len(seconds):,} in {took:.0f} s")
    print(f"latency: p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms")
    print(f"answers that differ from the loop's: {counts['wrong']}")
    print(f"wrong requests refused: {counts['refused']}; failures: {counts['failed']}")
    parts = [np.median(part) for part in np.array_split(memory, PARTS) if len(part)]
    print(f"memory by time: {', '.join(f'{x:,.0f}' for x in parts)} MB")


if __name__ == "__main__":
    start(main)
