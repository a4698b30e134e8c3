"""Rows of results, and the formats of their files."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from keras_caption.apps.report.results import to_text
from keras_caption.apps.report.results.parquet_rows import schema_of, writing_rows
from keras_caption.predict import Prediction
from keras_caption.text import one_line

DIGITS = 4
COLUMNS = (
    *("id", "text", "score", "confidence", "unsure"),
    *("doubt", "n_best", "objects", "links", "error"),
)

# The error of a record without a text that has no fault.
UNDETECTED = "Nothing is detected that the model knows."

Row = dict[str, Any]


def row_of(name: str, prediction: Prediction, has_best: bool) -> Row:
    """The row of a record that has been answered.

    Args:
        name: str, id of the record.
        prediction: `Prediction`.
        has_best: bool, whether the row lists several texts.
    """
    best = prediction.best if has_best else []
    confidence = prediction.confidence
    inputs = prediction.inputs or {}
    is_undetected = "scores" in inputs and not (prediction.text or prediction.objects)
    return {
        "id": to_text(name),
        "text": one_line(prediction.text),
        "score": round(float(prediction.score), DIGITS),
        "confidence": None if confidence is None else round(float(confidence), DIGITS),
        "unsure": bool(prediction.unsure),
        "doubt": prediction.doubt,
        "n_best": [
            {"text": one_line(text), "score": round(float(score), DIGITS)}
            for text, score in best
        ],
        "objects": prediction.objects,
        "links": prediction.links,
        "error": UNDETECTED if is_undetected else None,
    }


def fault(name: str, reason: str) -> Row:
    """The row of a record that could not be read or answered."""
    values = dict.fromkeys(("text", "score", "confidence", "unsure", "doubt"))
    return {
        "id": to_text(name),
        **values,
        "n_best": [],
        "objects": [],
        "links": [],
        "error": to_text(one_line(reason)),
    }


@contextlib.contextmanager
def writing_json_lines(file: io.RawIOBase) -> Iterator[Callable[[Row], None]]:
    """Yields a function that writes a row as a line of JSON."""

    def write(row):
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

    yield write


@contextlib.contextmanager
def writing_parquet(file: io.RawIOBase) -> Iterator[Callable[[Row], None]]:
    """Yields a function that writes a row to a Parquet file."""
    with writing_rows(file, schema_of(COLUMNS, "text")) as write:
        yield write


class Notes(NamedTuple):
    """The files beside shards in which a job keeps JSON.

    Attributes:
        suffix: str, of their names.
        write: Function that writes JSON, a str, to a binary file.
        read: Function from the content of a file to JSON, a str or bytes.
    """

    suffix: str
    write: Callable[[str, io.RawIOBase], None]
    read: Callable[[bytes], str | bytes]


def write_json(text: str, file: io.RawIOBase) -> None:
    file.write(text.encode())


def write_in_parquet(text: str, file: io.RawIOBase) -> None:
    """Writes JSON to the metadata of a table that has the columns of rows, and none."""
    schema = schema_of(COLUMNS, "text").with_metadata({NOTE: text})
    with writing_rows(file, schema):
        pass


def read_in_parquet(content: bytes) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.read_schema(pa.BufferReader(content)).metadata[NOTE]


class Format(NamedTuple):
    """A format of shards: how rows are written, and what a job keeps beside them."""

    writing: Callable[[io.RawIOBase], contextlib.AbstractContextManager]
    notes: Notes


NOTE = b"keras_caption"  # key of the metadata of a Parquet file
FORMATS = {
    "jsonl": Format(writing_json_lines, Notes("json", write_json, lambda x: x)),
    "parquet": Format(
        writing_parquet, Notes("parquet", write_in_parquet, read_in_parquet)
    ),
}
