"""COCO's results files: one caption for each image."""

import os

from typing_extensions import TypedDict

from keras_caption.formats.fields import ImageId, Records, refuse_repeats
from keras_caption.formats.json_files import read_json


class Result(TypedDict):
    image_id: ImageId
    caption: str


def read_results(path: str | os.PathLike) -> dict[int | str, str]:
    """Reads the captions of a COCO results file.

    Args:
        path: Path of a JSON file, a list of objects with `image_id` and `caption`.

    Returns:
        dict from image id, int or str, to str.

    Raises:
        InputError: If the file does not follow the format, or has two captions for
            an image.
    """
    results = read_json(path, Records[Result])
    refuse_repeats(path, "[].image_id", (result["image_id"] for result in results))
    return {result["image_id"]: result["caption"] for result in results}


def read_result_lists(path: str | os.PathLike) -> dict[int | str, list[str]]:
    """Reads a results file that has several captions of an image, the best first.

    Args, raises: As `read_results`, but for the number of captions.

    Returns:
        dict from image id, int or str, to a list of str, in the order of the file.
    """
    captions: dict[int | str, list[str]] = {}
    for result in read_json(path, Records[Result]):
        captions.setdefault(result["image_id"], []).append(result["caption"])
    return captions
