"""Hooks of users in every search, in ensembles and in exports."""

import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images
from keras import ops

import keras_caption as kc
from keras_caption.text import EOS


class Often(kc.decoding.Hook):
    """A word as often as it may be: never where an image's first feature is negative.

    Nor right after itself.
    """

    def __init__(self, vocabulary, word):
        self.token = vocabulary.words.index(word)

    def read(self, inputs):
        return {"never": inputs["regions"][:, 0, 0] < 0}

    def __call__(self, scores, tokens, index, state):
        last = ops.take(tokens, ops.maximum(index - 1, 0), axis=1)
        never = ops.logical_or(state["never"], last == self.token)
        changed = ops.where(ops.expand_dims(never, 1), -1e9, scores + 100.0)
        return ops.where(ops.arange(scores.shape[-1]) == self.token, changed, scores)


class DeadEnds(kc.decoding.Hook):
    """After "w3" a caption may end, but likelier are words that nothing may follow."""

    def __init__(self, vocabulary, likelier):
        rank = np.full(len(vocabulary.words), -1e9, "float32")
        self.first, self.second, self.none = (rank.copy() for _ in range(3))
        self.first[vocabulary.words.index("w3")] = 0.0
        self.second[[EOS, *map(vocabulary.words.index, likelier)]] = 100.0
        self.second[EOS] = 0.0

    def read(self, inputs):
        return {}

    def __call__(self, scores, tokens, index, state):
        added = ops.where(index == 1, self.second, self.none)
        return scores + ops.where(index == 0, self.first, added)


@pytest.fixture
def hooked(captioner, rng):
    """A captioner with a hook, and images of which each second one has no "w7"."""
    inputs = random_images(rng, batch=4)
    inputs["regions"][:, 0, 0] = 1, -1, 1, -1
    captioner.hooks["often"] = Often(captioner.vocabulary, "w7")
    yield captioner, inputs
    captioner.hooks.clear()


def check(captions):
    for i, text in enumerate(captions):
        places = [place for place, word in enumerate(text.split()) if word == "w7"]
        assert places == ([] if i % 2 else [0, 2, 4])


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 3},
        {"beam_size": 4, "groups": 2},
        {"temperature": 2.0, "seed": 1},
        {"required": ("w9",), "beam_size": 3},
    ],
)
def test_each_search_has_them(hooked, options):
    model, inputs = hooked
    captions = model.generate(inputs, max_length=5, min_length=4, **options)
    if "required" in options:
        assert all("w9" in text.split() for text in captions)
        assert ["w7" in text.split() for text in captions] == [True, False] * 2
    else:
        check(captions)


def test_rules_of_options_override_them(hooked):
    model, inputs = hooked
    captions = model.generate(inputs, prefix="w7 w7", max_length=6)
    assert all(text.startswith("w7 w7") for text in captions)
    captions = model.generate(inputs, forbidden=("w7",), max_length=6)
    assert not any("w7" in text.split() for text in captions)


def test_ensembles_and_exports_have_them(hooked, tmp_path):
    model, inputs = hooked
    options = {"max_length": 5, "min_length": 4}
    ensemble = kc.models.Ensemble([model])
    ensemble.hooks.update(model.hooks)
    check(ensemble.generate(inputs, **options))
    own = model.decoding
    model.decoding = kc.decoding.Decoding(**options)
    kc.serving.export(model, tmp_path / "1")
    model.decoding = own
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["features"]
    answer = served(**{n: tf.constant(inputs[n]) for n in ("regions", "boxes")})
    check([x.decode() for x in answer["captions"].numpy()])


def test_one_that_is_taken_away_leaves_no_trace(hooked):
    model, inputs = hooked
    check(model.generate(inputs, max_length=5, min_length=4))
    hook = model.hooks.pop("often")
    before = model.generate(inputs, max_length=5, min_length=4)
    assert before != model.generate(inputs, max_length=6, forbidden=("w7",))
    model.hooks["often"] = hook
    check(model.generate(inputs, max_length=5, min_length=4))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"beam_size": 3}, "w3"),
        ({"beam_size": 6, "groups": 2}, "w3"),
        ({"beam_size": 3, "required": ("w3",)}, "w3"),
        ({"beam_size": 3, "required": ("w5",)}, None),
        ({"beam_size": 1}, "w3"),
        ({"temperature": 1.0, "seed": 1}, "w3"),
        ({"beam_size": 1, "min_length": 2}, None),
    ],
)
def test_a_search_of_dead_ends_returns_what_could_have_ended(
    captioner, monkeypatch, rng, options, text
):
    words = ["w5", "w6", "w7", "w8"]
    dead_ends = DeadEnds(captioner.vocabulary, words)
    monkeypatch.setitem(captioner.hooks, "dead ends", dead_ends)
    inputs = random_images(rng, batch=2)
    if text is None:
        with pytest.raises(kc.InputError, match="leave none"):
            captioner.generate(inputs, max_length=5, **options)
        return
    assert captioner.generate(inputs, max_length=5, **options) == [text] * 2
    _, scores = captioner.generate_tokens(inputs, max_length=5, **options)
    assert (np.array(scores) > -50).all()  # a log-probability
