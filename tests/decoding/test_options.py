import dataclasses
import inspect
import itertools
import re

import numpy as np
import pytest
from conftest import PROJECT, random_images

import keras_caption as kc
from keras_caption.decoding import Decoding
from keras_caption.text import BOS

TRIPLES = [*map(" ".join, itertools.product([f"w{i}" for i in range(22)], repeat=3))]
MISTAKES = [
    ({"top_k": 5}, "`top_k` needs `temperature`"),
    ({"length_margin": 5}, "`length_margin` needs `length_ratio`"),
    ({"beam_size": 1, "length_penalty": 1.0}, "`length_penalty` needs a beam"),
    ({"seed": 1}, "`seed` needs `temperature`"),
    ({"temperature": 1.0, "beam_size": 2}, "`beam_size` needs a search"),
    ({"beam_width": 3}, "no decoding option .beam_width.\\. Did you mean beam_size"),
    ({"colour": 1.2}, "option 'colour'. Valid names are beam_"),
    ({"top_p": 0.5}, "`top_p` needs `temperature`"),
    ({"groups": 2, "beam_size": 1}, "`groups` needs a beam"),
    ({"groups": 2}, "A beam of 3 cannot be divided into 2"),
    ({"diversity": 0.5}, "`diversity` needs `groups`"),
    ({"required": ["w1"], "temperature": 1.0}, "`required` needs a search"),
    ({"required": ["w1 w2"], "forbidden": "w3,w2"}, "'w1 w2' is `forbidden`"),
    (
        {"required": ["w1 w2"], "prefix": "w3 w4", "max_length": 3},
        "`required`: 2 tokens beside 2 of `prefix` do not fit into a `max_length` of 3",
    ),
    (
        {"required": [f"w{i} w{i + 1}" for i in range(29)]},
        "`required`: 30 tokens do not fit into a `max_length` of 20",
    ),
    (
        {"forbidden": ["w1 " * 1000, *TRIPLES]},
        "`forbidden`: 10,649 phrases of up to 1,000 tokens have more than 10,000,000",
    ),
    (
        {"required": ["w1 w1"], "no_repeat_ngram": 1},
        "no text for image 0: `required`, `no_repeat_ngram` and a `max_length` of 20",
    ),
    ({"required": ["w1"], "groups": 3}, "`required` needs a beam that is not divided"),
    ({"min_length": 21}, "`min_length` of 21 is more than a `max_length` of 20"),
    ({"repetition_penalty": 0.9}, "`repetition_penalty`: Input should be greater"),
    ({"beam_size": 0}, "`beam_size`: Input should be greater than or equal to 1"),
    ({"beam_size": 2.0}, "`beam_size`: Input should be a valid integer"),
    ({"beam_size": 101}, "`beam_size`: Input should be less than or equal to 100"),
    ({"max_length": 4097}, "`max_length`: Input should be less than or equal to 4096"),
    ({"max_length": 0}, "`max_length`: Input should be greater than or equal to 1"),
    ({"length_penalty": float("nan")}, "`length_penalty`: Input should be a finite"),
    ({"length_penalty": 1e38}, "`length_penalty`: Input should be less than or equal"),
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
    ensemble = kc.models.Ensemble([model])
    assert ensemble.decoding == own
    assert model.generate_tokens(images, max_length=4)[0].shape == (3, 4)
    # What of the model's own has no effect on samples is no mistake.
    assert model.generate_tokens(images, temperature=1.0)[0].shape == (3, 5)
    with pytest.raises(kc.InputError, match="`length_ratio` is for models of text"):
        kc.models.create("ngsan", vocabulary_size=9, decoding=Decoding(length_ratio=1))
    for each in (model, ensemble):
        with pytest.raises(kc.InputError, match=r"`\. Received: {'beam_size': 3"):
            each.decoding = {"beam_size": 3}
    assert model.decoding == own


def test_the_document_has_every_option():
    lines = (PROJECT / "docs/library.md").read_text().splitlines()
    start = lines.index("| options | for |") + 2
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    names = [field.name for field in dataclasses.fields(Decoding)]
    assert sorted(listed) == sorted(names)


def test_texts_constrain_what_a_model_generates(captioner, rng):
    images = random_images(rng)
    short = {"max_length": 6, "batch_size": 2}
    prefixes = ["w3 w9", "", "w7"]
    options = {**short, "prefix": prefixes, "forbidden": ["w1", "w2 w4", "w1 new"]}
    texts = captioner.generate(images, required=["w5 w6"], **options)
    for text, prefix in zip(texts, prefixes, strict=True):
        assert f"{text} ".startswith(prefix)
        assert "w5 w6" in text
        assert "w1" not in text.split()
    overlapping = {"prefix": "w9 w3", "required": ["w3 w4 w5", "w5 w6"]}
    for text in captioner.generate(images, **overlapping, max_length=5):
        assert text == "w9 w3 w4 w5 w6"
    sampled = captioner.generate(images, n=2, temperature=1.0, seed=1, **short)
    assert [len(found) for found in sampled] == [2, 2, 2]
    first, _ = captioner.generate_tokens(
        images, n=2, temperature=1.0, seed=1, max_length=6
    )
    texts = [[captioner.vocabulary.decode(row) for row in rows] for rows in first]
    assert [[text for text, _ in found] for found in sampled] == texts


@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"required": ["w5"]}, {"temperature": 1.0, "seed": 3}],
)
def test_streams_grow_to_what_is_generated(options, captioner, rng):
    images = random_images(rng)
    options = {**options, "max_length": 6, "batch_size": 2}
    expected = captioner.generate(images, **options)
    streamed = list(captioner.generate(images, stream=True, **options))
    assert streamed[-1] == expected
    assert len(streamed) > 3
    if "required" not in options:
        pairs = itertools.pairwise(texts[0] for texts in streamed)
        assert all(longer.startswith(text) for text, longer in pairs)


def test_attention_is_that_of_the_model(captioner, rng):
    images = random_images(rng)
    short = {"max_length": 5, "beam_size": 2}
    tokens, _ = captioner.generate_tokens(images, **short)
    given = np.pad(tokens, ((0, 0), (1, 0)), constant_values=BOS)[:, :-1]
    memory = captioner.encode(captioner.read(images))
    expected = np.array(captioner.attention(given, memory))
    pairs = captioner.generate(images, attention=True, **short)
    for (text, weights), row, own in zip(pairs, tokens, expected, strict=True):
        assert text == captioner.vocabulary.decode(row)
        np.testing.assert_allclose(weights, own[: np.count_nonzero(row)], atol=1e-5)
    best = captioner.generate(images, n=2, attention=True, **short)
    np.testing.assert_allclose(best[1][0][2], pairs[1][1], atol=1e-5)


def test_iterables_are_read_batch_by_batch(captioner, rng, capfd):
    images = random_images(rng, batch=5)
    short = {"max_length": 5, "beam_size": 2, "batch_size": 2}
    expected = captioner.generate(images, progress=True, **short)
    assert "5/5 images" in capfd.readouterr().err
    starts = iter((0, 2, 4))
    batches = ({n: x[i : i + 2] for n, x in images.items()} for i in starts)
    results = captioner.generate(batches, progress=True, **short)
    assert results == expected
    assert "5 images" in capfd.readouterr().err
    with pytest.raises(kc.InputError, match="list of `prefix` needs a list of exam"):
        captioner.generate(iter([images]), prefix=["w1"] * 5, **short)


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
