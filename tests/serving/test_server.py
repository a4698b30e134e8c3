"""The server over HTTP: TensorFlow Serving's contract, batches, versions, limits."""

import asyncio
import base64
import contextlib
import errno
import functools
import gzip
import http.server
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
import tensorflow as tf
from keras_caption.serving import Client, Limits, Prediction, Server, ServerError

import keras_caption as kc
from keras_caption.apps.serve import ollama
from keras_caption.apps.serve.batcher import Batcher
from keras_caption.apps.serve.chat_completions import CHAT_COMPLETIONS
from keras_caption.apps.serve.client import record_of
from keras_caption.apps.serve.records import array_of
from keras_caption.apps.serve.responses import RESPONSES
from keras_caption.apps.serve.rest import gunzip
from keras_caption.apps.serve.rest_values import to_array
from keras_caption.apps.serve.service import Service
from keras_caption.commands import main
from keras_caption.commands.serve import make_parser, read_config
from keras_caption.export.signature import Signature
from keras_caption.formats.deadline import check_time
from keras_caption.settings.decoding import check_options

NUMBERS = {"x": tf.TensorSpec((None, None), tf.float32, "x")}
FILES = {"image_bytes": tf.TensorSpec((None,), tf.string, "image_bytes")}


@tf.function(input_signature=[NUMBERS["x"]])
def total(x):
    return {"total": tf.reduce_sum(x, axis=1), "x_bytes": tf.as_string(x[:, 0])}


@tf.function(input_signature=[FILES["image_bytes"]])
def length(image_bytes):
    return {"length": tf.strings.length(image_bytes)}


class Fake:
    """A model that adds numbers up, and knows how long photos are."""

    reads = ("photo", "x")

    def __init__(self, path=""):
        if "bad" in path or pathlib.Path(path, "bad").exists():
            raise OSError("Bad weights\nin a file")
        self.path = path
        self.signatures = {
            "serving_default": Signature(NUMBERS, {}, total.get_concrete_function),
            "photos": Signature(FILES, {}, length.get_concrete_function),
        }
        self.batches = []

    def effort(self, records, n, options):
        return len(records) * (n or 1) * options.get("max_length", 1)

    def check_options(self, n, options):
        pass

    def read(self, record, place=0, max_pixels=0):
        if record.get("photo") == b"bad":
            raise kc.InputError(f"The photo of record {place} is no image.")
        return record

    def answer(self, examples, *, n=None, attention=False, **options):
        self.batches.append((len(examples), n, options))
        if any(x.get("x") == "boom" for x in examples):
            raise kc.InputError("`x` is wrong.")
        texts = [f"{self.path[-1:]}{x.get('x', '')}" for x in examples]
        return [Prediction(x, -1.0, 0.5, False, [(x, -1.0)]) for x in texts]


def serve(tmp_path, model=None, limits=None, **more):
    """A server of a fake model, `adder`."""
    (tmp_path / "adder.keras").touch()
    server = Server(limits, **more)
    load = (lambda path: model) if model else Fake
    server.service.add("adder", str(tmp_path / "adder.keras"), load, log=server.log)
    return server


@pytest.fixture
def url(tmp_path):
    with serve(tmp_path).serving() as url:
        yield f"{url}/v1/models/adder"


# === The contract ===


def test_rows_columns_and_single_inputs_are_answered(url):
    rows = {"instances": [{"x": [1, 2]}, {"x": [3.5]}]}
    answer = httpx.post(f"{url}:predict", json=rows).json()
    assert [x["total"] for x in answer["predictions"]] == [3.0, 3.5]
    assert base64.b64decode(answer["predictions"][0]["x_bytes"]["b64"]) == b"1.000000"
    bare = httpx.post(f"{url}:predict", json={"instances": [[1, 2], [3.5]]})
    assert bare.json() == answer
    long = b"\xff\xd8" + 101 * b"\xff\xda\0\x02"  # of too many scans: as if damaged
    photos = {"instances": [{"image_bytes": b64(x)} for x in (b"p", long)]}
    answer = httpx.post(f"{url}:predict", json={**photos, "signature_name": "photos"})
    assert answer.json() == {"predictions": [1, 0]}
    for inputs in {"x": [[1, 2], [3.5, 0]]}, [[1, 2], [3.5, 0]]:
        body = {"inputs": inputs, "signature_name": "serving_default"}
        answer = httpx.post(f"{url}/versions/1:predict", json=body).json()
        assert answer["outputs"]["total"] == [3.0, 3.5]
    files = {"instances": [{"image_bytes": b64(b"abc")}, {"image_bytes": "xy"}]}
    answer = httpx.post(f"{url}:predict", json=files)  # of another signature
    assert answer.json() == {"predictions": [3, 2]}
    answer = httpx.post(f"{url}:predict", content=b'{"instances": [[NaN]]}')
    assert np.isnan(json.loads(answer.content)["predictions"][0]["total"])


def b64(content):
    return {"b64": base64.b64encode(content).decode()}


def test_states_and_metadata_are_those_of_tensorflow_serving(url):
    state = {"version": "1", "state": "AVAILABLE"}
    state["status"] = {"error_code": "OK", "error_message": ""}
    assert httpx.get(url).json()["model_version_status"] == [state]
    version = httpx.get(f"{url}/versions/1").json()
    assert version == {"model_version_status": [state]}
    answer = httpx.get(f"{url}/metadata").json()
    assert answer["model_spec"] == {
        "name": "adder",
        "signature_name": "",
        "version": "1",
    }
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert signatures.keys() == {"serving_default", "photos"}
    x = signatures["serving_default"]["inputs"]["x"]
    assert x["dtype"] == "DT_FLOAT"
    assert [dim["size"] for dim in x["tensor_shape"]["dim"]] == ["-1", "-1"]
    assert signatures["serving_default"]["outputs"]["total"]["dtype"] == "DT_FLOAT"
    assert signatures["photos"]["outputs"]["length"]["dtype"] == "DT_INT32"


