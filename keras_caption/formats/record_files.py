"""Files of photos, sentences or questions: lists, tars, Parquet and TFRecords."""

import collections
import contextlib
import dataclasses
import gzip
import itertools
import json
import os
import pathlib
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.caption_rows import COLUMNS
from keras_caption.formats.csv_rows import (
    cells_of,
    delimiter_of,
    is_separator,
    raw_rows,
)
from keras_caption.formats.faults import reason_of
from keras_caption.formats.folders import HIDDEN, PHOTOS, SPECIAL, is_hidden
from keras_caption.formats.text_lines import (
    LINE_BYTES,
    MARK,
    decode,
    need_text,
    raw_lines,
)

LIST_SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl")
# Columns of a record's fields; the first column that a record has counts.
FIELDS = {
    "photo": (*COLUMNS["file_name"], "path", "image/encoded"),
    "text": ("text", "sentence", "question", "source"),
}
# Columns of its id, by its fields: several questions may be about one image.
IDS = {
    ("photo",): ("id", "image_id", "question_id"),
    ("text",): ("id", "question_id", "image_id"),
    ("photo", "text"): ("question_id", "id"),
}
KEY = "__key__"  # id of a WebDataset sample; the last column of ids
AT_ONCE = 64  # rows of a Parquet file in memory
PHOTO_BYTES = 2**29  # of a photo: MAX_PIXELS in 16 bits
HEADER_BYTES = 2**20  # of a header in a tar, such as a long name
# Names of TFRecords and of their shards, such as `train.record-00000-of-00002`.
TFRECORD = re.compile(r"(.*\.|(?=.*-of-))(tfrecords?|tfrec|record)(-\d+-of-\d+)?")
LENGTH, CHECKSUM = 8, 4  # bytes of a TFRecord's length, and of each checksum


@dataclasses.dataclass(frozen=True)
class Record:
    """A photo, a sentence, or a question about a photo.

    Attributes:
        id: str, the id in the file or, without one, file and number.
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
        count: int, number of records; `None` for all.
    """

    path: str
    start: int = 0
    first: int = 1
    count: int | None = None


def kind_of_file(path: str) -> str | None:
    """Returns the suffix that decides the reader; `None` if a file is read as lines."""
    name = pathlib.PurePosixPath(path).name.lower().removesuffix(".gz")
    if TFRECORD.fullmatch(name):
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
    part: Part,
    open_file: Callable[[str], BinaryIO],
    fields: tuple[str, ...],
    passed_over: collections.Counter | None = None,
) -> Iterator[Record]:
    """Yields the records of a part; never raises.

    A record that cannot be read has a `problem`. If a file cannot be read to its end,
    the last record has the path as id, and a `problem`.

    Args:
        part: `Part`.
        open_file: Function from a path to a binary file, decompressed if it is a `.gz`.
        fields: tuple of `"photo"`, `"text"` or both, the fields of the records.
        passed_over: `collections.Counter` of members of archives that are no data, see
            `keras_caption.formats.folders.list_files`. Defaults to `None`.
    """
    number, kind = 0, kind_of_file(part.path) or ".txt"
    counts = collections.Counter() if passed_over is None else passed_over
    try:
        with open_file(part.path) as file:
            if kind in LIST_SUFFIXES:
                need_text(file, part.path)
            rows = READERS[kind](file, part, fields, counts)
            for number, row in enumerate(rows, start=part.first):
                if row is not None:
                    name = f"{part.path}#{number}"
                    yield _record(row, name, part.path, fields)
    except Exception as error:  # any type, for damaged files
        reason = str(error).rstrip(".")
        if not isinstance(error, InputError):
            after = f" after record {number:,}" if number else ""
            reason = f"{part.path} cannot be read{after}: {reason_of(error)}"
        yield Record(part.path, problem=f"{reason}.")


def _record(row, name, path, fields):
    """Makes a record of a row, which is a dict from column or an `InputError`."""
    if isinstance(row, InputError):
        return Record(name, problem=str(row))
    row = {str(column).strip().lower(): value for column, value in row.items()}
    row_id = _id(row, fields)
    try:
        values = {field: _field(row, field) for field in fields}
    except InputError as error:
        return Record(row_id or name, problem=str(error))
    photo, text = values.get("photo"), values.get("text")
    if isinstance(photo, str):
        photo = _beside(path, photo)
    if row_id is None:
        row_id = photo if isinstance(photo, str) and text is None else name
    return Record(row_id, photo, text)


