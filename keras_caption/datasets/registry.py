import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

import tensorflow_datasets as tfds

from keras_caption.base.errors import OWN, InputError, need_name
from keras_caption.base.registration import Registry
from keras_caption.datasets.building import build, make_builder
from keras_caption.datasets.coco_objects import CocoObjects
from keras_caption.formats.faults import reading, text_of_path
from keras_caption.formats.prepared_folder import read_prepared
from keras_caption.inputs import KINDS, sizes_of
from keras_caption.models import data_arguments


def _coco_objects(folder, **kwargs):
    make = CocoObjects
    if folder is not None:
        make = functools.partial(CocoObjects.from_folder, folder)
    return make_builder("coco_objects", make, **kwargs)


def _prepared(folder):
    if folder is None:
        raise InputError("A prepared dataset needs the folder that it is in.")
    return read_prepared(folder)


DATASETS = Registry("datasets", {"coco_objects": _coco_objects, "prepared": _prepared})


def register(name: str, make: Callable[..., tfds.core.DatasetBuilder]) -> None:
    """Registers a dataset by name, for `load` and configurations of experiments.

    Args:
        name: str.
        make: Function from a folder, or `None`, and keyword arguments to a TFDS builder
            with the splits `train`, `val` and `test` and the features of
            `region_features` or `frame_features`.

    Raises:
        InputError: If there is a dataset of that name already.

    Example:

    ```python
    kc.datasets.register("my_images", lambda folder, **kwargs: MyImages(**kwargs))
    ```
    """
    if name in DATASETS:
        raise InputError(f"There is a dataset {name!r} already.")
    DATASETS[name] = make


def check_name(name: str) -> None:
    """Raises `InputError` if there is no dataset of this name."""
    need_name(name, DATASETS, f"There is no dataset {name!r}", OWN)


def load(
    name: str, folder: str | os.PathLike | None = None, **kwargs: Any
) -> tfds.core.DatasetBuilder:
    """Loads a captioning dataset, which is prepared at the first call.

    Args:
        name: `"scenes"`, `"moving_scenes"`, `"coco_objects"`, `"prepared"`, or one that
            was registered.
        folder: Path. For `coco_objects`, the folder of COCO's annotation files, see
            `CocoFiles.find`; defaults to `None`, for which TFDS downloads
            `coco_captions`. For `prepared`, the folder written by `prepare`,
            `prepare_regions`, `prepare_clips` or `prepare_frames`.
        **kwargs: Further arguments of the TFDS builder, such as `data_dir`, the folder
            of the prepared data. Defaults to what the environment variable
            `TFDS_DATA_DIR` names, or `~/tensorflow_datasets`. `prepared` has none.

    Returns:
        A prepared TFDS builder with splits `train`, `val` and `test`.

    Raises:
        InputError: If there is no such dataset, it has no such argument, or its files
            are missing or damaged. The whole of a `prepared` dataset is read once to
            compare its checksums.
    """
    check_name(name)
    make = DATASETS[name]
    parameters = inspect.signature(make).parameters
    if not any(x.kind is x.VAR_KEYWORD for x in parameters.values()):
        for argument in kwargs:
            problem = f"The dataset {name!r} takes no {argument!r}"
            need_name(argument, parameters, problem)
    if folder is not None:
        text_of_path(folder, "The folder of a dataset")
    return build(lambda: make(folder, **kwargs))


def read(builder: Any, split: str, images: bool = False) -> Any:
    """Reads the examples of a split of a dataset, always in the same order.

    Args:
        builder: TFDS builder, from `load`.
        split: TFDS split, such as `"train"` or `"test[:16]"`.
        images: bool, whether to decode the images of a dataset that has them.
            Defaults to `False`.

    Returns:
        `tf.data.Dataset` of examples, see `region_features` and `frame_features`.

    Raises:
        InputError: If the dataset has no such split, or it is not written as one.
    """
    for part in str(split).split("+"):
        name, splits = part.partition("[")[0], builder.info.splits
        if name not in splits or not splits[name].num_examples:
            raise InputError(
                f"The dataset in {builder.data_path} has no images for {name!r}."
            )
    decoders = None
    if "image" in builder.info.features and not images:
        decoders = {"image": tfds.decode.SkipDecoding()}
    with reading(f"The split {split!r} of the dataset in {builder.data_path}"):
        return builder.as_dataset(split=split, decoders=decoders, shuffle_files=False)


def model_sizes(model: str, dataset: str, builder: Any) -> dict[str, int]:
    """Returns arguments of a model that a dataset decides, such as `region_dim`.

    Args:
        model: str, name of a preset.
        dataset: str, name of the dataset, for messages.
        builder: Its TFDS builder, from `load`.

    Returns:
        dict from the name of an argument to int.

    Raises:
        InputError: If the dataset lacks an input of the model.
    """
    sizes, needed = sizes_of(builder.info.features), data_arguments(model)
    if not {*needed} <= {*sizes}:
        reads = next(kind.keys[0] for kind in KINDS if {*needed} <= {*kind.sizes})
        raise InputError(
            f"The model '{model}' reads `{reads}`, and the dataset {dataset} has none: "
            "choose another of the two."
        )
    return {name: sizes[name] for name in needed}
