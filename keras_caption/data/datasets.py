import os
from typing import Any

import tensorflow_datasets as tfds

from keras_caption.data.coco_objects import CocoObjects
from keras_caption.data.scenes import Scenes
from keras_caption.errors import InputError, hint
from keras_caption.formats.prepared_folder import read_prepared

DATASETS = ("scenes", "coco_objects", "prepared")


def check_name(name: str) -> None:
    """Raises `InputError` if there is no dataset of this name."""
    if name not in DATASETS:
        raise InputError(f"There is no dataset {name!r}. {hint(name, DATASETS)}")


def load(name: str, folder: str | os.PathLike | None = None, **kwargs: Any) -> Any:
    """Loads a captioning dataset, which is prepared at the first call.

    Args:
        name: `"scenes"`, `"coco_objects"` or `"prepared"`.
        folder: Path. For `coco_objects`, the folder of COCO's annotation files, see
            `CocoFiles.find`; defaults to `None`, for which TFDS downloads
            `coco_captions`. For `prepared`, the folder written by `prepare` or
            `prepare_regions`.
        **kwargs: Further arguments of the TFDS builder, such as `data_dir`, the folder
            of the prepared data, which defaults to `~/tensorflow_datasets`.

    Returns:
        A prepared TFDS builder with splits `train`, `val` and `test`.

    Raises:
        InputError: If there is no such dataset, or its files are missing or damaged.
            The whole of a `prepared` dataset is read once to compare its checksums.
    """
    check_name(name)
    if name == "scenes" and folder is not None:
        raise InputError(f"The dataset scenes is built in, and not read from {folder}.")
    if name == "prepared":
        if folder is None:
            raise InputError("A prepared dataset needs its folder.")
        return read_prepared(folder)

    def make():
        if name == "scenes":
            return Scenes(**kwargs)
        if folder is not None:
            return CocoObjects.from_folder(folder, **kwargs)
        return CocoObjects(**kwargs)

    builder = make()
    try:
        builder.download_and_prepare()
    except OSError:
        builder = make()
        if not builder.data_path.exists():
            raise
        # Another process prepared the same dataset at the same time.
    return builder


def read(builder: Any, split: str, pictures: bool = False) -> Any:
    """Reads the examples of a split of a dataset, always in the same order.

    Args:
        builder: TFDS builder, from `load`.
        split: TFDS split, such as `"train"` or `"test[:16]"`.
        pictures: bool, whether to decode the images of a dataset that has them.
            Defaults to `False`.

    Returns:
        `tf.data.Dataset` of examples, see `region_features`.

    Raises:
        InputError: If the dataset has no such split.
    """
    for part in split.split("+"):
        name, splits = part.partition("[")[0], builder.info.splits
        if name not in splits or not splits[name].num_examples:
            raise InputError(
                f"The dataset in {builder.data_path} has no images for {name!r}."
            )
    decoders = None
    if "image" in builder.info.features and not pictures:
        decoders = {"image": tfds.decode.SkipDecoding()}
    return builder.as_dataset(split=split, decoders=decoders, shuffle_files=False)
