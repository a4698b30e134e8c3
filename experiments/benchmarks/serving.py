"""Load on a server: mixed requests in parallel, against the same models in a loop.

    python experiments/benchmarks/serving.py --photos FOLDER --detector yolox.keras \
        --captioner saved_models/ngsan_coco.keras --minutes 10

Requests are captions of photos of three sizes and of 1 to 36 regions, questions about
photos if there is an --answerer, translations if there is a --translator with --text;
one in twenty is wrong, by a photo that is damaged or boxes in pixels. A process of its
own answers each of them once, in a loop, with `keras_caption.serving.Predictor`: what
the server says then has to be the same, and wrong requests have to be refused. The
server runs in another process; its memory is read once a second.

KServe's server is no peer here: it needs earlier versions of pandas and psutil, and a
later one of setuptools, than those that are installed.
"""

import asyncio
import io
import pathlib
import random
import socket
import subprocess
import sys
import time

import numpy as np

import keras_caption as kc
from experiments.benchmarks.common import in_a_process
from keras_caption.commands.command_line import Parser, count, start

SIZES = (256, 512, 1024)  # of the longer side of photos, in pixels
REGIONS = (1, 4, 12, 24, 36)
DISTINCT = 40  # requests of each kind
WRONG = 0.05
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
    options = parser.parse_args(arguments)
    models = {"captioner": options.captioner, "answerer": options.answerer}
    models["translator"] = options.translator
    models = {name: path for name, path in models.items() if path}
    requests = make_requests(options, models)
    expected, rate = in_a_process(in_a_loop, models, options.detector, requests)
    print(f"in a loop: {rate:.1f} requests/s of {len(requests)} without wrong ones")
    port = free_port()
    begin = time.perf_counter()
    command = [sys.executable, "-m", "keras_caption_cli", "serve", "--port", str(port)]
    command += ["--detector", options.detector]
    command += [f"{name}={path}" for name, path in models.items()]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stderr:  # the address, after warming up
                if "is served at" in line:
                    break
            else:
                raise kc.InputError("The server does not start.")
            print(f"start-up: {time.perf_counter() - begin:.1f} s")
            reader = asyncio.run(
                load(f"http://127.0.0.1:{port}", server, requests, expected, options)
            )
            summarize(*reader)
        finally:
            server.terminate()
            server.stderr.read()


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
    from keras_caption.serving.server import load_predictor

    predictors = {name: load_predictor(path, detector) for name, path in models.items()}
    begin = time.perf_counter()
    texts = [predictors[name]([record])[0].text for name, record in requests]
    return texts, len(requests) / (time.perf_counter() - begin)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def load(url, server, requests, expected, options):
    """Sends requests until the time is over.

    Returns:
        Seconds of each that was answered, numbers of wrong answers and refusals, how
        long it all took, and the server's memory in MB by seconds.
    """
    end = time.perf_counter() + 60 * options.minutes
    seconds, memory, counts = [], [], {"wrong": 0, "refused": 0, "failed": 0}
    drain = asyncio.create_task(asyncio.to_thread(server.stderr.read))

    async def work(client):
        while time.perf_counter() < end:
            is_wrong = random.random() < WRONG
            place = random.randrange(len(requests))
            name, record = wrong_request(requests) if is_wrong else requests[place]
            begin = time.perf_counter()
            try:
                [text] = await client.texts(name, [record])
            except kc.serving.ServerError as error:
                is_right = is_wrong and error.status == 400
                counts["refused" if is_right else "failed"] += 1
                continue
            seconds.append(time.perf_counter() - begin)
            counts["wrong"] += is_wrong or text != expected[place]

    async def watch():
        while time.perf_counter() < end:
            memory.append(resident(server.pid))
            await asyncio.sleep(1)

    begin = time.perf_counter()
    async with kc.serving.AsyncClient(url, timeout=120) as client:
        workers = [work(client) for _ in range(options.parallel)]
        await asyncio.gather(watch(), *workers)
    took = time.perf_counter() - begin
    server.terminate()
    await drain
    return seconds, counts, took, memory


def resident(pid):
    """Memory of a process, in MB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise kc.InputError(f"The process {pid} has no memory.")


def summarize(seconds, counts, took, memory):
    p50, p95, p99 = 1000 * np.percentile(seconds, [50, 95, 99])
    rate = len(seconds) / took
    print(f"served: {rate:.1f} requests/s, {len(seconds):,} in {took:.0f} s")
    print(f"latency: p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms")
    print(f"answers that differ from the loop's: {counts['wrong']}")
    print(f"wrong requests refused: {counts['refused']}; failures: {counts['failed']}")
    tenth = max(len(memory) // 10, 1)
    first, last = np.median(memory[tenth : 2 * tenth]), np.median(memory[-tenth:])
    print(f"memory: {first:.0f} MB after a tenth of the time, {last:.0f} MB at its end")


if __name__ == "__main__":
    start(main)
