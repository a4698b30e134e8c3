"""The infos that the self-critical toolkits save beside a checkpoint, a pickle."""

import io
import os
import pathlib
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import check_file, reading
from keras_caption.formats.json_files import read_json
from keras_caption.formats.plain_pickles import PlainUnpickler, check_whole
from keras_caption.formats.suffixes import suffix_of

INFOS_BYTES = 64 * 2**20


class Infos(TypedDict):
    """The vocabulary, words by index from "1" on, and options of the training."""

    vocab: dict[str, str]
    opt: dict[str, object]


def read_infos(path: str | os.PathLike) -> tuple[list[str], dict[str, Any]]:
    """Reads the infos that the self-critical toolkits save beside a checkpoint.

    Args:
        path: Path of an `infos_*.pkl`, or of the same content as JSON:
            `{"vocab": {"1": "a", ...}, "opt": {"rnn_size": 1024, ...}}`.

    Returns:
        A pair: the words, a list of str from index 1 on, and the options, a dict.

    Raises:
        InputError: If the file is missing, is not a pickle or JSON of plain data, or
            lacks the vocabulary or the options.
    """
    path = pathlib.Path(path)
    check_file(path)
    infos = read_json(path, Infos) if suffix_of(path) == ".json" else read_pickle(path)
    by_index = infos["vocab"]
    indices = [str(index) for index in range(1, len(by_index) + 1)]
    for index in indices:
        if index not in by_index:
            raise InputError(
                f"{path}: vocab has {len(by_index)} words, but none at index {index}."
            )
    options = {name: plain(value) for name, value in infos["opt"].items()}
    return [by_index[index] for index in indices], options


def read_pickle(path: pathlib.Path) -> Infos:
    """Reads infos from a pickle without executing any of its code.

    Raises:
        InputError: If the file is larger than `INFOS_BYTES`, or is not a pickle of
            plain data, or not of infos.
    """
    check_file(path, INFOS_BYTES)
    content = path.read_bytes()
    with reading(path):
        check_whole(content)
        infos = PlainUnpickler(io.BytesIO(content), encoding="latin1").load()
    try:
        return TypeAdapter(Infos).validate_python(infos, strict=True)
    except ValidationError:  # its text may have any length
        raise InputError(
            f"{path} contains no infos: `vocab`, a dict from index to word, and `opt`."
        ) from None


def plain(value: Any) -> Any:
    """Returns the value of an option, or its type's name if it is not plain."""
    is_plain = isinstance(value, (str, float, bool, type(None))) or (
        isinstance(value, int) and abs(value) < 2**63
    )
    return value if is_plain else type(value).__name__
