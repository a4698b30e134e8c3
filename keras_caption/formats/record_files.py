"""Files of many photos, sentences or questions: lists, tars, Parquet and TFRecords."""

import collections
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from keras_caption.errors import InputError, missing_extras
from keras_caption.formats.caption_csv import COLUMNS
from keras_caption.formats.csv_rows import cells_of, delimiter_of, raw_rows
from keras_caption.formats.faults import reason_of
from keras_caption.formats.folders import HIDDEN, PHOTOS, SPECIAL, is_hidden
from keras_caption.formats.text_lines import LINE_BYTES, MARK, decode, raw_lines

LIST_SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl")
# A record's fields are the first of these columns that it has.
FIELDS = {
    "photo": (*COLUMNS["file_name"], "path", "image/encoded"),
    "text": ("text", "sentence", "question", "source"),
}
# So is its id, by what it has: several questions may be about one image.
IDS = {
    ("photo",): ("id", "image_id", "question_id"),
    ("text",): ("id", "question_id", "image_id"),
    ("photo", "text"): ("question_id", "id"),
}
KEY = "__key__"  # of a sample of WebDataset: the last column of ids
AT_ONCE = 64  # rows of a Parquet file in memory
PHOTO_BYTES = 2**29  # of a photo, which has as much as MAX_PIXELS in 16 bits
HEADER_BYTES = 2**20  # of a tar's member: its long name, and the like
LENGTH, CHECKSUM = 8, 4  # bytes before and behind the content of a TFRecord


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
    part: Part,
    open_file: Callable[[str], BinaryIO],
    fields: tuple[str, ...],
    passed_over: collections.Counter | None = None,
) -> Iterator[Record]:
    """Yields the records of a part; never raises.

    A record that cannot be read has a `problem`; so has the last one, whose id is the
    path, of a file that cannot be read to its end.

    Args:
        part: `Part`.
        open_file: Function from a path to a binary file, unpacked if it is a `.gz`.
        fields: tuple of `"photo"` and `"text"`, those that records should have.
        passed_over: `collections.Counter` of members of archives that are no data, see
            `keras_caption.formats.folders.list_files`. Defaults to `None`.
    """
    number, kind = 0, kind_of_file(part.path) or ".txt"
    counts = collections.Counter() if passed_over is None else passed_over
    try:
        with open_file(part.path) as file:
            rows = READERS[kind](file, part, fields, counts)
            for number, row in enumerate(rows, start=part.first):
                if row is not None:
                    name = f"{part.path}#{number}"
                    yield _record(row, name, part.path, fields)
    except Exception as error:  # readers raise anything at damaged files
        reason = str(error).rstrip(".")
        if not isinstance(error, InputError):
            after = f" after record {number:,}" if number else ""
            reason = f"{part.path} cannot be read{after}: {reason_of(error)}"
        yield Record(part.path, problem=f"{reason}.")


def _record(row, name, path, fields):
    """The record of a row, a dict from column to value, or an `InputError`."""
    if isinstance(row, InputError):
        return Record(name, problem=str(row))
    row = {str(column).strip().lower(): value for column, value in row.items()}
    own = _id(row, fields)
    try:
        values = {field: _field(row, field) for field in fields}
    except InputError as error:
        return Record(own or name, problem=str(error))
    photo, text = values.get("photo"), values.get("text")
    if isinstance(photo, str):
        photo = _beside(path, photo)
    if own is None:
        own = photo if isinstance(photo, str) and text is None else name
    return Record(own, photo, text)


def _field(row, field):
    """A photo, bytes or a path, or a text of a row.

    Raises:
        InputError: If it has none, or it is something else.
    """
    empty = (None,) if field == "text" else (None, "", b"")
    given = (row.get(column) for column in FIELDS[field])
    value = next((x for x in given if x not in empty), None)
    if isinstance(value, Mapping):  # of Hugging Face
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
    """The id of a row as text, whatever its bytes; `None` of a row without."""
    for column in (*IDS[fields], KEY):
        value = row.get(column)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        if isinstance(value, float):  # as data frames hold numbers, some missing
            value = int(value) if value.is_integer() else None
        if value is not None and value != "":
            return str(value)
    return None