@pytest.mark.parametrize(
    ("address", "body", "status", "message"),
    [
        ("adder:predict", b"[1]", 400, "should be a JSON object"),
        ("adder:predict", b"{", 400, "The request is no JSON"),
        ("adder:predict", b"[" * 100_000, 400, "The request is no JSON"),
        ("adder:predict", {}, 400, "either `instances`, a list of examples, or"),
        ("adder:predict", {"instances": []}, 400, "list of at least one example"),
        ("adder:predict", {"instances": [{"y": 1}]}, 400, "There is no input 'y': the"),
        ("adder:predict", {"instances": [{}]}, 400, "The input 'x' is missing"),
        ("adder:predict", {"instances": [[1], {}]}, 400, "should have the same inputs"),
        ("adder:predict", {"instances": [["a"]]}, 400, "`x` of example 0 should be an"),
        ("adder:predict", {"instances": [[[1]]]}, 400, "`x` of example 0 should be an"),
        ("adder:predict", {"instances": [[0] * 1025]}, 400, "more than 1,024 items"),
        ("adder:predict", {"inputs": {"x": 1}}, 400, "list of at least one value"),
        (
            "adder:predict",
            {"inputs": [[1]], "signature_name": "z"},
            400,
            "no signature",
        ),
        (
            "adder:predict",
            {"inputs": ["a"], "signature_name": "serving_default"},
            400,
            "`x` of example 0 should be an array",
        ),
        (
            "adder:predict",
            {"instances": [{"image_bytes": {"b64": "!"}}]},
            400,
            "base64",
        ),
        ("adder:classify", {}, 400, "adder has no signature to classify"),
        ("adder:answer", {"records": {}}, 400, "list of at least one record"),
        ("adder:answer", {"records": [1], "options": 1}, 400, "should be an object"),
        ("adder:answer", {"records": [{"photo": "/etc/passwd"}]}, 400, "object of b64"),
        ("adder:answer", {"records": [{"x": "boom"}]}, 400, "`x` is wrong"),
        (
            "adder:answer",
            {"records": [{}], "n": 99},
            400,
            "`n` of a request is at most",
        ),
        ("adder:answer", b"bad", 400, "The photo of record 0 is no image"),
        ("adder:answer", {"records": [{}], "option": {}}, 400, "mean options?"),
        (
            "adder:answer?beam_size=5",
            b"photo",
            400,
            "no value 'beam_size'. Valid names",
        ),
        ("adder:answer?n=3", {"records": [{}]}, 400, "JSON has its own."),
        *(
            (
                "adder:answer",
                {"records": [{}], "options": {name: 1}},
                400,
                "no decoding",
            )
            for name in ("self", "examples", "n", "attention")
        ),
        (
            "adder:answer",
            {"records": [{}], "options": {"length_penalty": 1e38}},
            400,
            "`length_penalty`: Input should be less than or equal to 10",
        ),
        ("adder:answer", {"records": [{}], "n": "2"}, 400, "`n`: Input should be a"),
        (f"adder:answer?n={'9' * 5000}", b"photo", 400, "`n`: Input should be a"),
        (
            "adder:answer",
            {"records": [{}] * 50, "n": 20, "options": {"max_length": 51}},
            400,
            "51,000 steps, the product of records, beam width, tokens of a text and",
        ),
        ("adder:answer", b'\xef\xbb\xbf {"records": 1}', 400, "at least one record"),
        ("adder:answer", b'{"records": %s}' % (b"9" * 5000), 400, "too many digits"),
        ("adder:predict", b'{"instances": [{"\\ud800": 1}]}', 400, "input '\\ud800'"),
        ("adder:predict", b'{"inputs": {"\\ud800": 1}}', 400, "`\ud800` should be a"),
        (
            "adder/versions/2:predict",
            {},
            404,
            "not found for request: Specific(adder, 2",
        ),
        ("adder/labels/x:predict", {}, 404, "not found for request: Label(adder, x)"),
        ("none:predict", {}, 404, "Servable not found for request: Latest(none)"),
        ("adder", {}, 404, "Malformed request: POST /v1/models/adder"),
    ],
)
def test_a_wrong_request_has_a_status_and_one_sentence(
    url, address, body, status, message
):
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = httpx.post(f"{url.removesuffix('adder')}{address}", **sent)
    assert message in answer.json()["error"]
    assert answer.status_code == status


