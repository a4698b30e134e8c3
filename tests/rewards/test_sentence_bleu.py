import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from keras_caption.rewards import SentenceBleu
from keras_caption.text import EOS, PAD


def sacrebleu_scores(captions, references, skipped=()):
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="add-k", smooth_value=1)

    def text(row):
        return " ".join(str(x) for x in row if x not in (PAD, *skipped))

    return [
        metric.sentence_score(text(row), [text(x) for x in rows if x.any()]).score / 100
        for row, rows in zip(captions, references, strict=True)
    ]


def random_texts(rng, shape, least, length=9):
    """Texts of at least so many tokens, few of them distinct, and EOS."""
    tokens = rng.integers(4, 9, (*shape, length))
    ends = rng.integers(least, length, (*shape, 1))
    places = np.arange(length)
    tokens = np.where(places < ends, tokens, np.where(places == ends, EOS, PAD))
    return tokens.astype("int32")


@pytest.mark.parametrize("method", ["plain", "any shape", "xla"])
@pytest.mark.parametrize("include_eos", [True, False])
def test_equals_sacrebleu(rng, method, include_eos):
    references = random_texts(rng, (80, 4), 1)
    for i in range(80):
        references[i, 1 + i % 4 :] = PAD  # one to four references
    captions = random_texts(rng, (80,), 1)
    captions[0] = references[0, 0]
    captions[1] = [5] * 9  # truncated, longer than its references
    captions[2] = [90, 91, EOS] + [PAD] * 6  # tokens that no reference has
    reward = SentenceBleu(include_eos)
    if method == "any shape":
        signature = [tf.TensorSpec((None,) * rank, tf.int32) for rank in (2, 3)]
        reward = tf.function(reward, input_signature=signature)
    elif method == "xla":
        reward = tf.function(reward, jit_compile=True)
    scores = np.array(reward(captions, references))
    skipped = () if include_eos else (EOS,)
    expected = sacrebleu_scores(captions, references, skipped)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert scores[0] == 1
    assert np.isclose(scores[2], 0) != include_eos  # EOS is right


def test_several_texts_of_an_example_empty_ones_and_unknown_tokens(rng):
    references, texts = random_texts(rng, (6, 2), 1), random_texts(rng, (6, 3), 0)
    texts[0, 0] = PAD
    reward = SentenceBleu()
    together = np.array(reward(texts.reshape(18, -1), references)).reshape(6, 3)
    for c in range(3):
        alone = reward(texts[:, c], references)
        np.testing.assert_allclose(together[:, c], alone, atol=1e-6)
    assert together[0, 0] == 0
    texts[1, 2, 0] = 50_000
    scores = np.array(reward(texts.reshape(18, -1), references))
    assert np.isnan(scores).nonzero()[0].tolist() == [5]
