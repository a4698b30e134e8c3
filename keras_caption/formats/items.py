"""The scores of each item of a test split, `test_items.json` in a run's folder."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import FiniteFloat
from typing_extensions import TypedDict

from keras_caption.base.atomic import write_json
from keras_caption.base.errors import InputError
from keras_caption.formats.json_files import read_json

Values = list[FiniteFloat | list[FiniteFloat] | None]


class Items(TypedDict, extra_items=Values):  # type: ignore[call-arg]  # PEP 728
    ids: list[int | str]


def write_items(
    path: pathlib.Path, ids: Sequence[Any], scores: Mapping[str, Sequence[Any]]
) -> None:
    """Writes the scores of items.

    Args:
        path: `pathlib.Path` of the file.
        ids: Sequence of int or str, of the images, questions or sentences.
        scores: dict from metric to a value for each item: a float, a list of float,
            such as one for each reference, or `None`.
    """
    write_json(path, {"ids": [*ids], **scores})


def read_items(path: pathlib.Path) -> dict[str, dict[Any, Any]]:
    """Reads the scores of items.

    Args:
        path: `pathlib.Path` of the file.

    Returns:
        dict from metric to a dict from id to value; items without a value are skipped.

    Raises:
        InputError: If the file is missing or does not follow the format.
    """
    content = read_json(path, Items)
    ids = content.pop("ids")
    for name, values in content.items():
        if len(values) != len(ids):
            raise InputError(
                f"{path}: {name} has {len(values):,} values of {len(ids):,} items."
            )
    return {
        name: {i: x for i, x in zip(ids, values, strict=True) if x is not None}
        for name, values in content.items()
    }