def test_wrong_addresses_are_not_found(url):
    for address in (
        f"{url}/versions/2",
        f"{url}/labels/x",
        f"{url}/versions/2/metadata",
    ):
        answer = httpx.get(address)
        assert answer.status_code == 404
        assert "error" in answer.json()
    other = httpx.get(url.replace("v1", "v2"))
    assert other.json()["error"].startswith("There is no /v2/models/adder here")
    root = url.removesuffix("/v1/models/adder")
    with httpx.Client() as http:
        counted = len(http.get(f"{root}/metrics").text)
        for i in range(50):  # which the metrics do not keep
            assert http.post(f"{url}:verb{i}", json={}).status_code == 400
            assert http.post(f"{root}/v1/models/none{i}:answer").status_code == 404
        assert len(http.get(f"{root}/metrics").text) < counted + 10_000
        for verb in "metadata", "status":  # which are asked for by GET
            assert http.post(f"{url}:{verb}", json={}).status_code == 400
    head = b"POST /v1/models/adder:answer HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(("127.0.0.1", int(root.rpartition(":")[2]))) as raw:
        raw.sendall(head + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n")
        assert raw.recv(100).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 "))


def test_bodies_of_other_kinds_are_read_or_refused(url):
    body = json.dumps({"records": [{"photo": b64(b"p")}]}).encode()
    packed = gzip.compress(body[:9]) + gzip.compress(body[9:])
    expected = httpx.post(f"{url}:answer", content=body).json()
    address = "data:image/png;base64,"
    uri = {"b64": address + base64.b64encode(b"p").decode()}
    for content, headers in (
        (packed, {"content-encoding": "gzip"}),
        (b"\xef\xbb\xbf\n" + body, {}),
        (body.decode().encode("utf-16"), {"content-type": "application/json"}),
        (body.decode().encode("utf-16-be"), {}),
        (json.dumps({"records": [{"photo": uri}]}), {}),
    ):
        answer = httpx.post(f"{url}:answer", content=content, headers=headers)
        assert answer.json() == expected
    for content, kind, status, message in (
        (packed, "br", 415, "A body encoded as br is not read: gzip is, and none"),
        (packed[:-4], "gzip", 400, "The gzip of the request is cut"),
        (body, "gzip", 400, "The request is said to be gzip, and is none"),
        (gzip.compress(b" " * 2**26), "gzip", 413, "at most 33,554,432 bytes"),
        (b"", "identity", 400, "has no body: it should be JSON, or a photo"),
        (b" [" + body + b"]", "identity", 400, "a JSON object, and is a list"),
        ("[]".encode("utf-16"), "identity", 400, "a JSON object, and is a list"),
    ):
        headers = {"content-encoding": kind}
        answer = httpx.post(f"{url}:answer", content=content, headers=headers)
        assert (answer.status_code, message in answer.text) == (status, True)
    answer = httpx.post(f"{url}:answer", files={"photo": b"p"})
    assert answer.status_code == 415
    assert "--data-binary @photo.jpg" in answer.json()["error"]


LONG = ["x" * 100_000, *["y"] * 1000]  # of which NumPy makes 400 MB
WRONG = [0] * 50_000
FORMS = {
    "deep": (CHAT_COMPLETIONS, b"[" * 900 + b"0," * 5000 + b"0" + b"]" * 900),
    "messages": (CHAT_COMPLETIONS, {"messages": WRONG}),
    "content": (CHAT_COMPLETIONS, {"messages": [{"role": "user", "content": WRONG}]}),
    "input": (RESPONSES, {"input": WRONG}),
    "input_content": (RESPONSES, {"input": [{"role": "user", "content": WRONG}]}),
    "chat": (ollama.CHAT, {"messages": WRONG}),
    "chat_images": (ollama.CHAT, {"messages": [{"role": "user", "images": WRONG}]}),
    "images": (ollama.GENERATE, {"images": WRONG}),
}
READS = {
    **{
        name: functools.partial(
            form.read, body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        for name, (form, body) in FORMS.items()
    },
    "forbidden": lambda: check_options({"forbidden": WRONG}),
    "prefix": lambda: check_options({"prefix": WRONG}),
    "record": lambda: array_of("regions", LONG, 0),
    "row": lambda: to_array("`x`", LONG, NUMBERS["x"]),
}


@pytest.mark.parametrize("read", READS.values(), ids=[*READS])
def test_a_wrong_body_takes_little_memory(read):
    tracemalloc.start()
    try:
        with pytest.raises(kc.InputError):
            read()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5e6  # megabytes, of bodies of at most 0.2


def test_gzip_of_many_members_takes_time_by_its_length():
    packed = gzip.compress(b"") * 60_000
    begin = time.process_time()
    assert gunzip(packed, 100) == b""
    assert time.process_time() - begin < 4


def test_addresses_are_asked_in_several_ways(url):
    root = url.removesuffix("/v1/models/adder")
    addresses = [f"{root}/{x}" for x in ("healthz", "readyz", "metrics")]
    for address in (*addresses, url, f"{url}/metadata"):
        assert httpx.get(f"{address}/").status_code == 200
        head = httpx.head(address)
        assert (head.status_code, head.content) == (200, b"")
    assert httpx.post(f"{url}:answer/", content=b"p").status_code == 200
    for address in (*addresses, f"{url}:predict"):
        asked = httpx.options(address, headers={"Origin": "http://localhost:3000"})
        assert asked.status_code == 405
        assert {"GET", "HEAD"} <= {*asked.headers["allow"].split(", ")}
        assert "does not take OPTIONS" in asked.json()["error"]


def test_a_server_of_this_machine_refuses_pages_of_others(tmp_path):
    with serve(tmp_path).serving() as url:
        port = url.rpartition(":")[2]
        for name, value, status in (
            ("host", f"localhost:{port}", 200),
            ("host", f"[::1]:{port}", 200),
            ("host", f"evil.example:{port}", 403),
            ("host", "127.0.0.1.evil.example", 403),
            ("origin", f"http://127.0.0.1:{port}", 200),
            ("origin", "http://localhost:3000", 200),
            ("origin", "https://evil.example", 403),
            ("origin", "null", 403),
        ):
            answer = httpx.get(f"{url}/healthz", headers={name: value})
            assert answer.status_code == status, value
    # A page does not know the token; and who asks a public address may be anybody.
    other = {"headers": {"host": "evil.example"}}
    with serve(tmp_path, token="s3cret").serving() as url:
        assert httpx.get(f"{url}/healthz", **other).status_code == 200
    with serve(tmp_path).serving("0.0.0.0") as url:
        assert httpx.get(f"{url}/healthz", **other).status_code == 200


def test_records_and_photos_are_answered(url):
    body = {"records": [{"x": 1}, {"photo": b64(b"p")}], "n": 1}
    body["options"] = {"beam_size": 2}
    answer = httpx.post(f"{url}:answer", json=body).json()
    assert answer["predictions"][0] == {
        "text": "s1",
        "score": -1.0,
        "confidence": 0.5,
        "unsure": False,
        "best": [{"text": "s1", "score": -1.0}],
    }
    answer = httpx.post(f"{url}:answer", content=b"\xff\xd8photo")
    assert answer.json()["predictions"][0]["text"] == "s"


def test_a_server_lists_its_models_and_helps(url):
    root = url.removesuffix("/v1/models/adder")
    [listed] = httpx.get(f"{root}/v1/models").json()["models"]
    state = httpx.get(url).json()["model_version_status"]
    assert listed == {"name": "adder", "model_version_status": state}
    for address in root, f"{root}/", f"{root}/docs":
        assert "POST /v1/models/NAME:answer" in httpx.get(address).text
    # OpenVINO's clients ask for version 0, the newest.
    for address in f"{url}/versions/0", f"{url}/versions/0/metadata":
        assert httpx.get(address).status_code == 200
    answer = httpx.post(f"{url}/versions/0:predict", json={"instances": [[1, 2]]})
    assert answer.json()["predictions"][0]["total"] == 3


def terminate_this_process(number=signal.SIGTERM):
    assert callable(signal.getsignal(number))  # it is handled
    os.kill(os.getpid(), number)


def test_a_server_lives_while_its_models_load(tmp_path, capsys):
    begun, go = threading.Event(), threading.Event()

    def load(path):
        begun.set()
        go.wait(30)
        return Fake(path)

    (tmp_path / "adder.keras").touch()
    server = Server(logs=True)
    path = str(tmp_path / "adder.keras")
    for name in "adder", "other":
        server.service.add(name, path, load, later=True, log=server.log)
    port = free_port()
    root = f"http://127.0.0.1:{port}"

    def ask():
        assert begun.wait(30)
        until_answered(f"{root}/healthz")
        addresses = "healthz", "readyz", "v1/models/adder"
        before = [httpx.get(f"{root}/{x}") for x in addresses]
        refused = httpx.post(f"{root}/v1/models/adder:answer", content=b"p")
        go.set()
        until(lambda: httpx.get(f"{root}/readyz").status_code == 200)
        terminate_this_process()
        return before, refused

    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ask)
        server.run(port=port, prepare=server.load)
        before, refused = asked.result()
    assert [answer.status_code for answer in before] == [200, 503, 200]
    waits = "There is no version of adder, other yet."
    assert before[1].json()["error"] == waits
    assert before[2].json()["model_version_status"][0]["state"] == "LOADING"
    assert (refused.status_code, refused.json()["error"]) == (
        503,
        "adder has no version now.",
    )
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    loading = [x for x in events if x["event"].startswith("version_")]
    assert [x["event"] for x in loading[:2]] == ["version_loading", "version_available"]
    assert loading[0]["path"] == path
    # A signal ends the server while a model is loaded, without an error.
    begun.clear()
    go.clear()
    server = Server()
    server.service.add("adder", path, load, later=True)

    def end():
        assert begun.wait(30)
        terminate_this_process()
        until(lambda: server.service.models["adder"].is_closed)
        go.set()

    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(end)
        server.run(port=free_port(), prepare=server.load)
        ended.result()
    server = Server()
    server.service.add("adder", path, lambda path: Fake("bad"), later=True)
    with pytest.raises(kc.InputError, match=r"cannot be served: Bad weights\."):
        server.run(port=free_port(), prepare=server.load)


def test_each_user_has_a_token_and_https(tmp_path):
    pem = tmp_path / "server.pem"
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", pem, "-out", tmp_path / "alone.pem"),
        ],
        check=True,
        capture_output=True,
    )
    pem.write_bytes(pem.read_bytes() + (tmp_path / "alone.pem").read_bytes())
    more = {"token": ["one", "two"], "certificate": str(pem)}
    with serve(tmp_path, **more).serving() as url:
        assert url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=pem)
        for token, status in ("one", 200), ("two", 200), ("three", 401), ("", 401):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = httpx.get(f"{url}/v1/models", headers=headers, verify=trusted)
            assert answer.status_code == status
    with pytest.raises(kc.InputError, match=r"alone.pem cannot be used for TLS: a"):
        Server(certificate=str(tmp_path / "alone.pem"))
    with pytest.raises(kc.InputError, match=r"none.pem cannot be used .* No such file"):
        Server(certificate="none.pem")


