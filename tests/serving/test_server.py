"""The server over HTTP: TensorFlow Serving's contract, batches, versions, limits."""

import asyncio
import base64
import json
import pathlib
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
import tensorflow as tf

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.serving import Client, Limits, Prediction, Server, ServerError
from keras_caption.serving.batcher import Batcher
from keras_caption.serving.service import Service
from keras_caption.serving.signature import Signature

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
    for address in url, f"{url}/versions/1":
        assert httpx.get(address).json() == {"model_version_status": [state]}
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
    assert httpx.get(url.replace("v1", "v2")).json()["error"].startswith("Malformed")


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
        headers = {"Authorization": "Bearer s3cret"}
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
    _, error, request, _ = lines
    assert error["error"] == "ValueError"
    assert "test_server.py" in error["where"]
    assert (request["status"], request["examples"], request["verb"]) == (
        500,
        0,
        "answer",
    )


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
    assert events == [("version_available", 1), ("version_failed", 3)]
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


# === The client ===


def test_the_client_comes_again_where_the_server_is_busy(monkeypatch):
    answers = [httpx.ConnectError("refused"), 503, 429, 200] * 2
    seen, waited = [], []

    def respond(request):
        seen.append(json.loads(request.content))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        body = {"predictions": [{"text": "a dog", "score": -1.0}]}
        headers = {"retry-after": "3"} if answer == 429 else {}
        return httpx.Response(answer, json=body, headers=headers)

    async def sleep(seconds):
        waited.append(seconds)

    transport = httpx.MockTransport(respond)
    monkeypatch.setattr("time.sleep", waited.append)
    monkeypatch.setattr("asyncio.sleep", sleep)
    client = Client("http://x/", retries=3)
    client._http = httpx.Client(transport=transport)
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

    assert asyncio.run(ask()) == ["a dog"]
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


# === The command ===


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.keras"], "none.keras cannot be served: There is no saved model none"),
        (["empty"], "There is no saved model in empty"),
        (["none.keras", "--label=x"], "--label x should be NAME=N, such as stable=2"),
        (["none.keras", "--token=@none"], "--token @none cannot be read"),
        (["none.keras", "--batch_size=0"], "--batch_size: 0 is not at least 1"),
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
        pytest.raises(kc.InputError, match="cannot be served: Address already in use"),
    ):
        server.run(port=int(url.rpartition(":")[2]))
