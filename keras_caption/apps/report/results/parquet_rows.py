"""Parquet tables of captions, written row by row."""

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any

from keras_caption.base.errors import missing_extras

AT_ONCE = 1024  # rows of a row group


def schema_of(columns: tuple[str, ...], text: str) -> Any:
    """The schema of a table of captions or other texts.

    Args:
        columns: tuple of str. `score`, `confidence`, `unsure`, `objects`, `links` and
            `n_best` have types of their own; the others are strings.
        text: str, what a text is called in `n_best`.

    Returns:
        `pyarrow.Schema`.
    """
    with missing_extras():
        import pyarrow as pa

    number, string = pa.float64(), pa.string()
    box = pa.list_(number)
    object_fields = {"category": string, "score": number, "box": box}
    for name in ("name", "colour"):
        object_fields |= {name: string, f"{name}_probability": number}
    link_fields = {"word": string, "start": pa.int64(), "kind": string}
    link_fields |= {"probability": number, "boxes": pa.list_(box)}
    types = {
        "score": number,
        "confidence": number,
        "unsure": pa.bool_(),
        "objects": pa.list_(pa.struct(object_fields)),
        "links": pa.list_(pa.struct(link_fields)),
        "n_best": pa.list_(pa.struct({text: string, "score": number})),
    }
    return pa.schema({name: types.get(name, string) for name in columns})


@contextlib.contextmanager
def writing_rows(
    file: io.RawIOBase | str | os.PathLike, schema: Any
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields a function that writes a row, a dict, to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = []
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
