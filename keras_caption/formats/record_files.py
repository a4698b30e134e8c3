"""Files of many photos, sentences or questions: lists, tars, Parquet and TFRecords."""

import contextlib
import csv
import dataclasses
import itertools
import json
import pathlib
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from keras_caption.errors import InputError, missing_extras
from keras_caption.formats.caption_csv import COLUMNS, DELIMITERS
from keras_caption.formats.faults import reason_of
from keras_caption.formats.text_lines import LINE_BYTES, decode

LIST_SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl")
# A record's fields are the first of these columns that it has.
FIELDS = {
    "id": ("id", "image_id", "question_id", "__key__"),
    "photo": (*COLUMNS["file_name"], "path", "image/encoded"),
    "text": ("text", "sentence", "question", "source"),
}
TAR_PHOTOS = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "heic")
AT_ONCE = 64  # rows of a Parquet file in memory


@dataclasses.dataclass(frozen=True)
class Record:
    """A photo, a sentence, or a question about a photo.

    Attributes:
        id: str, the record's own, or else file and number.
        photo: bytes of an image file, the path of one, or `None`.
        text: str, or `None`.
        problem: str, a sentence about a record that cannot be read, or `None`.
    """

    id: str
    photo: bytes | str | None = None
    text: str | None = None
    problem: str | None = None


@dataclasses.dataclass(frozen=True)
class Part:
    """Some records of a file, or all.

    Attributes:
        path: str, path of the file.
        start: int, the byte of a list at which the first of the records begins.
        first: int, number of that record in the file, from 1.
        count: int, how many records there are; `None` for all.
    """

    path: str
    start: int = 0
    first: int = 1
    count: int | None = None


def kind_of_file(path: str) -> str | None:
    """The suffix of the files that `read_part` reads alike; `None` of others: lines."""
    name = pathlib.PurePosixPath(path).name.lower().removesuffix(".gz")
    if re.fullmatch(r".*\.tfrecords?(-\d+-of-\d+)?", name):
        return ".tfrecord"
    if name.endswith(".tgz"):
        return ".tar"
    suffix = pathlib.PurePosixPath(name).suffix
    return suffix if suffix in (*LIST_SUFFIXES, ".tar", ".parquet") else None


def parts_of_file(file: BinaryIO, path: str, size: int) -> list[Part]:
    """Cuts a list into parts of `size` records; other files are one part each."""
    if (kind_of_file(path) or ".txt") not in LIST_SUFFIXES:
        return [Part(path)]
    parts = []
    for number, (start, _) in enumerate(_raw_records(file, path), start=1):
        if (number - 1) % size == 0:
            parts.append(Part(path, start, number, size))
    return parts


def read_part(
    part: Part, open_file: Callable[[str], BinaryIO], fields: tuple[str, ...]
) -> Iterator[Record]:
    """Yields the records of a part; never raises.

    A record that cannot be read has a `problem`; so has the last one, whose id is the
    path, of a file that cannot be read to its end.

    Args:
        part: `Part`.
        open_file: Function from a path to a binary file, unpacked if it is a `.gz`.
        fields: tuple of `"photo"` and `"text"`, those that records should have.
    """
    number, kind = 0, kind_of_file(part.path) or ".txt"
    try:
        with open_file(part.path) as file:
            rows = READERS[kind](file, part)
            for number, row in enumerate(rows, start=part.first):
                if row is not None:
                    yield _record(row, f"{part.path}#{number}", part.path, fields)
    except Exception as error:  # readers raise anything at damaged files
        reason = reason_of(error)
        after = f" after record {number:,}" if number else ""
        yield Record(part.path, problem=f"{part.path} cannot be read{after}: {reason}.")


def _record(row, name, path, fields):
    """The record of a row, a dict from column to value, or an `InputError`."""
    if isinstance(row, InputError):
        return Record(name, problem=str(row))
    row = {str(column).strip().lower(): value for column, value in row.items()}
    values = {}
    for field in ("id", *fields):
        value = next((row[c] for c in FIELDS[field] if row.get(c) is not None), None)
        if field == "photo" and isinstance(value, Mapping):  # of Hugging Face
            value = value.get("bytes") or value.get("path")
        if value is None and field != "id":
            columns = ", ".join(FIELDS[field])
            return Record(
                name,
                problem=f"The record has no {field}: none of {columns}.",
            )
        values[field] = value
    photo, text = values.get("photo"), values.get("text")
    if isinstance(photo, str):
        photo = _beside(path, photo)
    elif photo is not None and not isinstance(photo, bytes):
        return Record(name, problem="The record's photo is neither a path nor bytes.")
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError:
            return Record(name, problem="The record's text is not UTF-8.")
    if text is not None and not isinstance(text, str):
        return Record(name, problem="The record's text is no text.")
    own = values["id"].decode() if isinstance(values["id"], bytes) else values["id"]
    if own is None:
        own = photo if isinstance(photo, str) and text is None else name
    return Record(str(own), photo, text)


