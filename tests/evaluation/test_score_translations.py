import math

import numpy as np
import pytest

import keras_caption as kc

REFERENCES = [
    "the small red star is below the moon .",
    "a well-known blue-green house is large .",
]
TRANSLATIONS = [
    "the small star is below the moon .",
    "a well-known blue green house is large .",
]


def bleu(translations, references):
    """BLEU-4 of a corpus from its definition, on tokens as they are."""
    matches, totals = [0] * 4, [0] * 4
    for found, true in zip(translations, references, strict=True):
        found, true = found.split(), true.split()
        for n in range(1, 5):
            grams = [tuple(found[i : i + n]) for i in range(len(found) - n + 1)]
            true_grams = [tuple(true[i : i + n]) for i in range(len(true) - n + 1)]
            totals[n - 1] += len(grams)
            matches[n - 1] += sum(
                min(grams.count(gram), true_grams.count(gram)) for gram in set(grams)
            )
    mean = sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4
    lengths = [sum(len(t.split()) for t in side) for side in (translations, references)]
    return math.exp(min(0, 1 - lengths[1] / lengths[0]) + mean)


def test_bleu_of_tokenized_text_is_its_definition():
    scores, signatures = kc.evaluation.score_translations(
        TRANSLATIONS, REFERENCES, tokenized=True
    )
    assert scores["BLEU"] == pytest.approx(bleu(TRANSLATIONS, REFERENCES))
    assert "tok:none" in signatures["BLEU"]
    assert scores["exact"] == 0


def test_bleu_follows_from_sums_over_sentences():
    translations = ["a cat sits on the mat", "dogs run", "a red ball is here ."]
    references = ["a cat sat on the mat", "two dogs run fast", "a red ball is there ."]
    for count in (3, 2):  # of the first two, no four words in a row are right
        some, of_these = translations[:count], references[:count]
        statistics = kc.evaluation.bleu_statistics(some, of_these)
        found = kc.evaluation.SCORES["BLEU"](np.sum(statistics, axis=0))
        scores, _ = kc.evaluation.score_translations(some, of_these)
        assert found == pytest.approx(scores["BLEU"])
        assert found > 0


def test_compounds_are_split_in_both():
    scores, signatures = kc.evaluation.score_translations(
        TRANSLATIONS, REFERENCES, tokenized=True, split_compounds=True
    )
    split = [
        [text.replace("l-k", "l ##AT##-##AT## k").replace("e-g", "e ##AT##-##AT## g")]
        for text in TRANSLATIONS + REFERENCES
    ]
    split = [text for (text,) in split]
    assert scores["BLEU"] == pytest.approx(bleu(split[:2], split[2:]))
    assert signatures["BLEU"].endswith("|compounds:split")


def test_raw_text_is_tokenized_by_sacrebleu():
    raw = ["The moon, the star."], ["The moon, a star."]
    scores, signatures = kc.evaluation.score_translations(*raw)
    tokens = ["The moon , the star ."], ["The moon , a star ."]
    tokenized, _ = kc.evaluation.score_translations(*tokens, tokenized=True)
    assert scores["BLEU"] == pytest.approx(tokenized["BLEU"])
    assert "tok:13a" in signatures["BLEU"]
    same, _ = kc.evaluation.score_translations(["a b c d e"], ["a b c d e"])
    assert same == pytest.approx({"BLEU": 1, "chrF": 1, "exact": 1})


@pytest.mark.parametrize("sides", [([], []), (["a"], ["a", "b"])])
def test_every_translation_has_a_reference(sides):
    with pytest.raises(kc.InputError, match="one reference"):
        kc.evaluation.score_translations(*sides)


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (("a b", "a b"), "`translations`: 'str' instances are not allowed"),
        ((["a"], [["a"]]), r"`references`: \[0\]: Input should be a valid string"),
    ],
)
def test_both_sides_are_lists_of_texts(sides, message):
    with pytest.raises(kc.InputError, match=message):
        kc.evaluation.score_translations(*sides)
