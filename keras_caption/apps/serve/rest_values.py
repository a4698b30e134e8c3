"""Values of TensorFlow Serving's REST interface: rows, columns and base64."""

import base64
import binascii
import codecs
import json
import re
from typing import Any

import numpy as np

from keras_caption.apps.serve.records import array_without_text
from keras_caption.base.errors import InputError
from keras_caption.export.signature import DEFAULT, Signature
from keras_caption.formats.jpeg_scans import MAX_SCANS, count_scans
from keras_caption.settings.limits import MAX_ITEMS, MAX_PHRASES, TEXT_BYTES

PREFERRED = (DEFAULT, "features", "photos")
IMAGE_BYTES = "image_bytes"  # the input of files of photos
OF_ITEMS = ("regions", "boxes", "region_mask")  # inputs with a row for each region
DATA = re.compile(r"data:[^,]*;base64,")  # the beginning of a data URL
SPACE = " \t\r\n"  # of JSON
HEAD = 64  # bytes that tell whether text in another encoding is JSON


def read_request(
    body: dict[str, Any], signatures: dict[str, Signature]
) -> tuple[str, list[dict[str, np.ndarray]]]:
    """The signature of a request and the inputs of each of its examples.

    A request that names no signature is for `serving_default`; or, if that has other
    inputs than the request, for `features` or `photos`.

    Args:
        body: dict of `instances`, a list of examples, or `inputs`, tensors of all; and
            maybe `signature_name`.
        signatures: dict from name to `Signature`.

    Returns:
        str; and a list of dicts of arrays without batch dimension.

    Raises:
        InputError: If the request has another form, or a value is wrong.
    """
    forms = [form for form in ("instances", "inputs") if form in body]
    if len(forms) != 1:
        raise InputError(
            "A request should have either `instances`, a list of examples, or "
            "`inputs`, tensors of all."
        )
    [form] = forms
    rows = rows_of(body["instances"]) if form == "instances" else body["inputs"]
    first = rows[0] if form == "instances" else rows
    names = {*first} if is_named(first) else None
    name = body.get("signature_name") or chosen(names, signatures)
    if not isinstance(name, str) or name not in signatures:
        known = ", ".join(sorted(signatures))
        raise InputError(f"There is no signature {name!r:.60}: there are {known}.")
    signature = signatures[name]
    if form == "instances":
        rows = [named(row, signature) for row in rows]
        if any(row.keys() != rows[0].keys() for row in rows):
            raise InputError("All `instances` should have the same inputs.")
    else:
        rows = rows_of_columns(named(rows, signature))
    signature.check_names({*rows[0]})
    arrays = [
        {
            key: to_array(f"`{key}` of example {i}", value, signature.inputs[key])
            for key, value in row.items()
        }
        for i, row in enumerate(rows)
    ]
    for i, row in enumerate(arrays):
        check_items(f"Example {i}", row)
        # Exports of earlier versions do not check scans: an empty file replaces it.
        if IMAGE_BYTES in row and count_scans(row[IMAGE_BYTES].item()) > MAX_SCANS:
            row[IMAGE_BYTES] = np.array(b"", object)
        if row.get("forbidden", np.array(b"")).item().count(b",") >= MAX_PHRASES:
            raise InputError(
                f"`forbidden` of example {i} has more than {MAX_PHRASES:,} phrases."
            )
    return name, arrays


def check_items(name: str, row: dict[str, np.ndarray]) -> None:
    """Raises `InputError` if an example has different numbers of items, or long texts.

    Args:
        name: str, what the example is called in the message.
        row: dict of arrays, its inputs.
    """
    sizes = {key: len(row[key]) for key in OF_ITEMS if key in row}
    if len({*sizes.values()}) > 1:
        counts = " and ".join(f"{size} {key}" for key, size in sizes.items())
        raise InputError(f"{name} has {counts}: there should be as many.")
    for key, value in row.items():
        if (
            key != IMAGE_BYTES
            and value.dtype == object
            and len(value.item()) > TEXT_BYTES
        ):
            raise InputError(f"{name} has a {key} of more than {TEXT_BYTES:,} bytes.")


def chosen(names: set[str] | None, signatures: dict[str, Signature]) -> str:
    """The signature of a request that names none, see `read_request`."""
    for name in PREFERRED:
        if name in signatures:
            signature = signatures[name]
            required = {*signature.inputs} - {*signature.defaults}
            if required == names or (names is None and len(required) == 1):
                return name
    return DEFAULT


def rows_of(instances: Any) -> list[Any]:
    """The examples of a request in row form.

    Raises:
        InputError: If there are none.
    """
    if not isinstance(instances, list) or not instances:
        raise InputError("`instances` should be a list of at least one example.")
    return instances


def is_named(value: Any) -> bool:
    """Whether a value has inputs by name; otherwise it is the only input."""
    return isinstance(value, dict) and {*value} != {"b64"}