# === Batches ===


def test_requests_share_a_batch_if_their_options_are_equal(tmp_path):
    model, limits = Fake(), Limits(batch_size=4, batch_delay=60.0)
    with (
        serve(tmp_path, model, limits).serving() as url,
        ThreadPoolExecutor(8) as threads,
        Client(url) as client,
    ):

        def ask(i):
            return client.texts("adder", [{"x": i}], beam_size=1 + i % 2)

        texts = list(threads.map(ask, range(8)))
        # More records than fit into a batch.
        assert client.texts("adder", [{"x": i} for i in range(8)]) == list("01234567")
        metrics = httpx.get(f"{url}/metrics").text
    assert texts == [[str(i)] for i in range(8)]
    sizes = [(size, options.get("beam_size")) for size, _, options in model.batches]
    sizes[:2] = sorted(sizes[:2])
    assert sizes == [(4, 1), (4, 2), (4, None), (4, None)]
    assert 'keras_caption_batch_size_sum{model="adder"} 16.0' in metrics
    assert 'requests_total{model="adder",status="200",verb="answer"} 9.0' in metrics


def test_a_batch_that_fails_harms_only_the_request_at_fault():
    def run(key, items):
        if "bad" in items:
            raise kc.InputError("bad")
        return [f"{key} {x}" for x in items]

    sizes = []
    batcher = Batcher(run, size=4, delay=60.0, on_batch=sizes.append)
    futures = [batcher.submit("k", [x]) for x in ("a", "bad", "b")]
    cancelled = batcher.submit("k", ["c"])
    other = batcher.submit("other", ["d", "e"])
    batcher.close()  # what is accepted is finished
    assert futures[0].result() == ["k a"]
    assert futures[2].result() == ["k b"]
    with pytest.raises(kc.InputError):
        futures[1].result()
    assert other.result() == ["other d", "other e"]
    assert cancelled.result() == ["k c"]
    assert sizes == [4, 2]
    with pytest.raises(RuntimeError):
        batcher.submit("k", ["f"])


