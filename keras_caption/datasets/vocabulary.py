from itertools import chain
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.batches.examples import references
from keras_caption.datasets.registry import read
from keras_caption.text import CharacterTokenizer, Tokenizer, Vocabulary

TOKENIZERS: dict[str, type[Vocabulary] | type[CharacterTokenizer]] = {
    "words": Vocabulary,
    "characters": CharacterTokenizer,
}
SPLITS = ("train", "all")


def build_vocabulary(
    builder: Any,
    min_count: int = 5,
    split: str = "train",
    tokenizer: str = "words",
) -> Tokenizer:
    """Builds the vocabulary of a dataset's captions.

    With `split="train"`, the captions of other splits have no influence. With `"all"`,
    words are counted in all images of Karpathy's file, as for the published
    vocabularies of COCO: words with more than five occurrences (`min_count=6`) are the
    9,487 of NG-SAN, UNK included, and words with at least five the 10,369 of AoANet.

    Args:
        builder: TFDS builder, from `load`.
        min_count: int, least number of occurrences of a word, or of a character.
            Defaults to 5.
        split: `"train"` or `"all"`, the images whose captions are counted. Defaults to
            `"train"`.
        tokenizer: `"words"` or `"characters"`, what a token is. Defaults to `"words"`.

    Returns:
        `keras_caption.text.Vocabulary` or `keras_caption.text.CharacterTokenizer`.

    Raises:
        InputError: If `split` or `tokenizer` is unknown.
    """
    if split not in SPLITS:
        raise InputError(
            f"The split of a vocabulary must be {' or '.join(SPLITS)}, not {split!r}."
        )
    if tokenizer not in TOKENIZERS:
        raise InputError(
            f"The tokenizer of captions must be {' or '.join(TOKENIZERS)}, not "
            f"{tokenizer!r}."
        )
    if split == "all":
        infos = builder.info.splits.items()
        split = "+".join(name for name, info in infos if info.num_examples)
    captions = references(read(builder, split)).values()
    return TOKENIZERS[tokenizer].build(chain(*captions), min_count)
