import dataclasses
import functools
import itertools
from collections.abc import Callable

import tensorflow as tf
import tensorflow_datasets as tfds

from keras_caption.base.errors import InputError, need_name
from keras_caption.base.registration import Registry
from keras_caption.datasets.building import build, make_builder
from keras_caption.formats.parallel_text import find_parallel

AT_ONCE = 1024  # pairs that Python passes to TensorFlow at once
BUILT_IN = Registry("parallel text")  # classes of TFDS builders


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """Sentences in a source language, and their translations.

    Attributes:
        source, target: Languages, such as `"en"` and `"de"`.
        read: Function from `"train"`, `"val"` or `"test"` to the pairs of that split: a
            tf.data dataset of dicts of string scalars, `source` and `target`, always in
            the same order.
    """

    source: str
    target: str
    read: Callable[[str], tf.data.Dataset]


def load_parallel(
    name: str,
    folder=None,
    source: str = "en",
    target: str = "de",
    test_set: str | None = None,
    **kwargs,
) -> ParallelText:
    """Loads parallel text.

    Args:
        name: str. `"scene_sentences"`, which is built in, English and German;
            `"parallel"`, files in `folder`; or `"wmt14_translate"`, which TFDS
            downloads.
        folder: Path. For `"parallel"`, the folder of `train.*`, `val.*` and `test.*`,
            with the languages as suffixes, plain or as `.gz`.
        source, target: Languages.
        test_set: str, which files of the folder are for test, see `find_parallel`.
        **kwargs: Further arguments of the TFDS builder, such as `data_dir`.

    Raises:
        InputError: If the dataset or a language is unknown, or the files of the folder
            are missing, damaged, or differ in their number of lines.
    """
    known = (*BUILT_IN, "parallel", "wmt14_translate")
    need_name(name, known, f"There is no parallel text {name!r}")
    if (name == "parallel") != (folder is not None):
        raise InputError("A folder of files is what the dataset 'parallel' reads.")
    if folder is not None:
        for argument in kwargs:
            raise InputError(f"A folder of files takes no {argument!r}.")
        return from_folder(folder, source, target, test_set)
    if test_set is not None:
        raise InputError(
            f"The dataset {name} has one test set: test_set is of folders."
        )
    if name in BUILT_IN:
        make = BUILT_IN[name]
    else:
        config = find_languages(name, source, target)
        make = functools.partial(tfds.builder, f"{name}/{config}")
    return from_builder(lambda: make_builder(name, make, **kwargs), source, target)


def find_languages(name, source, target):
    """Returns the name of the TFDS config of two languages, one of them English."""
    configs = [config.name for config in tfds.builder_cls(name).BUILDER_CONFIGS]
    existing = {f"{source}-{target}", f"{target}-{source}"} & {*configs}
    if not existing:
        others = ", ".join(config.removesuffix("-en") for config in configs)
        raise InputError(
            f"The dataset {name} translates between en and one of {others}, not "
            f"{source} and {target}."
        )
    return existing.pop()


def from_folder(folder, source, target, test_set=None):
    """Reads parallel text in a folder; skips pairs with an empty sentence."""
    files = find_parallel(folder, source, target, test_set)
    for pair in files.values():
        # Counting reads all lines, which finds faults before training.
        if not sum(1 for _ in sentences(pair)):
            raise InputError(f"{pair.source} and {pair.target} have no sentences.")

    def read(split):
        def batches():
            pairs = sentences(files[split])
            while batch := list(itertools.islice(pairs, AT_ONCE)):
                sources, targets = zip(*batch, strict=True)
                yield {"source": [*sources], "target": [*targets]}

        texts = tf.TensorSpec((None,), tf.string)
        return tf.data.Dataset.from_generator(
            batches, output_signature={"source": texts, "target": texts}
        ).unbatch()

    return ParallelText(source, target, read)


def sentences(files):
    """Yields pairs of sentences, stripped, neither of which is empty."""
    for pair in files:
        source, target = (text.strip() for text in pair)
        if source and target:
            yield source, target


def from_builder(make, source, target):
    """Reads parallel text from a TFDS builder of `tfds.features.Translation`."""
    builder = make()
    languages = builder.info.features.keys()
    if {source, target} != set(languages):
        raise InputError(
            f"The dataset {builder.name} has the languages {' and '.join(languages)}, "
            f"not {source} and {target}."
        )
    builder = build(make)

    def read(split):
        if split == "val" and split not in builder.info.splits:
            split = "validation"
        examples = builder.as_dataset(split=split, shuffle_files=False)
        return examples.map(
            lambda pair: {"source": pair[source], "target": pair[target]}
        )

    return ParallelText(source, target, read)