def test_what_nobody_waits_for_does_not_run():
    begun, go, seen = threading.Event(), threading.Event(), []

    def run(key, items):
        begun.set()
        go.wait()
        seen.extend(items)
        return items

    batcher = Batcher(run, size=1, delay=0.0)
    first = batcher.submit("k", [1])
    begun.wait()
    assert batcher.submit("k", [2]).cancel()
    last = batcher.submit("k", [3])
    go.set()
    assert (first.result(), last.result()) == ([1], [3])
    batcher.close()
    assert seen == [1, 3]


def test_a_batch_of_several_requests_has_a_greatest_effort():
    sizes = []
    batcher = Batcher(lambda _, x: x, 16, 60.0, sizes.append, effort=10.0)
    futures = [
        batcher.submit("k", [i] * 2, effort) for i, effort in enumerate((4, 6, 99, 1))
    ]
    batcher.close()
    assert [future.result()[0] for future in futures] == [0, 1, 2, 3]
    assert sizes == [4, 2, 2]


# === Limits ===


def test_limits_of_size_number_and_time(tmp_path):
    model, begun, go = Fake(), threading.Event(), threading.Event()

    def answer(examples, **options):
        begun.set()
        go.wait()
        return [Prediction("late")]

    model.answer = answer
    limits = Limits(max_body=1000, max_requests=1, timeout=0.2)
    server = serve(tmp_path, model, limits, token="s3cret")
    with server.serving() as url, ThreadPoolExecutor(1) as thread:
        address = f"{url}/v1/models/adder:answer"
        answer = httpx.post(address, json={})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert httpx.get(f"{url}/metrics").status_code == 401
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert httpx.get(f"{url}/readyz").status_code == 200
        headers = {"Authorization": "bearer s3cret"}
        with httpx.Client(headers=headers) as http:
            assert http.post(address, content=b"x" * 1001).status_code == 413
            chunks = (b"x" * 600 for _ in range(2))
            assert http.post(address, content=chunks).status_code == 413
            slow = thread.submit(http.post, address, json={"records": [{}]})
            begun.wait()
            busy = http.post(address, json={"records": [{}]})
            assert busy.status_code == 429
            assert busy.headers["retry-after"] == "1"
            assert slow.result().status_code == 504
            go.set()
            assert http.post(address, json={"records": [{}]}).status_code == 200


def test_one_model_reads_while_another_is_given_photos_without_end(tmp_path):
    go, ends = threading.Event(), []

    class Slow(Fake):
        def read(self, record, place=0, max_pixels=0):
            go.wait()
            try:
                check_time(f"The photo of record {place}")
            except kc.InputError as error:
                ends.append(str(error))
                raise
            return record

    server = serve(tmp_path, limits=Limits(timeout=0.3))
    server.service.add("slow", str(tmp_path / "adder.keras"), lambda path: Slow())
    with server.serving() as url, ThreadPoolExecutor(8) as threads:
        slow, quick = (f"{url}/v1/models/{x}:answer" for x in ("slow", "adder"))
        waiting = [threads.submit(httpx.post, slow, content=b"p") for _ in range(8)]
        assert httpx.post(quick, content=b"p").status_code == 200
        assert {x.result().status_code for x in waiting} == {504}
        go.set()
    assert {*ends} == {"The photo of record 0 takes too long to read."}


