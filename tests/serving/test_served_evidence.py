"""Captions with evidence, of every way to serve a model: all that may be said."""

import numpy as np
import pytest
import tensorflow as tf
from few_sentences import SENTENCES, captioner_of_few, images_of, possible, ranked

import keras_caption as kc

OF_EXPORTS = [
    {"n": 12},
    {"n": 12, "prefix": "dog"},
    {"n": 12, "forbidden": ["and", "cup"], "min_length": 2},
    {"n": 1, "temperature": 9.0, "seed": 2, "top_k": 2, "prefix": "a"},
]
SEARCHES = [
    *OF_EXPORTS,
    {"n": 3, "max_length": 4},
    {"n": 12, "required": ["on a"], "forbidden": ["green"]},
    {"n": 12, "beam_size": 12, "groups": 3, "diversity": 9.0},
    {"n": 4, "temperature": 1e6, "seed": 1},
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A model, and a client of a server that has it saved and exported."""
    folder = tmp_path_factory.mktemp("few")
    model = captioner_of_few(beam_size=12)
    model.save(folder / "saved.keras")
    kc.serving.export(model, folder / "exported" / "1")
    server = kc.serving.Server()
    tf.config.run_functions_eagerly(True)  # tracing takes longer than running
    for name, load in (
        ("saved.keras", kc.serving.Predictor),
        ("exported", kc.serving.ExportedPredictor),
    ):
        server.service.add(name, str(folder / name), load)
    with server.serving() as url, kc.serving.Client(url) as client:
        yield model, client
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("saved.keras", options) for options in SEARCHES),
        *(("exported", options) for options in OF_EXPORTS),
    ],
)
def test_a_server_says_all_that_is_admissible_and_nothing_else(served, name, options):
    model, client = served
    n, records, expected = options["n"], [], []
    for objects, sentences in SENTENCES.items():
        image = images_of(objects)
        record = {key: image[key][0] for key in ("regions", "boxes")}
        if left := possible(sentences, options):
            records.append(record)
            expected.append(ranked(model, image, left))
        else:
            with pytest.raises(kc.serving.ServerError, match="leave none") as raised:
                client.answer(name, [record], **options)
            assert raised.value.status == 400
    for found, best in zip(
        client.answer(name, records, **options), expected, strict=True
    ):
        texts, scores = zip(*found.best, strict=True)
        if "temperature" in options or "groups" in options:
            assert {*texts} <= {*dict(best)}
        else:
            assert list(texts) == [text for text, _ in best[:n]]
        np.testing.assert_allclose(scores, [dict(best)[x] for x in texts], atol=1e-4)
