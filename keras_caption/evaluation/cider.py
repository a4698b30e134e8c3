from collections.abc import Mapping, Sequence
from typing import Any

from pycocoevalcap.cider.cider import Cider

from keras_caption.evaluation.captions import check_captions
from keras_caption.text import split_words


def cider(
    captions: Mapping[Any, str], references: Mapping[Any, Sequence[str]]
) -> float:
    """Computes CIDEr-D of captions without Java, for validation during training.

    It differs from the `CIDEr-D` of `score` only in the tokenizer, which is
    `keras_caption.text.split_words` instead of a Java program and fast enough for
    every epoch.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.

    Returns:
        float, the mean over images.

    Raises:
        InputError: If there are no captions, or an image has no references.
    """
    check_captions(captions, references)

    def normalize(text):
        return " ".join(split_words(text))

    generated = {i: [normalize(caption)] for i, caption in captions.items()}
    expected = {i: list(map(normalize, references[i])) for i in captions}
    return float(Cider().compute_score(expected, generated)[0])