def test_who_sends_slowly_keeps_nobody_out(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_caption.apps.serve.server.HEAD_SECONDS", 0.5)
    monkeypatch.setattr("keras_caption.apps.serve.server.REST_SECONDS", 0.2)
    limits = Limits(max_requests=1, timeout=2.0, max_body=1000)
    with serve(tmp_path, limits=limits).serving() as url:
        address = "127.0.0.1", int(url.rpartition(":")[2])
        head = b"POST /v1/models/adder:answer HTTP/1.1\r\nHost: localhost\r\n"
        begun = b"Content-Length: 9\r\n\r\np"
        chunked = b"Transfer-Encoding: chunked\r\n\r\n1\r\np\r\n"
        slow = [socket.create_connection(address, 10) for _ in range(4)]
        texts = b"", head, head + begun, head + chunked
        for connection, text in zip(slow, texts, strict=True):
            connection.sendall(text)
        answer = httpx.post(f"{url}/v1/models/adder:answer", content=b"p")
        assert answer.status_code == 200
        ends = [connection.recv(4096)[:13] for connection in slow]
        assert ends == [b"", b"", b"HTTP/1.1 504 ", b"HTTP/1.1 504 "]
        endless = socket.create_connection(address, 10)
        endless.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"800\r\n" + 2048 * b"p" + b"\r\n"
        endless.sendall(chunk)
        assert endless.recv(4096).startswith(b"HTTP/1.1 413 ")

        def send_on():
            for _ in range(100):
                endless.sendall(chunk)
                time.sleep(0.05)

        with pytest.raises(OSError, match=r"reset by peer|Broken pipe"):
            send_on()


def test_an_answer_that_nobody_reads_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_caption.apps.serve.server.HEAD_SECONDS", 0.3)
    body = json.dumps({"records": [{"x": "a" * 10**6}] * 16}).encode()
    head = "POST /v1/models/adder:answer HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    with serve(tmp_path).serving() as url, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        connection.sendall(head.encode() + body)
        time.sleep(3)
        received = 0
        while part := connection.recv(2**20):
            received += len(part)
    assert 0 < received < 16 * 10**6  # what the system had taken


def test_an_error_of_the_server_tells_nothing_of_the_request(tmp_path, capsys):
    model = Fake()

    def fail(*args, **options):
        raise ValueError("a secret of the user")

    model.answer = fail
    with serve(tmp_path, model, logs=True).serving() as url:
        body = {"records": [{"x": "my text"}]}
        answer = httpx.post(f"{url}/v1/models/adder:answer", json=body)
    assert answer.status_code == 500
    assert answer.json() == {"error": "The server failed: ValueError."}
    printed = capsys.readouterr().err
    assert "secret" not in printed
    assert "my text" not in printed
    lines = [json.loads(line) for line in printed.splitlines() if line[:1] == "{"]
    _, _, error, request, _ = lines  # loaded before, removed after
    assert error["error"] == "ValueError"
    assert "test_server.py" in error["where"]
    assert (request["status"], request["examples"], request["verb"]) == (
        500,
        0,
        "answer",
    )


def test_a_log_that_cannot_be_written_fails_no_request(tmp_path, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    with serve(tmp_path, logs=True).serving() as url:
        body = {"records": [{"x": 1}]}
        answer = httpx.post(f"{url}/v1/models/adder:answer", json=body)
    assert answer.status_code == 200


# === Versions ===


def test_a_new_version_takes_over_and_a_bad_one_never_does(tmp_path):
    folder, events = tmp_path / "adder", []
    (folder / "1").mkdir(parents=True)
    service = Service(Limits())

    def log(event, **facts):
        events.append((event, facts["version"]))

    service.add("adder", str(folder), Fake, labels={"stable": 1, "new": 2}, log=log)
    model = service.models["adder"]
    first = model.find()
    assert first.number == 1
    assert model.find(label="stable") is first
    with pytest.raises(KeyError):
        model.find(label="new")
    (folder / "3").mkdir()
    (folder / "3" / "bad").touch()
    model.update()
    model.update()  # tried once
    assert model.find() is first
    assert model.statuses[3].message == "Bad weights"
    loaded = [("version_loading", 1), ("version_available", 1)]
    assert events == [*loaded, ("version_loading", 3), ("version_failed", 3)]
    (folder / "3" / "bad").unlink()  # its files have changed
    model.update()
    assert model.find().number == 3
    assert model.find(label="stable") is first  # which a label keeps
    (folder / "4").mkdir()
    model.update()
    assert sorted(model.versions) == [1, 4]
    assert model.statuses[3].state == "END"
    (folder / "4").rmdir()
    (folder / "3").rmdir()
    model.update()
    assert model.find() is first
    (folder / "1").rmdir()
    model.update()  # nothing that could take its place
    assert model.find() is first
    service.close()


def test_requests_go_to_the_version_that_there_is(tmp_path):
    folder = tmp_path / "adder"
    (folder / "1").mkdir(parents=True)
    server = Server()
    server.service.add("adder", str(folder), Fake)
    with server.serving() as url, Client(url) as client:
        assert client.texts("adder", [{"x": 0}]) == ["10"]
        (folder / "2").mkdir()
        old = server.service.models["adder"].find()
        server.service.models["adder"].update()
        with pytest.raises(RuntimeError):
            old.batcher.submit("k", [])
        assert client.texts("adder", [{"x": 0}]) == ["20"]
        assert client.status("adder") == {2: "AVAILABLE", 1: "END"}


def test_versions_of_one_number_and_of_many_digits(tmp_path):
    names = ["0001", "1", "1795684371923217335", str(2**63), "\u0661", "2x"]
    for name in names:
        (tmp_path / "adder" / name).mkdir(parents=True)
    server = Server()
    server.service.add("adder", str(tmp_path / "adder"), Fake, labels={"old": 1})
    model = server.service.models["adder"]
    assert {n: pathlib.Path(x.model.path).name for n, x in model.versions.items()} == {
        1: "1",
        1795684371923217335: "1795684371923217335",
    }
    with server.serving() as url, Client(url) as client:
        version = 1795684371923217335
        assert client.texts("adder", [{"x": 0}], version=version) == ["50"]
    with pytest.raises(kc.InputError, match="'a/b' is no name of a model"):
        server.service.add("a/b", str(tmp_path / "adder"), Fake)


# === Running ===


@pytest.mark.parametrize("where", ["here", "in a running loop"])
def test_a_signal_ends_what_runs_and_handlers_are_given_back(tmp_path, where):
    server, port = serve(tmp_path), free_port()
    handled = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under `nohup`
    before = [signal.getsignal(number) for number in handled]

    def end():
        answer = until_answered(f"http://127.0.0.1:{port}/healthz")
        terminate_this_process(signal.SIGTERM if where == "here" else signal.SIGHUP)
        return answer.status_code

    async def run():
        server.run(port=port)

    try:
        with ThreadPoolExecutor(1) as thread:
            ended = thread.submit(end)
            server.run(port=port) if where == "here" else asyncio.run(run())
            assert ended.result() == 200
        assert [signal.getsignal(number) for number in handled] == before
    finally:
        signal.signal(signal.SIGHUP, ignored)


IN_A_THREAD = """
import threading, time, urllib.request
from keras_caption.serving import Server
thread = threading.Thread(target=Server().run, args=("::1", {port}), daemon=True)
thread.start()
for _ in range(100):
    time.sleep(0.1)
    try:
        status = urllib.request.urlopen("http://[::1]:{port}/healthz").status
        break
    except OSError:
        pass
print(status, thread.is_alive())
"""


def test_a_server_runs_in_another_thread():
    program = IN_A_THREAD.format(port=free_port())
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "200 True\n"


def test_addresses_of_the_sixth_version_have_brackets(tmp_path):
    with serve(tmp_path).serving("::1") as url:
        assert httpx.get(f"{url}/healthz").status_code == 200
        other, port = serve(tmp_path), int(url.rpartition(":")[2])
        with pytest.raises(kc.InputError, match=r"^\[::1\]:\d+ cannot be served: Addr"):
            other.run("::1", port)
    with serve(tmp_path).serving("::") as url:  # every address of the machine
        port = url.rpartition(":")[2]
        for host in ("127.0.0.1", "[::1]"):
            assert httpx.get(f"http://{host}:{port}/healthz").status_code == 200
    server = serve(tmp_path)
    with pytest.raises(kc.InputError, match=r"^127\.0\.0\.1:70000 cannot be served"):
        server.run(port=70000)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def until_answered(address):
    for _ in range(100):
        try:
            return httpx.get(address)
        except httpx.ConnectError:
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer.")


def until(condition):
    for _ in range(100):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("This does not come true.")


# === The client ===


def test_the_client_comes_again_where_the_server_is_busy(monkeypatch):
    answers = [httpx.ConnectError("refused"), 503, 429, 200] * 2
    seen, waited = [], []

    def respond(request):
        seen.append(json.loads(request.content))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        prediction = {"text": "a dog", "score": -1.0}
        body = {"predictions": [prediction] * len(seen[-1]["records"])}
        headers = {"retry-after": "3"} if answer == 429 else {}
        return httpx.Response(answer, json=body, headers=headers)

    async def sleep(seconds):
        waited.append(seconds)

    transport = httpx.MockTransport(respond)
    monkeypatch.setattr("asyncio.sleep", sleep)
    client = Client("http://x/", retries=3)
    client._async._http = httpx.AsyncClient(transport=transport)
    photo = np.zeros((2, 3, 3), "uint8")
    assert client.texts("m", [photo], n=2, beam_size=4) == ["a dog"]
    assert seen[0]["n"] == 2
    assert seen[0]["options"] == {"beam_size": 4}
    [record] = seen[0]["records"]
    pixels = kc.features.read_photo(base64.b64decode(record["photo"]["b64"]))
    np.testing.assert_array_equal(pixels, photo)
    assert waited[0] < waited[1] < waited[2] == 3

    async def ask():
        async with kc.serving.AsyncClient("http://x", retries=3) as client:
            client._http = httpx.AsyncClient(transport=transport)
            return await client.texts("m", ["a sentence", {"regions": photo[0]}])

    assert asyncio.run(ask()) == ["a dog"] * 2
    assert seen[-1]["records"] == [
        {"source": "a sentence"},
        {"regions": photo[0].tolist()},
    ]
    answers[:] = [503] * 4
    with pytest.raises(ServerError, match="status 503") as error:
        client.texts("m", ["x"])
    assert error.value.status == 503
    answers[:] = [400]
    with pytest.raises(ServerError):
        client.texts("m", ["x"])
    assert not answers  # without another try
    with pytest.raises(kc.InputError, match=r"none.jpg cannot be read: No such"):
        client.texts("m", [pathlib.Path("none.jpg")])


def test_a_call_of_a_client_that_is_closed_meanwhile_ends(tmp_path):
    model, begun, may_end = Fake(), threading.Event(), threading.Event()
    answer = model.answer

    def answer_slowly(*args, **options):
        begun.set()
        may_end.wait(10)
        return answer(*args, **options)

    def ask():
        with pytest.raises(kc.InputError, match="The client is closed"):
            client.texts("adder", [{"x": 1}])
        ended.set()

    model.answer, ended = answer_slowly, threading.Event()
    with serve(tmp_path, model).serving() as url:
        client = Client(url)
        threading.Thread(target=ask, daemon=True).start()
        assert begun.wait(10)
        client.close()
        has_ended = ended.wait(5)
        may_end.set()
    assert has_ended


class Wrong(http.server.BaseHTTPRequestHandler):
    """Answers each request by the next of some functions of a handler."""

    answers = []

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        with contextlib.suppress(OSError):
            self.answers.pop(0)(self)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *args):
        pass


def saying(content, status=200, **headers):
    def answer(handler):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def dripping(handler):
    for _ in range(1000):
        handler.wfile.write(b"H")
        time.sleep(0.05)


def endless(handler):
    saying(b"")(handler)
    while True:
        handler.wfile.write(b" " * 2**20)


@pytest.fixture
def wrong():
    """The address of a server that answers as `Wrong.answers` say."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wrong)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_wrong_answer_is_one_sentence_in_time(wrong, monkeypatch):
    monkeypatch.setattr("keras_caption.apps.serve.client.MAX_ANSWER", 10**7)
    text = {"text": "a dog", "score": -1.0}
    contents = [
        *(b"", b"<html>", b"[]", b"null", b"{}", b'{"predictions": 1}', b"[" * 10**5),
        *(json.dumps({"predictions": [x]}).encode() for x in (1, {}, {"text": "a"})),
        json.dumps({"predictions": [text, text]}).encode(),
        json.dumps({"predictions": [{**text, "attention": [[1], [1, 2]]}]}).encode(),
    ]
    with Client(wrong, timeout=1.0) as client:

        def fails(answer, message, **more):
            Wrong.answers[:] = [answer]
            begun = time.monotonic()
            with pytest.raises(ServerError, match=message):
                client.texts("m", ["x"], **more)
            assert time.monotonic() - begun < 3

        for content in contents:
            fails(saying(content), "^http://127.0.0.1:.* answers /v1/models/m:answer ")
        packed = gzip.compress(b" " * 10**7)
        fails(saying(packed, content_encoding="gzip"), "in the encoding gzip")
        fails(endless, "by more than 10,000,000 bytes|within 1 s")
        fails(saying(b"", 503, Retry_After="100000"), "status 503")
        fails(saying(b"", 307, location="/"), "status 307")
        fails(dripping, "does not answer within 1 s")
        Wrong.answers[:] = [saying(json.dumps({"predictions": [text]}).encode())] * 2
        assert client.texts("a/b?", [{"x": float("nan")}]) == ["a dog"]
        more = {**text, "of_later_servers": 1}
        Wrong.answers[:] = [saying(json.dumps({"predictions": [more]}).encode())]
        assert client.texts("m", ["x"]) == ["a dog"]
        with pytest.raises(kc.InputError, match="cannot be sent as JSON"):
            client.texts("m", [{"x": {1}}])
        with pytest.raises(kc.InputError, match="array should be uint8"):
            client.texts("m", [np.zeros((2, 2))])
    with pytest.raises(kc.InputError, match="The client is closed"):
        client.texts("m", ["x"])


@pytest.mark.parametrize(
    "url",
    [
        *("http://::1:8501", "ftp://x", "http://", "", "http:x"),
        *("localhost:99999", "http://x:0", "http://x:-1", "http://\ud800"),
    ],
)
def test_a_wrong_address_is_one_sentence(url):
    with pytest.raises(kc.InputError, match="is no address of a server, such as"):
        Client(url)


def test_a_proxy_is_asked_for_other_machines_only(wrong, monkeypatch):
    for name in ("http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    state = {"model_version_status": [{"version": "1", "state": "AVAILABLE"}]}
    for value in ("http://127.0.0.1:9", "socks5://127.0.0.1:9", "socks://127.0.0.1:9"):
        monkeypatch.setenv("ALL_PROXY", value)
        Wrong.answers[:] = [saying(json.dumps(state).encode())]
        assert Client(wrong).status("m") == {1: "AVAILABLE"}
    with pytest.raises(kc.InputError, match=r"cannot be used: .* With NO_PROXY=x\.org"):
        Client("http://x.org")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with pytest.raises(
        ServerError, match=r"through the .* proxy .*: Connection refused"
    ):
        Client("http://x.org", retries=0).status("m")
    monkeypatch.setenv("NO_PROXY", "x.org")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    Client("http://x.org").close()


def test_a_name_of_a_photo_is_no_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("my dog.jpg").write_bytes(b"photo")
    pathlib.Path("walk.MP4").write_bytes(b"clip")
    assert record_of("my dog.jpg") == {"photo": b64(b"photo")}
    assert record_of("walk.MP4") == {"clip": b64(b"clip")}
    for sentence in "A dog.", "A dog runs", "It is called my dog.jpg":
        assert record_of(sentence) == {"source": sentence}
    with pytest.raises(kc.InputError, match=r"^dog\.jpg cannot be read: No such file"):
        record_of("dog.jpg")


# === The command ===


def test_options_come_of_a_file(tmp_path, monkeypatch):
    path = tmp_path / "server.yaml"
    path.write_text("models: [a, b=c]\nport: 80\ntoken: [x, y]\nconfidence: 0.5\n")
    command = ["d", f"--config={path}", "--port=81"]
    options, models, rest = read_config(command)
    assert models == ["a", "b=c"]
    parsed = make_parser().parse_args([*options, *rest])
    assert (parsed.port, parsed.token, parsed.models) == (81, ["x", "y"], ["d"])
    assert parsed.confidence == 0.5
    monkeypatch.chdir(tmp_path)
    for content, message in (
        ("prot: 80", "unrecognized arguments: --prot=80"),
        ("port: {a: 1}", "port should be a text or a number, or a list of these"),
        ("- 80", "server.yaml should have a value for each option"),
        ("port: 'x", "server.yaml cannot be read: while scanning a quoted scalar"),
        ("port: 80", "required: MODEL"),
        ("timeout: .nan", "--timeout: Input should be a finite number"),
        ("poll: .inf", "--poll: Input should be a finite number"),
        ("batch_delay: -1", "--batch_delay: Input should be greater than or equal"),
        ("port: 99999", "--port: Input should be less than 65536"),
        ("max_body: nan", "--max_body: Input should be a valid integer"),
        ("a: " + "1" * 2**20, "server.yaml is larger than 1,048,576 bytes"),
    ):
        path.write_text(content)
        with pytest.raises(SystemExit) as end:
            main(["serve", "--config=server.yaml"])
        assert message in end.value.code
    for device, message in (("/dev/zero", "is a pipe or a device"), ("no", "no file")):
        with pytest.raises(kc.InputError, match=message):
            read_config([f"--config={device}"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.keras"], "none.keras cannot be served: There is no saved model none"),
        (["empty"], "There is no saved model in empty"),
        (["none.keras", "--label=x"], "--label x should be NAME=N, such as stable=2"),
        (["none.keras", "--token=@none"], "--token @none cannot be read"),
        (["none.keras", "--token="], "The token is empty, so that every request"),
        (
            ["none.keras", "--batch_size=0"],
            "--batch_size: Input should be greater than",
        ),
    ],
)
def test_a_wrong_command_is_one_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as end:
        main(["serve", *arguments])
    assert message in end.value.code


def test_an_address_that_is_taken_is_one_sentence(tmp_path):
    server = serve(tmp_path)
    with (
        server.serving() as url,
        pytest.raises(kc.InputError, match=r"be served: Address already in use\.$"),
    ):
        server.run(port=int(url.rpartition(":")[2]))
