"""JSON files, validated against a schema before their content is used."""

import codecs
import gzip
import os
import pathlib
import zlib
from typing import Any

from pydantic import ValidationError

from keras_caption.base.errors import InputError
from keras_caption.base.validation import adapter, describe
from keras_caption.formats.faults import reason_of, refuse_pipe
from keras_caption.formats.suffixes import is_packed

UNPACKED_BYTES = 2**30  # of a `.gz` file, which may expand to any size


def read_json(path: str | os.PathLike, schema: Any) -> Any:
    """Reads a JSON file and validates its content.

    Args:
        path: Path of the file, plain or as `.gz`, with or without a byte order mark.
        schema: Hashable type: a `typing_extensions.TypedDict`, `list[int]` or
            any other type that pydantic validates, in its strict mode. Keys that a
            `TypedDict` does not declare are dropped.

    Returns:
        The content, of the type `schema`.

    Raises:
        InputError: If the file is missing or unreadable, is a pipe or a device, is not
            JSON, or does not follow the schema. The message names the file and the
            record, such as `annotations[17].caption`.
    """
    path = pathlib.Path(path)
    refuse_pipe(path)
    packed = is_packed(path)
    opened, most = (gzip.open, UNPACKED_BYTES + 1) if packed else (open, -1)
    try:
        with opened(path, "rb") as file:
            content = file.read(most)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {reason_of(error)}.") from None
    if packed and len(content) == most:
        raise InputError(f"{path} has more than {UNPACKED_BYTES:,} bytes unpacked.")
    return parse_json(content.removeprefix(codecs.BOM_UTF8), schema, path)


def parse_json(content: bytes | str, schema: Any, where: Any) -> Any:
    """Parses and validates the content of a JSON file, see `read_json`.

    Args:
        content: bytes or str.
        schema: See `read_json`.
        where: Path of the file, or another origin of the content, for messages.

    Raises:
        InputError: If the content is not JSON, or does not follow the schema.
    """
    try:
        return adapter(schema).validate_json(content, strict=True)
    except ValidationError as error:
        raise InputError(f"{where}: {describe(error, content)}.") from None