def _beside(path, photo):
    """Path of a photo, which a list names relative to its own folder."""
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
    """The delimiter of a list's cells; `None` of a list of lines."""
    kind = kind_of_file(path)
    if kind == ".tsv":
        return "\t"
    if kind != ".csv":
        return None
    _, header = next(raw_lines(file), (0, b""))
    columns = itertools.chain(*FIELDS.values(), *IDS.values())
    return delimiter_of(decode(header, f"{path}, line 1,").removeprefix(MARK), columns)


def _raw_part(file, part, delimiter):
    """The lines of each record of a part of a list, and whether it is the first."""
    file.seek(part.start)
    for start, lines in itertools.islice(raw_rows(file, delimiter), part.count):
        yield start == 0, lines


def _texts(file, part):
    """The lines of a part of a list: texts, or errors."""
    for is_first, [line] in _raw_part(file, part, None):
        try:
            text = decode(line, "The record")
        except InputError as error:
            yield error
        else:
            yield text.removeprefix(MARK) if is_first else text


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
    """Rows as dicts; the first row of the file is the header."""
    delimiter = _delimiter(file, part.path)
    head = dataclasses.replace(part, start=0, count=1)
    names = None
    for _, lines in _raw_part(file, head, delimiter):
        names = cells_of(lines, f"{part.path}, line 1,", delimiter, True)
    for is_first, lines in _raw_part(file, part, delimiter):
        if is_first:
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
    """Samples of a WebDataset: members that follow each other and have one key.

    They name no files: a photo is a member.
    """
    key, sample, error = None, {}, None
    with tarfile.open(fileobj=file, mode="r|*", tarinfo=_Member) as tar:
        try:
            for member in tar:
                tar.members.clear()  # which would grow with the file
                if not _is_data(member, passed_over):
                    continue
                if sample and _key_of(member) != key:
                    yield _row_of_sample(f"{part.path}/{key}", sample)
                    sample = {}
                key = _key_of(member)
                suffix = member.name[len(key) :].lower()
                sample.setdefault(suffix, _content_of(tar, member, suffix))
        except Exception as caught:  # of what is cut; the last sample may be whole
            error = caught
    if sample:
        yield _row_of_sample(f"{part.path}/{key}", sample)
    if error:
        raise error


def _row_of_sample(key, sample):
    """The row of members by suffix, bytes or `InputError`; or an `InputError`."""
    row = {KEY: key}
    for suffix, content in sample.items():
        if isinstance(content, InputError):
            return content
        if suffix in PHOTOS:
            row.setdefault("image", content)
        elif suffix == ".txt":
            row["text"] = content.strip()
    own = _json_object(sample[".json"]) if ".json" in sample else {}
    if isinstance(own, InputError):
        return own
    own = {column.strip().lower(): value for column, value in own.items()}
    return {**{n: x for n, x in own.items() if n not in NAMES}, **row}


NAMES = (*FIELDS["photo"], KEY)  # what JSON within an archive may not say
# Types of members that hold no data: the long name of the next member, and the like.
HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)


class _Member(tarfile.TarInfo):
    """A member of a tar; what is damaged is an error.

    `tarfile` itself takes a damaged or missing header for the end of a tar, and reads
    long names of any size.
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
    """Whether a member is a visible file; others are counted, but for folders."""
    if member.isfile() and not is_hidden(member.name):
        return True
    if not member.isdir():
        passed_over[HIDDEN if member.isfile() else SPECIAL] += 1
    return False


def _content_of(tar, member, suffix):
    """The bytes of a member that is a part of a record, or an `InputError`."""
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
        import pyarrow.parquet as pq

    table = pq.ParquetFile(file)
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
        yield from batch.to_pylist()


def _read_tfrecords(file, part, fields, passed_over):
    """Rows of `tf.train.Example`, read from a copy: TensorFlow opens paths only."""
    with missing_extras():
        import tensorflow as tf

    with tempfile.NamedTemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
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


def _count_whole(file):
    """Number of the first TFRecords that can be read, and what is wrong with the next.

    TensorFlow takes what is left of a record's length for the end of the file, and
    allocates what the length says.
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