def _field(row, field):
    """Returns a field of a row: a photo, as bytes or a path, or a text.

    Raises:
        InputError: If the row lacks the field, or the field has another type.
    """
    empty = (None,) if field == "text" else (None, "", b"")
    candidates = (row.get(column) for column in FIELDS[field])
    value = next((x for x in candidates if x not in empty), None)
    if isinstance(value, Mapping):  # of Hugging Face's datasets
        value = value.get("bytes") or value.get("path")
    if value in empty:
        columns = ", ".join(FIELDS[field])
        raise InputError(f"The record has no {field}: none of {columns}.")
    if field == "photo":
        if not isinstance(value, str | bytes):
            raise InputError("The record's photo is neither a path nor bytes.")
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise InputError("The record's text is not UTF-8.") from None
    if not isinstance(value, str):
        raise InputError("The record's text is no text.")
    return value


def _id(row, fields):
    """Returns the id of a row as text, even if it is not UTF-8, or `None`."""
    for column in (*IDS[fields], KEY):
        value = row.get(column)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        if isinstance(value, float):  # as in data frames with missing numbers
            value = int(value) if value.is_integer() else None
        if value is not None and value != "":
            return str(value)
    return None


def _beside(path, photo):
    """Returns the path of a photo, which is relative to the folder of its list."""
    if "://" in photo or photo.startswith("/"):
        return photo
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}{photo}"


# === Lists ===


def _raw_records(file, path):
    """Yields the byte at which each record of a list begins, and its lines."""
    delimiter = _delimiter(file, path)
    file.seek(0)
    return raw_rows(file, delimiter)


def _delimiter(file, path):
    """Returns the delimiter of a list's cells, or `None` for a list of lines."""
    kind = kind_of_file(path)
    if kind == ".tsv":
        return "\t"
    if kind != ".csv":
        return None
    columns = itertools.chain(*FIELDS.values(), *IDS.values())
    numbered = enumerate(raw_lines(file), start=1)
    texts = (decode(line, f"{path}, line {i},") for i, (_, line) in numbered)
    return delimiter_of(texts, columns)


def _raw_part(file, part, delimiter):
    """Yields the byte at which each record of a part begins, and its lines."""
    file.seek(part.start)
    yield from itertools.islice(raw_rows(file, delimiter), part.count)


def _texts(file, part):
    """Yields the lines of a part of a list: texts, or errors."""
    for start, [line] in _raw_part(file, part, None):
        try:
            text = decode(line, "The record")
        except InputError as error:
            yield error
        else:
            yield text if start else text.removeprefix(MARK)


def _read_lines(file, part, fields, passed_over):
    for text in _texts(file, part):
        if not isinstance(text, str):
            yield text
        elif "photo" in fields:
            yield {"image": text} if text else None
        else:
            yield {"text": text}


def _read_json_lines(file, part, fields, passed_over):
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


def _read_csv(file, part, fields, passed_over):
    """Yields rows as dicts; the first row of the file with text is the header."""
    delimiter = _delimiter(file, part.path)
    head, names = -1, []
    for number, (head, lines) in enumerate(_raw_records(file, part.path), start=1):
        names = cells_of(lines, f"{part.path}, row {number},", delimiter, head == 0)
        if any(names) and not is_separator(lines):
            break
    for start, lines in _raw_part(file, part, delimiter):
        if start <= head:
            yield None
            continue
        try:
            cells = cells_of(lines, "The record", delimiter)
        except InputError as error:
            yield error
            continue
        if not any(cells):
            yield None
        elif len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))
        else:
            yield InputError(
                f"The row has {len(cells)} columns; the header has {len(names)}."
            )


# === Files of records ===


def _read_tar(file, part, fields, passed_over):
    """Yields samples of a WebDataset: adjacent members with the same key.

    A photo is a member; samples cannot refer to files.
    """
    key, sample, error = None, {}, None
    with tarfile.open(fileobj=file, mode="r|*", tarinfo=_Member) as tar:
        try:
            for member in tar:
                tar.members.clear()  # the list would grow with the file
                if not _is_data(member, passed_over):
                    continue
                if sample and _key_of(member) != key:
                    yield _row_of_sample(f"{part.path}/{key}", sample)
                    sample = {}
                key = _key_of(member)
                suffix = member.name[len(key) :].lower()
                sample.setdefault(suffix, _content_of(tar, member, suffix))
        except Exception as caught:  # the last sample may be complete
            error = caught
    if sample:
        yield _row_of_sample(f"{part.path}/{key}", sample)
    if error:
        raise error


def _row_of_sample(key, sample):
    """Makes a row from members by suffix, or returns the `InputError` of one."""
    row = {KEY: key}
    for suffix, content in sample.items():
        if isinstance(content, InputError):
            return content
        if suffix in PHOTOS:
            row.setdefault("image", content)
        elif suffix == ".txt":
            row["text"] = content.strip()
    values = _json_object(sample[".json"]) if ".json" in sample else {}
    if isinstance(values, InputError):
        return values
    values = {column.strip().lower(): value for column, value in values.items()}
    return {**{n: x for n, x in values.items() if n not in NAMES}, **row}


