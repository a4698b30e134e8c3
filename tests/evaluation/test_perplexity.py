import unicodedata

import keras
import numpy as np
import pytest

import keras_caption as kc
from keras_caption.evaluation import perplexity

SOURCES = ["ab", "", "b a b é", "a" * 9]
REFERENCES = ["ba", "a", "ü b", "bab ab a"]


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(2)
    tokenizer = kc.text.CharacterTokenizer("ab ")
    return kc.models.LSTMTranslator(tokenizer, tokenizer, num_layers=1, model_dim=8)


def log_probability(model, source, target):
    """One pair, alone, in float64 from the logits on."""
    ids = model.target.encode(target)
    logits = model(
        {
            "source": np.array([model.source.encode(source)[1:]]),
            "tokens": np.array([ids[:-1]]),
        }
    )
    logits = np.array(logits[0], "float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return sum(log_probs[t, token] for t, token in enumerate(ids[1:]))


@pytest.mark.parametrize("limit", [2**25, 1, 8000])  # all at once, one by one, few
def test_it_is_the_mean_over_characters_and_ends(model, monkeypatch, limit):
    monkeypatch.setattr(perplexity, "BATCH", limit)
    pairs = zip(SOURCES, REFERENCES, strict=True)
    total = sum(log_probability(model, *pair) for pair in pairs)
    expected = total / (sum(map(len, REFERENCES)) + len(REFERENCES))
    typed = [unicodedata.normalize("NFD", text) for text in REFERENCES]
    for references in (REFERENCES, typed):
        found = kc.evaluation.log_perplexity(model, SOURCES, references)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_endless_sentences_are_skipped_and_counted(model):
    expected = kc.evaluation.log_perplexity(model, SOURCES, REFERENCES)
    long = "a" * 10_000
    sources, references = [*SOURCES, long, "a"], [*REFERENCES, "b", long]
    with pytest.warns(UserWarning, match="2 of 6 pairs"):
        found = kc.evaluation.log_perplexity(model, sources, references)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(kc.InputError, match="one reference"):
        kc.evaluation.log_perplexity(model, SOURCES, ["a"])
