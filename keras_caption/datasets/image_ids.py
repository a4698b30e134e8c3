"""Numbers for images whose ids are names: datasets store ids as numbers."""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from keras_caption.base.atomic import write_json
from keras_caption.formats.prepared_folder import IMAGE_IDS, read_image_ids


def number_images(
    ids: Sequence[int | str],
) -> tuple[dict[int | str, int], dict[str, Callable]]:
    """Numbers the images whose ids are names: TFDS stores ids as integers.

    Args:
        ids: Sequence of the ids of all images, in the order of the caption files.

    Returns:
        dict from id to number: an integer id is its own number, and a name gets a
        negative number that no other image has; and the `files` of `Content` that keep
        the names, for `given_ids`.
    """
    names = [id_ for id_ in ids if isinstance(id_, str)]
    least = min([0, *(id_ for id_ in ids if isinstance(id_, int))])
    named = dict(zip(names, range(least - 1, least - 1 - len(names), -1), strict=True))
    numbers = {i: named[i] if isinstance(i, str) else i for i in ids}
    if not names:
        return numbers, {}
    return numbers, {IMAGE_IDS: functools.partial(write_json, content=named)}


def given_ids(builder: Any) -> dict[int, str]:
    """Returns the names that caption files use as ids of a dataset's images.

    Args:
        builder: TFDS builder, from `load`.

    Returns:
        dict from the `image_id` of an example to the name. Images whose ids are numbers
        are not in it.
    """
    path = pathlib.Path(builder.data_path) / IMAGE_IDS
    numbers = read_image_ids(path) if path.is_file() else {}
    return {number: name for name, number in numbers.items()}