NAMES = (*FIELDS["photo"], KEY)  # columns that JSON in an archive must not set
# Types of members without data, such as the long name of the next member.
HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)


class _Member(tarfile.TarInfo):
    """A member of a tar whose damage is an error.

    `tarfile` treats a damaged or missing header as the end of a tar, and reads long
    names of any size.
    """

    @classmethod
    def frombuf(cls, buf, encoding, errors):
        try:
            member = super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:
            raise
        except tarfile.HeaderError as error:
            raise ValueError(f"it is cut or damaged: {error}") from None
        if member.type in HEADERS and member.size > HEADER_BYTES:
            raise ValueError(f"it has a header of {member.size:,} bytes")
        return member


def _is_data(member, passed_over):
    """Returns whether a member is a visible file; counts others except folders."""
    if member.isfile() and not is_hidden(member.name):
        return True
    if not member.isdir():
        passed_over[HIDDEN if member.isfile() else SPECIAL] += 1
    return False


def _content_of(tar, member, suffix):
    """Reads a member that is a part of a record, or returns an `InputError`."""
    if suffix not in (*PHOTOS, ".txt", ".json"):
        return b""
    most = PHOTO_BYTES if suffix in PHOTOS else LINE_BYTES
    if member.size > most:
        return InputError(
            f"The record's {suffix} has {member.size:,} bytes; at most {most:,} are "
            "read."
        )
    return tar.extractfile(member).read()


def _key_of(member):
    folder, slash, name = member.name.rpartition("/")
    return f"{folder}{slash}{name.partition('.')[0]}"


def _read_parquet(file, part, fields, passed_over):
    with missing_extras():
        import pyarrow as pa
        import pyarrow.parquet as pq

    # A value that many rows share is unpacked with its row, not with its batch.
    fields_of = pq.ParquetFile(file).schema_arrow
    flat = [field.name for field in fields_of if not pa.types.is_nested(field.type)]
    table = pq.ParquetFile(file, read_dictionary=flat)
    known = {KEY, *itertools.chain(*FIELDS.values(), *IDS.values())}
    names = [name for name in table.schema_arrow.names if name.strip().lower() in known]
    for field in fields:
        if not {name.strip().lower() for name in names} & {*FIELDS[field]}:
            columns = ", ".join(FIELDS[field])
            raise InputError(
                f"{part.path} has no column of {field}s: none of {columns}."
            )
    for number in range(table.num_row_groups):
        group = table.metadata.row_group(number)
        size = group.total_byte_size // max(group.num_rows, 1)
        if size > PHOTO_BYTES:
            raise InputError(f"{part.path} has rows of {size:,} bytes: no photos.")
    for batch in table.iter_batches(AT_ONCE, columns=names):
        for place in range(len(batch)):
            yield from batch.slice(place, 1).to_pylist()


def _read_tfrecords(file, part, fields, passed_over):
    """Yields rows of `tf.train.Example`, from a copy: TensorFlow opens paths only.

    The copy of a file that TensorFlow compressed by gzip is unpacked.
    """
    with missing_extras():
        import tensorflow as tf

    with tempfile.NamedTemporaryFile() as copy:
        plain = gzip.GzipFile(fileobj=file) if _is_gzip(file) else file
        shutil.copyfileobj(plain, copy)
        copy.flush()
        whole, problem = _count_whole(copy)
        for record in (
            tf.data.TFRecordDataset(copy.name).take(whole).as_numpy_iterator()
        ):
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
        if problem:
            raise ValueError(problem)


def _is_gzip(file):
    """Whether a file is gzip, whatever its name; it stays at its beginning."""
    try:
        gzip.GzipFile(fileobj=file).read(1)
    except (OSError, EOFError, zlib.error):
        is_gzip = False
    else:
        is_gzip = True
    file.seek(0)
    return is_gzip


def _count_whole(file):
    """Counts the readable TFRecords, and describes the problem of the next one.

    TensorFlow treats a truncated length as the end of the file, and allocates as much
    memory as a length claims.
    """
    size, at, count = file.seek(0, os.SEEK_END), 0, 0
    while at < size:
        file.seek(at)
        length = int.from_bytes(file.read(LENGTH), "little")
        at += LENGTH + CHECKSUM + length + CHECKSUM
        if at > size:
            return count, "it ends within the next one"
        if length > PHOTO_BYTES:
            return count, f"the next one has {length:,} bytes"
        count += 1
    return count, None


READERS = {
    ".txt": _read_lines,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".tar": _read_tar,
    ".parquet": _read_parquet,
    ".tfrecord": _read_tfrecords,
}
