"""Diversity of several captions of an image."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_caption.base.arguments import TextsByImage, check
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.evaluation.captions import check_captions, check_words
from keras_caption.evaluation.java import java_on_path
from keras_caption.evaluation.ptb_tokenizer import tokenize

DIVERSITY = ("Div-1", "Div-2", "mBLEU-4", "Self-CIDEr")
LONGEST_NGRAM = 4  # words of an n-gram


def diversity(
    captions: Mapping[Any, Sequence[str]], references: Mapping[Any, Sequence[str]]
) -> dict[str, float]:
    """Computes how much the captions of an image differ, on average over images.

    Div-n is the number of distinct n-grams in an image's captions, divided by the
    number of their words. mBLEU-4 is the BLEU-4 of each caption against the others of
    its image: less is more diverse. Self-CIDEr is

        - log(sqrt(l_1) / sum_i sqrt(l_i)) / log n

    over the eigenvalues l of the matrix of CIDEr between the n captions of an image: 0
    if all are equal, 1 if none have an n-gram in common.

    Captions are split by the PTB tokenizer; CIDEr's document frequencies are those of
    the references.

    Args:
        captions: dict from image id to a list of n str, n being at least 2.
        references: dict from image id to a list of str, at least for these images.

    Returns:
        dict from the names in `DIVERSITY` to float.

    Raises:
        InputError: If images have one caption, or different numbers of them, one has
            no references, or captions are no lists of str.

    References:
        Aneja et al., "Sequential Latent Spaces for Modeling the Intention During
        Diverse Image Captioning", ICCV 2019 (Div, mBLEU); Wang and Chan, "Describing
        like Humans: on Diversity in Image Captioning", CVPR 2019 (Self-CIDEr).
    """
    with missing_extras():
        from pycocoevalcap.bleu.bleu import Bleu

    check(TextsByImage, captions=captions)
    check_captions({i: " ".join(texts) for i, texts in captions.items()}, references)
    first, size = next((i, len(texts)) for i, texts in captions.items())
    for i, texts in captions.items():
        if len(texts) < 2:
            raise InputError(
                f"Diversity needs several captions of each image; image {i!r} has "
                f"{len(texts)}."
            )
        if len(texts) != size:
            raise InputError(
                f"Diversity needs as many captions of each image: image {first!r} has "
                f"{size}, image {i!r} has {len(texts)}."
            )
    with java_on_path():
        words = tokenize(captions)
        expected = tokenize({i: references[i] for i in captions})
    check_words(expected, references)
    bleu = []
    for k in range(size):
        others = {i: texts[:k] + texts[k + 1 :] for i, texts in words.items()}
        one = {i: [texts[k]] for i, texts in words.items()}
        bleu.append(Bleu(4).compute_score(others, one, verbose=0)[0][3])
    weights = inverse_frequencies(expected)
    rows = [
        (
            distinct_share(texts, 1),
            distinct_share(texts, 2),
            self_cider(texts, weights, np.log(len(expected))),
        )
        for texts in words.values()
    ]
    div_1, div_2, spread = np.mean(rows, axis=0).tolist()
    scores = div_1, div_2, float(np.mean(bleu)), spread
    return dict(zip(DIVERSITY, scores, strict=True))


def ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    """The n-grams of a text whose words are separated by spaces."""
    words = text.split()
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def distinct_share(texts: Sequence[str], n: int) -> float:
    """Divides the number of distinct n-grams of texts by the number of their words."""
    distinct = {ngram for text in texts for ngram in ngrams(text, n)}
    return len(distinct) / max(sum(len(text.split()) for text in texts), 1)


def inverse_frequencies(
    references: Mapping[Any, Sequence[str]],
) -> dict[tuple[str, ...], float]:
    """CIDEr's weight of each n-gram of references: log(images / images with it)."""
    counts: collections.Counter[tuple[str, ...]] = collections.Counter()
    for texts in references.values():
        counts.update(
            {
                x
                for text in texts
                for n in range(1, LONGEST_NGRAM + 1)
                for x in ngrams(text, n)
            }
        )
    return {x: float(np.log(len(references) / count)) for x, count in counts.items()}


def self_cider(
    texts: Sequence[str], weights: Mapping[tuple[str, ...], float], unknown: float
) -> float:
    """Self-CIDEr of the captions of one image, see `diversity`.

    Args:
        texts: Sequence of str, words separated by spaces.
        weights: Of `inverse_frequencies`.
        unknown: float, weight of the n-grams of no reference.
    """
    kernel = np.zeros((len(texts), len(texts)))
    for n in range(1, LONGEST_NGRAM + 1):
        counts = [collections.Counter(ngrams(text, n)) for text in texts]
        known = sorted({x for of_text in counts for x in of_text})
        factors = np.array([weights.get(x, unknown) for x in known])
        vectors = np.array([[c[x] for x in known] for c in counts]) * factors
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
        kernel += vectors @ vectors.T / LONGEST_NGRAM
    roots = np.sqrt(np.clip(np.linalg.eigvalsh(kernel), 0, None))  # ascending
    if not roots[-1]:  # captions without words that weigh anything
        return 0.0
    return float(-np.log(roots[-1] / roots.sum()) / np.log(len(texts)))
