"""Rows of results, and the files that they are written to."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from keras_caption.errors import missing_extras
from keras_caption.results import to_text
from keras_caption.serving.prediction import Prediction
from keras_caption.text import one_line

DIGITS = 4
AT_ONCE = 1024  # rows of a row group of Parquet

Row = dict[str, Any]


def row_of(name: str, prediction: Prediction, has_best: bool) -> Row:
    """The row of a record that was answered.

    Args:
        name: str, id of the record.
        prediction: `Prediction`.
        has_best: bool, whether several texts were asked for.
    """
    best = prediction.best if has_best else []
    confidence = prediction.confidence
    return {
        "id": to_text(name),
        "text": one_line(prediction.text),
        "score": round(float(prediction.score), DIGITS),
        "confidence": None if confidence is None else round(float(confidence), DIGITS),
        "unsure": bool(prediction.unsure),
        "n_best": [
            {"text": one_line(text), "score": round(float(score), DIGITS)}
            for text, score in best
        ],
        "objects": prediction.objects,
        "error": None,
    }


def fault(name: str, reason: str) -> Row:
    """The row of a record that could not be read or answered."""
    values = dict.fromkeys(("text", "score", "confidence", "unsure"))
    return {
        "id": to_text(name),
        **values,
        "n_best": [],
        "objects": [],
        "error": to_text(one_line(reason)),
    }


@contextlib.contextmanager
def writing_json_lines(file: BinaryIO) -> Iterator[Callable[[Row], None]]:
    """Yields a function that writes a row as a line of JSON."""

    def write(row):
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

    yield write


@contextlib.contextmanager
def writing_parquet(file: BinaryIO) -> Iterator[Callable[[Row], None]]:
    """Yields a function that writes a row to a Parquet file."""
    with missing_extras():
        import pyarrow as pa
        import pyarrow.parquet as pq

    text, number = pa.string(), pa.float64()
    scored = [("text", text), ("score", number)]
    found = [("category", text), ("score", number), ("box", pa.list_(number))]
    schema = pa.schema(
        [
            ("id", text),
            *scored,
            ("confidence", number),
            ("unsure", pa.bool_()),
            ("n_best", pa.list_(pa.struct(scored))),
            ("objects", pa.list_(pa.struct(found))),
            ("error", text),
        ]
    )
    rows = []
    with pq.ParquetWriter(file, schema) as writer:

        def flush():
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema))
            rows.clear()

        def write(row):
            rows.append(row)
            if len(rows) == AT_ONCE:
                flush()

        yield write
        if rows:
            flush()


FORMATS = {"jsonl": writing_json_lines, "parquet": writing_parquet}
