"""JSON files, validated against a schema before anything else reads them."""

from pydantic import ValidationError

from keras_caption.errors import InputError
from keras_caption.validation import adapter, describe


def read_json(path, schema):
    """Reads a JSON file and validates its content.

    Args:
        path: Path of the file.
        schema: Hashable type: a `typing_extensions.TypedDict`, `list[int]` or
            any other type that pydantic validates, in its strict mode. Keys that a
            `TypedDict` does not declare are dropped.

    Returns:
        The content, of the type `schema`.

    Raises:
        InputError: If the file is missing or unreadable, is not JSON, or its content
            does not follow the schema. The message names the file and the record,
            such as `annotations[17].caption`.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    return parse_json(content, schema, path)


def parse_json(content, schema, where):
    """Parses and validates JSON that has been read already; see `read_json`.

    Args:
        content: bytes or str.
        schema: See `read_json`.
        where: Path, or what else the content came from, for error messages.
    """
    try:
        return adapter(schema).validate_json(content, strict=True)
    except ValidationError as error:
        raise InputError(f"{where}: {describe(error)}.") from None
