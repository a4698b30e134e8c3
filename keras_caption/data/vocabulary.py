from itertools import chain

from keras_caption.data.datasets import read
from keras_caption.data.examples import references
from keras_caption.errors import InputError
from keras_caption.text import Vocabulary

SPLITS = ("train", "all")


def build_vocabulary(builder, min_count=5, split="train"):
    """Builds the vocabulary of a dataset's captions.

    With `split="train"` nothing is known of the other captions. With `"all"` words
    are counted as for the published vocabularies of COCO, in all images of
    Karpathy's file whatever their split: more than five times (`min_count=6`) for the
    9,487 words of NG-SAN, UNK included, and at least five times for the 10,369 of
    AoANet.

    Args:
        builder: What `load` returned.
        min_count: int, least number of occurrences of a word.
        split: `"train"` or `"all"`, the images whose captions are counted.

    Returns:
        `keras_caption.text.Vocabulary`.

    Raises:
        InputError: If `split` is neither.
    """
    if split not in SPLITS:
        raise InputError(
            f"The split of a vocabulary must be {' or '.join(SPLITS)}, not {split!r}."
        )
    if split == "all":
        infos = builder.info.splits.items()
        split = "+".join(name for name, info in infos if info.num_examples)
    captions = references(read(builder, split)).values()
    return Vocabulary.build(chain(*captions), min_count)
