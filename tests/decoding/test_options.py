import dataclasses
import inspect

import numpy as np
import pytest
from conftest import random_images

import keras_caption as kc
from keras_caption.decoding import Decoding

MISTAKES = [
    ({"top_k": 5}, "`top_k` needs `temperature`"),
    ({"length_margin": 5}, "`length_margin` needs `length_ratio`"),
    ({"beam_size": 1, "length_penalty": 1.0}, "`length_penalty` needs a beam"),
    ({"seed": 1}, "`seed` needs `temperature`"),
    ({"temperature": 1.0, "beam_size": 2}, "`beam_size` needs a search"),
    ({"beam_width": 3}, "no decoding option .beam_width.\\. Did you mean beam_size"),
    ({"repetition_penalty": 1.2}, "option 'repetition_penalty'. Valid names are beam_"),
    ({"beam_size": 0}, "`beam_size`: Input should be greater than or equal to 1"),
    ({"beam_size": 2.0}, "`beam_size`: Input should be a valid integer"),
    ({"beam_size": 101}, "`beam_size`: Input should be less than or equal to 100"),
    ({"max_length": 4097}, "`max_length`: Input should be less than or equal to 4096"),
    ({"max_length": 0}, "`max_length`: Input should be greater than or equal to 1"),
    ({"length_penalty": float("nan")}, "`length_penalty`: Input should be a finite"),
    ({"length_penalty": -1}, "`length_penalty`: Input should be greater than or equal"),
    ({"no_repeat_ngram": "no"}, "`no_repeat_ngram`: Input should be a valid integer"),
    ({"temperature": 0}, "`temperature`: Input should be greater than 0, received 0"),
    ({"temperature": -1.0}, "`temperature`: Input should be greater than 0"),
    ({"temperature": float("nan")}, "`temperature`: Input should be a finite number"),
    ({"temperature": True}, "`temperature`: Input should be a valid number"),
    ({"temperature": 1.0, "top_k": 0}, "`top_k`: Input should be greater than or"),
    ({"temperature": 1.0, "seed": -1}, "`seed`: Input should be greater than or equal"),
    ({"temperature": 1.0, "seed": 2**32}, "`seed`: Input should be less than"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes_are_named(options, message, captioner, rng):
    with pytest.raises(kc.InputError, match=message):
        captioner.generate(random_images(rng), **options)


def test_a_model_keeps_its_own_and_a_keyword_overrides(captioner, rng, tmp_path):
    images = random_images(rng)
    given = {"beam_size": 2, "max_length": 5, "length_penalty": 0.7}
    own = Decoding(**given)
    expected, _ = captioner.generate_tokens(images, **given)
    captioner.save(tmp_path / "model.keras")
    model = kc.models.load(tmp_path / "model.keras")
    assert model.decoding == Decoding()
    model.decoding = own
    np.testing.assert_array_equal(model.generate_tokens(images)[0], expected)
    model.save(tmp_path / "model.keras")
    model = kc.models.load(tmp_path / "model.keras")
    assert model.decoding == own
    assert kc.models.Ensemble([model]).decoding == own
    assert model.generate_tokens(images, max_length=4)[0].shape == (3, 4)
    # What of the model's own has no effect on samples is no mistake.
    assert model.generate_tokens(images, temperature=1.0)[0].shape == (3, 5)
    with pytest.raises(kc.InputError, match="`length_ratio` is for models of text"):
        kc.models.create("ngsan", vocabulary_size=9, decoding=Decoding(length_ratio=1))


def test_signatures_name_the_options():
    names = {field.name for field in dataclasses.fields(Decoding)}
    for function in (
        kc.models.Captioner.generate,
        kc.models.Captioner.generate_tokens,
        kc.models.Translator.translate,
        kc.serving.export,
    ):
        assert names <= {*inspect.signature(function).parameters}


def test_greedy_search_repeats_no_ngram_if_asked(captioner, rng):
    images = random_images(rng)
    options = {"beam_size": 1, "max_length": 8}
    tokens, _ = captioner.generate_tokens(images, no_repeat_ngram=3, **options)
    for row in tokens:
        words = [token for token in row if token]
        trigrams = list(zip(words, words[1:], words[2:], strict=False))
        assert len(set(trigrams)) == len(trigrams)
    tokens, _ = captioner.generate_tokens(images, **options)
    assert (tokens[:, :3] == tokens[:, 3:6]).all(axis=1).any()  # else repeated
