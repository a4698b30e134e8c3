from collections.abc import Mapping, Sequence
from typing import Any

from keras_caption.base.errors import missing_extras
from keras_caption.evaluation.captions import check_captions, check_words, normalize


def cider(
    captions: Mapping[Any, str],
    references: Mapping[Any, Sequence[str]],
    characters: bool = False,
) -> float:
    """Computes CIDEr-D of captions without Java, for validation during training.

    The result differs from the `CIDEr-D` of `score` only in the tokenizer:
    `keras_caption.text.split_words` replaces a Java program, and is fast enough for
    every epoch. By characters the results are equal.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.
        characters: bool, whether each character counts as a word. Defaults to
            `False`.

    Returns:
        float, the mean over images.

    Raises:
        InputError: If there are no captions, or an image has no references, or none
            with a word.
    """
    scores = cider_by_image(captions, references, characters)
    return sum(scores.values()) / len(scores)


def cider_by_image(
    captions: Mapping[Any, str],
    references: Mapping[Any, Sequence[str]],
    characters: bool = False,
) -> dict[Any, float]:
    """Computes the CIDEr-D of each caption, see `cider`.

    Args:
        captions, references, characters: See `cider`.

    Returns:
        dict from image id to float.

    Raises:
        InputError: See `cider`.
    """
    with missing_extras():
        from pycocoevalcap.cider.cider import Cider

    check_captions(captions, references)
    generated = {i: [normalize(text, characters)] for i, text in captions.items()}
    expected = {i: [normalize(x, characters) for x in references[i]] for i in captions}
    check_words(expected, references)
    _, scores = Cider().compute_score(expected, generated)
    return dict(zip(expected, map(float, scores), strict=True))
