"""Searches, n-best lists and bad input of translators, in Python and served."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_caption as kc
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.text import BOS, EOS, PAD

SENTENCES = ["a dog runs", "a", "wo 狗 ሰላም\u200b 🦊"]
SEARCHES = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 3, "length_penalty": 0.6},
    "sample": {"temperature": 1.0, "seed": 1},
}
LIMIT = {"length_ratio": 0.5, "length_margin": 1}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(1)
    tokenizer = kc.text.CharacterTokenizer("abcdefgnoruw .")
    return kc.models.LSTMTranslator(tokenizer, tokenizer, num_layers=1, model_dim=8)


@pytest.mark.parametrize("search", SEARCHES)
def test_lengths_are_limited_by_the_source(model, search):
    options = {"max_length": 16, **SEARCHES[search]}
    batch = model.to_batch(SENTENCES)
    limits = (batch["source"] != PAD).sum(1) // 2 + 1
    tokens, scores = model.generate_tokens(SENTENCES, **LIMIT, **options)
    lengths = (tokens != PAD).sum(1)
    assert (lengths == np.minimum(limits, 16)).all()  # these weights never end
    ends = tokens[np.arange(3), lengths - 1] == EOS
    np.testing.assert_array_equal(ends, limits < 16)
    given = np.pad(tokens, ((0, 0), (1, 0)), constant_values=BOS)[:, :-1]
    logits = ops.log_softmax(model({**batch, "tokens": given}))
    taken = np.take_along_axis(np.array(logits), tokens[..., None], -1)[..., 0]
    np.testing.assert_allclose((taken * (tokens != PAD)).sum(1), scores, atol=1e-4)
    wide = model.generate_tokens(SENTENCES, length_ratio=16, **options)[0]
    whole = model.generate_tokens(SENTENCES, length_ratio=None, **options)[0]
    np.testing.assert_array_equal(wide, whole)


def test_n_best_are_the_beam(model):
    options = {"max_length": 5, "length_penalty": 0.6, **LIMIT}
    options["beam_size"] = 3
    lists = model.generate(SENTENCES, n=2, **options)
    inputs = model.read(SENTENCES)
    search = kc.decoding.Decoding(**options)
    limits = model.limits(inputs, search)
    beam = kc.decoding.beam_search(
        model, model.encode(inputs), search, {"limits": limits}
    )
    tokens, scores = map(np.array, beam)
    for found, rows, expected in zip(lists, tokens[:, :2], scores[:, :2], strict=True):
        assert [text for text, _ in found] == [model.target.decode(r) for r in rows]
        np.testing.assert_allclose([s for _, s in found], expected, atol=1e-5)
    assert [best for (best, _), *_ in lists] == model.generate(SENTENCES, **options)
    alone = model.generate(["a"], n=3, max_length=5, length_ratio=0, length_margin=0)
    assert [text for text, _ in alone[0]] == [""]  # there is no other translation
    several = model.translate(["", *SENTENCES], n=2, batch_size=2, **options)
    assert [[text for text, _ in found] for found in several] == [
        [],
        *([text for text, _ in found] for found in lists),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "`n`: Input should be greater"),
        ({"n": 3, "beam_size": 2}, "A beam of 2 does not hold the 3 best"),
        ({"n": 2, "stream": True}, "`stream` yields texts only"),
        ({"prefix": ["a", "b"]}, "there are 2 texts for 1 examples"),
        ({"prefix": "狗"}, "`prefix`: .* the model does not know"),
        ({"forbidden": [""]}, "`forbidden`: '' has no words"),
        ({"required": ["abcd"], "max_length": 3}, "do not fit into a `max_length`"),
        (
            {"n": 2, "length_ratio": None, "length_margin": 3},
            "`length_margin` needs `length_ratio`",
        ),
    ],
)
def test_wrong_options_are_named(model, options, message):
    with pytest.raises(kc.InputError, match=message):
        model.generate(["a"], **options)


def test_images_have_no_length(captioner, rng):
    from conftest import random_images

    with pytest.raises(kc.InputError, match="`length_ratio` is for models of text"):
        captioner.generate(random_images(rng), length_ratio=1.0)


LONG = "a" * 10_000


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (["a", LONG], f"Sentence 1 of the batch has more than {MAX_TOKENS:,} tokens"),
        ({"source": [[5, 400, EOS]]}, "Sentence 0 .* tokens of another tokenizer"),
        (["a", "\ud800"], "Sentence 1 has half of a surrogate pair"),
        (["a", None], "Sentences should be a list of str"),
        ([b"a"], "Sentences should be a list of str"),
        (None, "Sentences should be a list of str"),
        (7, "Sentences should be a list of str"),
    ],
)
def test_bad_sentences_are_refused(model, raw, message):
    with pytest.raises(kc.InputError, match=message):
        model.generate(raw)


@pytest.mark.parametrize("raw", ["a", ["a", None], None, ["\ud800"]])
def test_only_lists_of_sentences_are_translated(model, raw):
    with pytest.raises(kc.InputError, match=r"list of str|surrogate"):
        model.translate(raw)


def test_no_memory_is_taken_for_an_endless_sentence(model):
    for source in (tf.constant(["a", LONG]), tf.ones((2, 5000))):
        read = model.kinds[0].from_served({"source": source})
        assert read["source"].shape == (2, MAX_TOKENS + 1)


def test_a_served_model_answers_bad_sentences_too(model, tmp_path):
    options = {"beam_size": 2, "max_length": 6, **LIMIT}
    kc.serving.export(model, tmp_path / "1", **options)
    signatures = tf.saved_model.load(str(tmp_path / "1")).signatures
    texts = [*SENTENCES, "", LONG, "  "]
    with pytest.warns(UserWarning, match="1 of 6 sentences have more than 1,024"):
        expected = model.translate(texts, **options)
    source = tf.constant(texts)
    answers = signatures["serving_default"](source=source)
    assert [x.decode() for x in answers["translations"].numpy()] == expected
    scores = answers["scores"].numpy()
    np.testing.assert_array_equal(np.isinf(scores), [0, 0, 0, 1, 1, 0])
    several = signatures["n_best"](source=source)
    lists = model.generate(SENTENCES, n=2, **options)
    for i, found in enumerate(lists):
        answered = [x.decode() for x in several["translations"].numpy()[i]]
        assert answered == [text for text, _ in found]
        np.testing.assert_allclose(
            several["scores"].numpy()[i], [s for _, s in found], atol=1e-4
        )
    assert np.isinf(several["scores"].numpy()[3:5]).all()
    greedy = signatures["greedy"](source=source)["tokens"].numpy()[:3]
    alone, _ = model.generate_tokens(SENTENCES, **{**options, "beam_size": 1})
    np.testing.assert_array_equal(greedy, alone)
    source = tf.constant(model.to_batch(SENTENCES)["source"])
    by_tokens = signatures["tokens"](source=source)["tokens"]
    np.testing.assert_array_equal(by_tokens, answers["tokens"][:3])
