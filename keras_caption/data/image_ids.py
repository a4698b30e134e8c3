"""Ids of images that are names, in datasets whose ids are numbers."""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from keras_caption.atomic import write_json
from keras_caption.formats.prepared_folder import IMAGE_IDS, read_image_ids


def number_images(
    ids: Sequence[int | str],
) -> tuple[dict[int | str, int], dict[str, Callable]]:
    """Numbers the images of a dataset: TFDS stores ids as integers.

    Args:
        ids: Sequence of the ids of all images, in the order of the caption files.

    Returns:
        dict from id to its number: itself, or its place in `ids` if any of them is a
        name; and the `files` of `Content` that keep the ids, for `given_ids`.
    """
    if not any(isinstance(id_, str) for id_ in ids):
        return {id_: id_ for id_ in ids}, {}
    files = {IMAGE_IDS: functools.partial(write_json, content=list(ids))}
    return {id_: number for number, id_ in enumerate(ids)}, files


def given_ids(builder: Any) -> dict[int, int | str]:
    """The ids that the caption files of a dataset gave to its images.

    Args:
        builder: TFDS builder, from `load`.

    Returns:
        dict from the `image_id` of an example to the id, empty if they are the same.
    """
    path = pathlib.Path(builder.data_path) / IMAGE_IDS
    return dict(enumerate(read_image_ids(path))) if path.is_file() else {}
