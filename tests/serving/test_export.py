import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import ovmsclient
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from faulty_images import FAULTS, PADDINGS, pad_images, spoil
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

import keras_caption as kc
from keras_caption.decoding import Decoding
from keras_caption.decoding.text_options import forbidden_tokens
from keras_caption.export.generation import generation_endpoints
from keras_caption.export.request_options import RequestOptions

ANSWER = """
import sys
sys.modules["keras"] = sys.modules["keras_caption"] = None
import json, numpy as np, tensorflow as tf
folder = sys.argv[1]
model = tf.saved_model.load(sys.argv[2])
answers = []
for name in ("many", "one"):
    data = dict(np.load(f"{folder}/{name}.npz"))
    inputs = {k: tf.constant(data[k]) for k in ("regions", "boxes")}
    answer = model.signatures["serving_default"](**inputs)
    greedy = model.signatures["greedy"](**inputs)
    logits = model.signatures["logits"](tokens=tf.constant(data["tokens"]), **inputs)
    np.save(f"{folder}/{name}_logits.npy", logits["logits"])
    ids = model.signatures["tokens"](**inputs)
    answers.append({
        "of_tokens": ids["tokens"].numpy().tolist(),
        "captions": [c.decode() for c in answer["captions"].numpy()],
        "tokens": answer["tokens"].numpy().tolist(),
        "scores": answer["scores"].numpy().tolist(),
        "greedy": [c.decode() for c in greedy["captions"].numpy()],
    })
print(json.dumps(answers))
"""

SERVED = """
import sys
import keras_caption_cli
try:
    keras_caption_cli.main(["serve", sys.argv[1]])
except SystemExit as end:
    print(end)
from keras_caption.serving import ExportedPredictor
ExportedPredictor(sys.argv[2])
print("keras" in sys.modules)
import keras_caption.models
"""

LENGTH = 6
SEARCH = {"max_length": LENGTH, "no_repeat_ngram": 3}
NUMBERS = (4, 3, 1)  # of regions of three images


@pytest.fixture(scope="module")
def exported(captioner, tmp_path_factory):
    """The folder of an exported NG-SAN, which reads boxes."""
    path = tmp_path_factory.mktemp("exported") / "ngsan" / "1"
    kc.serving.export(captioner, path, **SEARCH)
    return path


@pytest.fixture(scope="module")
def served(exported):
    return tf.saved_model.load(str(exported)).signatures