def named(value: Any, signature: Signature) -> dict[str, Any]:
    """Inputs by name, also where the only one has none.

    Raises:
        InputError: If the signature takes several.
    """
    if is_named(value):
        return value
    required = [name for name in signature.inputs if name not in signature.defaults]
    if len(required) != 1:
        raise InputError(
            "An example should be an object of inputs by name: "
            f"{', '.join(signature.inputs)}."
        )
    return {required[0]: value}


def rows_of_columns(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """The examples of a request in column form.

    Raises:
        InputError: If an input has no batch dimension, or they differ in it.
    """
    sizes = {}
    for name, values in columns.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"`{name:.60}` should be a list of at least one value.")
        sizes[name] = len(values)
    if len({*sizes.values()}) != 1:
        raise InputError(f"The inputs differ in their number of examples: {sizes}.")
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def to_array(name: str, value: Any, spec: Any) -> np.ndarray:
    """The value of an input for one example, of the signature's type and shape.

    Args:
        name: str, of the value in messages.
        value: From JSON.
        spec: `tf.TensorSpec`, with batch dimension.

    Raises:
        InputError: If the type or the shape is wrong, or there are too many items.
    """
    dtype = np.dtype(spec.dtype.as_numpy_dtype)
    if dtype.kind == "O":
        return np.array(text_of(name, value), object)
    try:
        array = exactly(array_without_text(value), dtype)
    # Of texts, lists of different lengths, and large numbers.
    except (ValueError, OverflowError):
        array = None
    expected = spec.shape.as_list()[1:]
    if array is None or array.ndim != len(expected):
        numbers = f"an array {tuple(expected)}" if expected else "a value"
        raise InputError(f"{name} should be {numbers} of {spec.dtype.name}.")
    if any(e not in (None, s) for e, s in zip(expected, array.shape, strict=True)):
        raise InputError(
            f"{name} should have the shape {tuple(expected)}. Received: {array.shape}"
        )
    if array.ndim and len(array) > MAX_ITEMS:
        raise InputError(f"{name} has more than {MAX_ITEMS:,} items.")
    return array


def exactly(array: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """The same numbers in another type, or `None` if it does not hold them."""
    kinds = {"f": "fiu", "b": "b"}.get(dtype.kind, "iu")
    if array.size and array.dtype.kind not in kinds:
        return None
    with np.errstate(over="ignore"):
        converted = array.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(converted, array):
        return None
    return converted


def text_of(name: str, value: Any) -> bytes:
    """The bytes that a string or an object of `b64` stands for.

    Raises:
        InputError: If it is neither.
    """
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name} is no Unicode text.") from None
    if isinstance(value, dict) and isinstance(value.get("b64"), str):
        return from_base64(name, value["b64"])
    raise InputError(f"{name} should be a string, or an object of `b64`.")


def from_base64(name: str, text: str) -> bytes:
    """The bytes that text in base64 stands for, with or without its padding.

    It may be an address of data too, `data:image/jpeg;base64,...`.

    Raises:
        InputError: If it is no base64.
    """
    start = DATA.match(text)
    text = "".join(text[start.end() if start else 0 :].split()).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise InputError(f"{name} is no base64.") from None


def in_utf8(content: bytes) -> bytes:
    """JSON in UTF-8, without a byte order mark; content that is no JSON as it is.

    Windows' PowerShell writes JSON in UTF-16.
    """
    encoding = json.detect_encoding(content)
    head = content[:HEAD].decode(encoding, "replace").lstrip(f"\ufeff{SPACE}")
    if encoding not in ("utf-8", "utf-8-sig") and head[:1] in ("{", "["):
        content = content.decode(encoding, "replace").encode()
    return content.removeprefix(codecs.BOM_UTF8)


def to_json(name: str, values: np.ndarray) -> Any:
    """Values of an output as JSON has them; bytes if its name ends in `_bytes`."""
    if values.dtype != object:
        return values.tolist()
    return [_text_to_json(name, value) for value in values.tolist()]


def _text_to_json(name, value):
    if isinstance(value, list):
        return [_text_to_json(name, x) for x in value]
    if name.endswith("_bytes"):
        return {"b64": base64.b64encode(value).decode()}
    return value.decode(errors="replace")


def answer_in_rows(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
    """The answer to a request of `instances`."""
    columns = {name: to_json(name, x) for name, x in outputs.items()}
    if len(columns) == 1:
        return {"predictions": next(iter(columns.values()))}
    rows = zip(*columns.values(), strict=True)
    return {"predictions": [dict(zip(columns, row, strict=True)) for row in rows]}


def answer_in_columns(outputs: dict[str, np.ndarray]) -> dict[str, Any]:
    """The answer to a request of `inputs`."""
    columns = {name: to_json(name, x) for name, x in outputs.items()}
    return {"outputs": next(iter(columns.values())) if len(columns) == 1 else columns}
