import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from tensorflow_serving.apis import prediction_log_pb2

import keras_caption as kc

ANSWER = """
import sys
sys.modules["keras"] = sys.modules["keras_caption"] = None
import json, numpy as np, tensorflow as tf
folder = sys.argv[1]
model = tf.saved_model.load(folder + "/ngsan/1")
answers = []
for name in ("many", "one"):
    data = dict(np.load(f"{folder}/{name}.npz"))
    inputs = {k: tf.constant(data[k]) for k in ("regions", "boxes")}
    answer = model.signatures["serving_default"](**inputs)
    greedy = model.signatures["greedy"](**inputs)
    logits = model.signatures["logits"](tokens=tf.constant(data["tokens"]), **inputs)
    np.save(f"{folder}/{name}_logits.npy", logits["logits"])
    answers.append({
        "captions": [c.decode() for c in answer["captions"].numpy()],
        "tokens": answer["tokens"].numpy().tolist(),
        "scores": answer["scores"].numpy().tolist(),
        "greedy": [c.decode() for c in greedy["captions"].numpy()],
    })
print(json.dumps(answers))
"""


def test_saved_model_answers_where_there_is_only_tensorflow(captioner, rng, tmp_path):
    kc.serving.export(captioner, tmp_path / "ngsan" / "1", max_length=9)
    batches = {"many": random_images(rng, 4, 7), "one": random_images(rng, 1, 1)}
    for name, images in batches.items():
        padded = ~images["region_mask"]
        images["boxes"][padded] = 0.0  # how a caller says so
        images["tokens"] = rng.integers(4, 34, (len(padded), 5)).astype("int32")
        np.savez(tmp_path / f"{name}.npz", **images)
    done = subprocess.run(
        [sys.executable, "-c", ANSWER, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(done.stdout.splitlines()[-1])
    for (name, images), answer in zip(batches.items(), answers, strict=True):
        tokens, scores = captioner.generate_tokens(images, max_length=9)
        np.testing.assert_array_equal(answer["tokens"], tokens)
        np.testing.assert_allclose(answer["scores"], scores, atol=1e-4)
        assert answer["captions"] == captioner.generate(images, max_length=9)
        greedy = captioner.generate(images, beam_size=1, max_length=9)
        assert answer["greedy"] == greedy
        np.testing.assert_allclose(
            np.load(tmp_path / f"{name}_logits.npy"), captioner(images), atol=1e-5
        )

    # Every variable once; the records that warm a server up name each signature.
    data = tmp_path / "ngsan/1/variables/variables.data-00000-of-00001"
    assert data.stat().st_size < 6 * captioner.count_params()
    records = tf.data.TFRecordDataset(
        str(tmp_path / "ngsan/1/assets.extra/tf_serving_warmup_requests")
    )
    loaded = tf.saved_model.load(str(tmp_path / "ngsan/1"))
    warmed = []
    for record in records.as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        request = log.predict_log.request
        assert request.model_spec.name == "ngsan"
        inputs = {k: tf.constant(tf.make_ndarray(v)) for k, v in request.inputs.items()}
        loaded.signatures[request.model_spec.signature_name](**inputs)
        warmed.append(request.model_spec.signature_name)
    assert sorted(warmed) == sorted(loaded.signatures)


def test_failed_export_leaves_the_previous_one(captioner, tmp_path, monkeypatch):
    path = tmp_path / "ngsan" / "1"
    kc.serving.export(captioner, path, max_length=3)
    before = (path / "saved_model.pb").read_bytes()

    def full_disk(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(
        sys.modules[kc.serving.export.__module__], "_write_warmup", full_disk
    )
    with pytest.raises(OSError, match="No space left"):
        kc.serving.export(captioner, path, max_length=4)
    assert (path / "saved_model.pb").read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["1"]
    monkeypatch.undo()
    kc.serving.export(captioner, path, max_length=4)
    tokens = tf.saved_model.load(str(path)).signatures["greedy"].structured_outputs
    assert tokens["tokens"].shape[1] == 4


def test_a_model_without_words_cannot_answer(tmp_path):
    model = kc.models.create("san", vocabulary_size=10, **tiny("san"))
    with pytest.raises(ValueError, match="no vocabulary"):
        kc.serving.export(model, tmp_path / "1")