@pytest.fixture(scope="module")
def served_without_boxes(vocabulary, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "aoanet" / "1"
    model = kc.models.create("aoanet", vocabulary=vocabulary, **tiny("aoanet"))
    kc.serving.export(model, path, max_length=LENGTH)
    return tf.saved_model.load(str(path)).signatures


def defaults_of(folder, name):
    """What TensorFlow Serving takes where a request lacks inputs of a signature."""
    saved = saved_model_pb2.SavedModel.FromString(
        (folder / "saved_model.pb").read_bytes()
    )
    signature = saved.meta_graphs[0].signature_def[name]
    return {key: tf.make_ndarray(x) for key, x in signature.defaults.items()}


def answer(signature, inputs):
    return {k: x.numpy() for k, x in signature(**tensors(inputs)).items()}


def tensors(inputs):
    return {name: tf.constant(values) for name, values in inputs.items()}


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name", ["served", "served_without_boxes"])
def test_padding_never_leaks(name, padding, request, rng):
    signature = request.getfixturevalue(name)["serving_default"]
    singles = [random_images(rng, 1, n) for n in NUMBERS]
    for images, number in zip(singles, NUMBERS, strict=True):
        images["num_regions"] = np.array([number], "int32")
    batch = pad_images(singles, padding)
    batch["num_regions"] = np.array(NUMBERS, "int32")
    names = list(signature.structured_input_signature[1])
    assert sorted(names)[0] == ("boxes" if name == "served" else "num_regions")
    together = answer(signature, {key: batch[key] for key in names})
    for i, images in enumerate(singles):
        alone = answer(signature, {key: images[key] for key in names})
        np.testing.assert_array_equal(together["tokens"][i], alone["tokens"][0])
        np.testing.assert_allclose(together["scores"][i], alone["scores"], atol=1e-5)


def test_faulty_images_have_no_caption_and_harm_no_others(served, rng):
    wrong = len(FAULTS) + 1
    images = random_images(rng, wrong + 1, 3)
    del images["region_mask"]
    faulty = spoil(images)
    tokens = rng.integers(4, 34, (2 * wrong + 2, 2)).astype(
        "int32"
    )  # two captions each
    for name in ("serving_default", "greedy"):
        expected, found = (answer(served[name], batch) for batch in (images, faulty))
        assert (found["captions"][:wrong] == b"").all()
        assert (found["tokens"][:wrong] == 0).all()
        assert (found["scores"][:wrong] == -np.inf).all()
        for key in ("captions", "tokens"):
            np.testing.assert_array_equal(found[key][wrong], expected[key][wrong])
        # Finished images leave the batch: products of other sizes round differently.
        np.testing.assert_allclose(
            found["scores"][wrong], expected["scores"][wrong], rtol=1e-6
        )
    expected, found = (
        answer(served["logits"], {**batch, "tokens": tokens})["logits"]
        for batch in (images, faulty)
    )
    assert np.isnan(found[: 2 * wrong]).all()
    np.testing.assert_allclose(found[-2:], expected[-2:], atol=1e-6)
    for token in -1, len(WORDS) + 4:  # of no vocabulary
        tokens[-1, 1] = token
        found = answer(served["logits"], {**images, "tokens": tokens})["logits"]
        assert np.isnan(found[-1]).all()
        np.testing.assert_allclose(found[-2], expected[-2], atol=1e-6)


def test_a_number_of_regions_that_are_not_there_is_a_fault(served_without_boxes, rng):
    inputs = {
        "regions": random_images(rng, 4, 3)["regions"],
        "num_regions": np.array([4, 0, -1, 3], "int32"),
    }
    found = answer(served_without_boxes["greedy"], inputs)
    assert (found["scores"] == -np.inf).tolist() == [True, True, True, False]


def test_saved_model_answers_where_there_is_only_tensorflow(
    captioner, exported, served, rng, tmp_path
):
    batches = {"many": random_images(rng, 4, 7), "one": random_images(rng, 1, 1)}
    for name, images in batches.items():
        padded = ~images["region_mask"]
        images["boxes"][padded] = 0.0  # padding
        images["tokens"] = rng.integers(4, 34, (len(padded), 5)).astype("int32")
        np.savez(tmp_path / f"{name}.npz", **images)
    done = subprocess.run(
        [sys.executable, "-c", ANSWER, str(tmp_path), str(exported)],
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(done.stdout.splitlines()[-1])
    for (name, images), answer in zip(batches.items(), answers, strict=True):
        tokens, scores = captioner.generate_tokens(images, **SEARCH)
        np.testing.assert_array_equal(answer["tokens"], tokens)
        np.testing.assert_allclose(answer["scores"], scores, atol=1e-4)
        assert answer["captions"] == captioner.generate(images, **SEARCH)
        greedy = captioner.generate(images, beam_size=1, **SEARCH)
        assert answer["greedy"] == greedy
        assert answer["of_tokens"] == answer["tokens"]
        np.testing.assert_allclose(
            np.load(tmp_path / f"{name}_logits.npy"), captioner(images), atol=1e-5
        )

    # Every variable once; the records that warm a server up name each signature.
    data = exported / "variables/variables.data-00000-of-00001"
    assert data.stat().st_size < 6 * captioner.count_params()
    warmed = []
    for request in warmup_requests(exported):
        assert request.model_spec.name == "ngsan"
        inputs = {k: tf.constant(tf.make_ndarray(v)) for k, v in request.inputs.items()}
        served[request.model_spec.signature_name](**inputs)
        warmed.append(request.model_spec.signature_name)
    assert sorted(warmed) == sorted(served)


def test_the_command_serves_exports_without_keras(exported, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"damaged")
    command = [sys.executable, "-c", SERVED, str(tmp_path), str(exported)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    refused, has_keras = done.stdout.splitlines()
    assert "cannot be served" in refused
    assert has_keras == "False"


def test_an_export_loads_as_the_model_that_it_generates_as(
    captioner, exported, rng, tmp_path
):
    model = kc.models.load(exported)
    assert model.decoding == captioner.decoding.override(**SEARCH)
    assert not model.compiled
    images = random_images(rng)
    assert model.generate(images) == captioner.generate(images, **SEARCH)
    path = shutil.copytree(exported, tmp_path / "1")
    index = path / "variables" / "variables.index"
    index.write_bytes(index.read_bytes()[:-9])
    with pytest.raises(kc.InputError, match="1 cannot be read: "):
        kc.models.load(path)
    config = path / "assets.extra" / "config.json"
    config.write_text(config.read_text().replace('"model_dim": 16', '"model_dim": 32'))
    shutil.copy(exported / "variables" / "variables.index", index)
    with pytest.raises(kc.InputError, match="other weights than "):
        kc.models.load(path)
    config.unlink()
    with pytest.raises(kc.InputError, match=r"without assets\.extra/config\.json"):
        kc.models.load(path)


WORDS = [f"w{i}" for i in range(30)]
FEW = ",".join(word for word in WORDS if word not in ("w2", "w5", "w23"))
# What requests for captions of the same image choose: no two get the same ones.
CHOICES = {
    "search": [
        {},
        {"forbidden": FEW},
        {"forbidden": f"{FEW}, w1 unknown,unknown", "min_length": 4},
        {"forbidden": FEW, "length_penalty": 9.0},
        {"forbidden": FEW, "min_length": 4, "repetition_penalty": 5.0},
        {"forbidden": "w23 w23,w5", "prefix": "w2 w5 w23"},
    ],
    "sample": [
        {"seed": 7},
        {"seed": 2**32 - 1, "forbidden": FEW},
        {"seed": 2**32 - 1, "forbidden": FEW, "min_length": 6},
        {"seed": 7, "temperature": 0.2},
        {"seed": 7, "top_k": 5},
        {"seed": 7, "top_p": 0.1, "repetition_penalty": 3.0},
        {"seed": 7, "prefix": "w2 w5 w23"},
    ],
}
WRONG = {
    "search": [
        *({"min_length": x} for x in (-1, LENGTH + 1)),
        *({"length_penalty": x} for x in (-1.0, np.nan, np.inf)),
        *({"repetition_penalty": x} for x in (0.9, 101.0)),
        *({"prefix": x} for x in ("unknown", "w1 " * (LENGTH + 1))),
        *({"forbidden": x} for x in ("w1,,w2", "!", "w1," * 1000 + "w2")),
    ],
    "sample": [
        *({"temperature": x} for x in (0.0, -1.0, 1e-39, np.nan)),
        *({"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.1}),
        {"seed": -2},
    ],
}


@pytest.mark.parametrize("name", CHOICES)
def test_each_request_chooses_its_options(name, captioner, exported, served, rng):
    images = {n: x[:1] for n, x in random_images(rng).items()}
    requests = [*CHOICES[name], *WRONG[name]]
    inputs = {n: np.repeat(images[n], len(requests), 0) for n in ("regions", "boxes")}
    for option, default in defaults_of(exported, name).items():
        values = [request.get(option, default.item()) for request in requests]
        inputs[option] = np.array(values, default.dtype)
    found = answer(served[name], inputs)
    if name == "sample":  # one caption of each
        found = {key: x[:, None] for key, x in found.items()}
    count = len(CHOICES[name])
    assert len({row.tobytes() for row in found["tokens"][:count]}) == count
    assert (found["captions"][count:] == b"").all()
    assert not found["tokens"][count:].any()
    assert (found["scores"][count:] == -np.inf).all()
    always = {"n": 1, "temperature": 1.0} if name == "sample" else {"n": 3}
    tf.config.run_functions_eagerly(True)  # takes less time than compiling
    for i, choice in enumerate(CHOICES[name]):
        expected = captioner.generate(images, **{**SEARCH, **always, **choice})[0]
        texts, scores = zip(*expected, strict=True)
        n = len(texts)
        assert [x.decode() for x in found["captions"][i, :n]] == [*texts]
        np.testing.assert_allclose(found["scores"][i, :n], scores, atol=1e-4)
        assert (found["scores"][i, n:] == -np.inf).all()
    tf.config.run_functions_eagerly(False)


def test_options_without_effect_are_no_inputs(vocabulary):
    def inputs_of(**options):
        return {*RequestOptions(Decoding().override(**options), vocabulary).inputs}

    texts = {"prefix", "forbidden"}
    search = {"min_length", "length_penalty", "repetition_penalty", *texts}
    assert inputs_of() == search
    assert inputs_of(beam_size=1) == search - {"length_penalty"}
    sampling = {"temperature", "top_k", "top_p", "seed"}
    assert inputs_of(temperature=1.0) == sampling | search - {"length_penalty"}
    own = Decoding(min_length=3, temperature=0.7, top_k=5)
    defaults = RequestOptions(own, vocabulary).inputs
    values = [defaults[name].example for name in ("min_length", "temperature", "top_k")]
    assert values == [[3], [0.7], [5]]


def test_texts_of_characters_may_have_spaces():
    characters = kc.text.CharacterTokenizer("a dog")
    texts = ["a dog", " a", "dog?", " "]
    read = RequestOptions(Decoding(), characters).read
    no_text = dict.fromkeys(("prefix", "forbidden"), tf.constant([""]))
    others = {"min_length": [0], "length_penalty": [0.0], "repetition_penalty": [1.0]}
    valid = [True] * 4
    for name, right in (
        ("prefix", [True, True, False, True]),
        ("forbidden", [True, True, True, False]),
    ):
        served = {**no_text, **others, name: tf.constant(texts)}
        values, found = read({n: tf.constant(x) for n, x in served.items()}, valid)
        assert found.numpy().tolist() == right
    phrases = values["per_example"]["forbidden"][:, 0].numpy()
    expected = forbidden_tokens(characters, ["a dog", "a"])
    np.testing.assert_array_equal(phrases[:2, -5:], expected)
    assert not phrases[2].any()  # which cannot come
    with pytest.raises(kc.InputError, match="`forbidden`: ' ' has no words"):
        forbidden_tokens(characters, [" "])


# === Served over HTTP ===


@pytest.fixture(scope="module")
def url(exported):
    """A server of the export, `ngsan`, and of its model in Keras; batches of three."""
    server = kc.serving.Server(kc.serving.Limits(batch_size=3, batch_delay=60.0))
    server.add(exported.parent)
    predictor = kc.serving.Predictor(kc.models.load(exported))
    server.service.add("keras", str(exported), lambda path: predictor)
    with server.serving() as url:
        yield url


@pytest.mark.parametrize("name", ["ngsan", "keras"])
def test_another_client_is_answered_as_the_signature(url, served, rng, name):
    client = ovmsclient.make_http_client(url.removeprefix("http://"))
    assert client.get_model_status(name, 1)[1]["state"] == "AVAILABLE"
    images = random_images(rng, 3, 4)
    inputs = {key: images[key] for key in ("regions", "boxes")}
    expected = answer(served["serving_default"], inputs)
    found = client.predict(inputs, name, model_version=1)
    assert found.keys() == expected.keys()
    np.testing.assert_array_equal(found["tokens"], expected["tokens"])
    np.testing.assert_allclose(found["scores"], expected["scores"], atol=1e-4)
    assert found["captions"].tolist() == [x.decode() for x in expected["captions"]]


def test_requests_that_warm_a_server_up_are_answered(url, exported, served):
    with kc.serving.Client(url) as client:
        described = client.metadata("ngsan")
        for request in warmup_requests(exported):
            name = request.model_spec.signature_name
            assert described[name]["inputs"].keys() == request.inputs.keys()
            inputs = {key: tf.make_ndarray(x) for key, x in request.inputs.items()}
            inputs = {key: np.repeat(x, 3, axis=0) for key, x in inputs.items()}
            if "seed" in inputs:
                inputs["seed"][:] = 5  # the default is another one each time
            found = client.predict("ngsan", inputs, name)
            found = found if isinstance(found, dict) else {"logits": found}
            for key, values in answer(served[name], inputs).items():
                if values.dtype == object:
                    assert found[key].astype(bytes).tolist() == values.tolist()
                else:
                    np.testing.assert_allclose(found[key], values, atol=1e-4)


def test_records_of_several_requests_are_answered_as_alone(url, captioner, rng):
    images = [random_images(rng, 1, n) for n in NUMBERS]
    records = [{key: x[key][0] for key in ("regions", "boxes")} for x in images]
    alone = [{key: x[None] for key, x in record.items()} for record in records]
    expected = [captioner.generate_tokens(x, **SEARCH) for x in alone]
    with kc.serving.Client(url) as client, ThreadPoolExecutor(3) as threads:
        for name in "ngsan", "keras":
            found = threads.map(lambda x, name=name: client.answer(name, [x]), records)
            for [one], ([tokens], [score]) in zip(found, expected, strict=True):
                assert one.text == captioner.vocabulary.decode(tokens)
                assert one.score == pytest.approx(score, abs=1e-4)
                mean = np.exp(score / np.count_nonzero(tokens))
                assert one.confidence == pytest.approx(mean, abs=1e-4)
        # A sample follows from its request alone, whatever runs beside it.
        sampled = {"temperature": 1.5, "seed": 7}
        expected = [captioner.generate(x, max_length=LENGTH, **sampled) for x in alone]
        for name in "ngsan", "keras":
            found = threads.map(
                lambda x, name=name: client.texts(name, [x], **sampled), records
            )
            assert [*found] == expected
        together = client.texts("ngsan", [records[0]] * 3, **sampled)
        assert together == client.texts("keras", [records[0]] * 3, **sampled)
        assert together[0] != together[1]
        chosen = client.texts("ngsan", records, n=2, min_length=5, prefix="w1")
        options = {**SEARCH, "n": 2, "min_length": 5, "prefix": "w1"}
        for x, text in zip(alone, chosen, strict=True):
            [[(best, _), *_]] = captioner.generate(x, **options)
            assert text == best
        with pytest.raises(kc.serving.ServerError, match="has no option 'groups' of"):
            client.answer("ngsan", records, groups=2)
        with pytest.raises(kc.serving.ServerError, match="has no attention to show"):
            client.answer("ngsan", records, attention=True)


@pytest.mark.parametrize("name", ["ngsan", "keras"])
def test_a_wrong_request_is_no_failure_of_the_server(url, name, rng):
    images = {n: x[0].tolist() for n, x in random_images(rng, 1, 3).items()}
    record = {n: images[n] for n in ("regions", "boxes")}
    fewer = {**record, "boxes": record["boxes"][:2]}
    words = {"w1": 1, "\ud800": 1}
    for verb, body, message in (
        *(("answer", {"records": [x]}, "should be a dict") for x in (None, 1, "x")),
        ("answer", {"records": [fewer]}, "3 regions and 2 boxes|has boxes of 2|boxes"),
        ("answer", {"records": [{**record, "\ud800": 1}]}, "has '\\\\ud800'"),
        ("answer", {"records": [record], "n": "2"}, "`n`: Input should be a valid int"),
        *(
            ("answer", {"records": [record], "options": {key: value}}, message)
            for key, value, message in (
                ("forbidden", [1], "`forbidden`"),
                ("prefix", ["w1", "w2"], "`prefix`"),
                ("prefix", "\ud800", "`prefix`"),
                ("required", [f"w{i} w1" for i in range(1, 60)] * 99, "required|fit"),
                ("min_length", "3", "`min_length`"),
                ("seed", 1, "seed"),
                ("self", 1, "no decoding option 'self'"),
            )
        ),
        ("predict", {"instances": [fewer]}, "3 regions and 2 boxes"),
        ("predict", {"instances": [words]}, "no input"),
        (
            "predict",
            {
                "instances": [{**record, "prefix": "w1\u0301\u0316" * 10**5}],
                "signature_name": "search",
            },
            "missing|a prefix of more than 65,536 bytes",
        ),
        (
            "predict",
            {
                "instances": [{**record, "forbidden": "w1," * 1000}],
                "signature_name": "search",
            },
            "missing|more than 1,000 phrases",
        ),
    ):
        address, content = f"{url}/v1/models/{name}:{verb}", json.dumps(body)
        answer = httpx.post(address, content=content, timeout=20)
        assert answer.status_code == 400, answer.text
        assert re.search(message, answer.json()["error"]), answer.text


def warmup_requests(exported):
    records = tf.data.TFRecordDataset(
        str(exported / "assets.extra/tf_serving_warmup_requests")
    )
    for record in records.as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        yield log.predict_log.request


def test_failed_export_leaves_the_previous_one(
    captioner, exported, tmp_path, monkeypatch
):
    path = tmp_path / "ngsan" / "1"
    shutil.copytree(exported, path)
    before = (path / "saved_model.pb").read_bytes()
    module = sys.modules[kc.serving.export.__module__]

    def only_greedy(model, decoding, jit_compile):  # traced in less time
        return {"features": generation_endpoints(model, decoding)["greedy"]}

    def full_disk(*args):
        raise tf.errors.ResourceExhaustedError(None, None, "x; No space left [Op:y]")

    monkeypatch.setattr(module, "endpoints_of", only_greedy)
    monkeypatch.setattr(module, "_write_warmup", full_disk)
    with pytest.raises(OSError, match=rf"No space left on device: '{path}'$"):
        kc.serving.export(captioner, path, max_length=4)
    assert (path / "saved_model.pb").read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["1"]
    monkeypatch.undo()
    monkeypatch.setattr(module, "endpoints_of", only_greedy)
    kc.serving.export(captioner, path, max_length=4)
    tokens = tf.saved_model.load(str(path)).signatures["features"].structured_outputs
    assert tokens["tokens"].shape[1] == 4


def test_a_model_without_a_vocabulary_is_refused(tmp_path):
    model = kc.models.create("san", vocabulary_size=10, **tiny("san"))
    with pytest.raises(ValueError, match="no vocabulary"):
        kc.serving.export(model, tmp_path / "1")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"max_length": 0}, "`max_length`: Input should be greater"),
        ({"beams": 3}, "no decoding option 'beams'. Did you mean beam_size"),
        ({"temperature": 1.0}, "takes no `temperature`"),
        ({"prefix": "w4"}, "An export takes no texts: `prefix` and `forbidden` are"),
        ({"required": ["w4"]}, "An export takes no texts"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    captioner, tmp_path, option, message
):
    with pytest.raises(kc.InputError, match=message):
        kc.serving.export(captioner, tmp_path / "ngsan" / "1", **option)
    assert not list(tmp_path.iterdir())