def _beside(path, photo):
    """Path of a photo, which a list names relative to its own folder."""
    if "://" in photo or photo.startswith("/"):
        return photo
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}{photo}"


# === Lists ===


def _raw_records(file, path):
    """Yields the byte at which each record of a list begins, and its bytes.

    A record is a line; of CSV, lines up to one at which all quotes are closed.
    """
    is_csv = kind_of_file(path) in (".csv", ".tsv")
    start = file.tell()
    while line := file.readline(LINE_BYTES + 1):
        record = line
        while is_csv and record.count(b'"') % 2 and len(record) <= LINE_BYTES:
            if not (line := file.readline(LINE_BYTES + 1)):
                break
            record += line
        yield start, record
        start += len(record)


def _texts(file, part):
    """The records of a part of a list: texts, or errors; `None` for empty ones."""
    file.seek(part.start)
    for _, raw in itertools.islice(_raw_records(file, part.path), part.count):
        try:
            text = decode(raw, "The record")
        except InputError as error:
            yield error
        else:
            yield text.removeprefix("\ufeff")


def _read_lines(file, part):
    for text in _texts(file, part):
        is_text = isinstance(text, str)
        yield {"image": text or None, "text": text} if is_text else text


def _read_json_lines(file, part):
    for text in _texts(file, part):
        if not isinstance(text, str):
            yield text
        elif not text.strip():
            yield None
        else:
            yield _json_object(text)


def _json_object(text):
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        return InputError(f"The record is not JSON: {reason_of(error)}.")
    return row if isinstance(row, dict) else InputError("The record is no JSON object.")


def _read_csv(file, part):
    """Rows as dicts; the first row of the file is the header."""
    [header] = _texts(file, dataclasses.replace(part, start=0, count=1))
    if isinstance(header, InputError):
        raise header
    delimiter = "\t" if kind_of_file(part.path) == ".tsv" else None
    delimiter = delimiter or max(DELIMITERS, key=header.count)
    [names] = csv.reader([header], delimiter=delimiter, skipinitialspace=True)
    for number, text in enumerate(_texts(file, part), start=part.first):
        if number == 1 or text == "":
            yield None
        elif not isinstance(text, str):
            yield text
        else:
            [cells] = csv.reader([text], delimiter=delimiter, skipinitialspace=True)
            if len(cells) == len(names):
                yield dict(zip(names, cells, strict=True))
            else:
                yield InputError(
                    f"The row has {len(cells)} columns; the header has {len(names)}."
                )


# === Files of records ===


def _read_tar(file, part):
    """Samples of a WebDataset: members that follow each other and have one key."""
    with tarfile.open(fileobj=file, mode="r|*") as tar:
        members = (member for member in tar if member.isfile())
        for key, group in itertools.groupby(members, _key_of):
            row = {"__key__": f"{part.path}/{key}"}
            for member in group:
                suffix = member.name[len(key) + 1 :].lower()
                content = tar.extractfile(member).read()
                if suffix in TAR_PHOTOS:
                    row.setdefault("image", content)
                elif suffix == "txt":
                    row["text"] = content.strip()
                elif suffix == "json":
                    own = _json_object(content)
                    row = {**own, **row} if isinstance(own, dict) else own
            yield row


def _key_of(member):
    folder, slash, name = member.name.rpartition("/")
    return f"{folder}{slash}{name.partition('.')[0]}"


def _read_parquet(file, part):
    with missing_extras():
        import pyarrow.parquet as pq

    table = pq.ParquetFile(file)
    known = {column for columns in FIELDS.values() for column in columns}
    names = [name for name in table.schema_arrow.names if name.lower() in known]
    for batch in table.iter_batches(AT_ONCE, columns=names):
        yield from batch.to_pylist()


def _read_tfrecords(file, part):
    """Rows of `tf.train.Example`, read from a copy: TensorFlow opens paths only."""
    with missing_extras():
        import tensorflow as tf

    with tempfile.NamedTemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        for record in tf.data.TFRecordDataset(copy.name).as_numpy_iterator():
            try:
                example = tf.train.Example.FromString(record)
            except Exception as error:
                yield InputError(f"The record is no Example: {reason_of(error)}.")
                continue
            row = {}
            for name, feature in example.features.feature.items():
                values = getattr(feature, feature.WhichOneof("kind") or "", None)
                with contextlib.suppress(AttributeError, IndexError):
                    row[name] = values.value[0]
            yield row


READERS = {
    ".txt": _read_lines,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".tar": _read_tar,
    ".parquet": _read_parquet,
    ".tfrecord": _read_tfrecords,
}
