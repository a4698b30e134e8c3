"""The files of a job: shards, their descriptions, and a record of their source."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import glob
import hashlib
import json
from collections.abc import Container, Iterable, Mapping
from typing import Any

from typing_extensions import TypedDict

from keras_caption.apps.bulk.files import (
    delete,
    digest_of,
    is_local,
    match,
    read_file,
    replacing_file,
)
from keras_caption.apps.bulk.rows import FORMATS, UNDETECTED, Row
from keras_caption.base.errors import InputError
from keras_caption.formats.faults import kind_of, reading
from keras_caption.formats.json_files import parse_json
from keras_caption.formats.prepared_folder import Source

AT_ONCE = 32  # descriptions that are read at once, since remote files are slow
KINDS = 100  # greatest number of kinds of faults in the description of a shard
OTHERS = "other reasons"


class Fault(TypedDict):
    """A kind of fault: the number of its records, and one of them."""

    count: int
    id: str
    error: str


class Counts(TypedDict):
    """Numbers of records: all, those without a detection, and faults by kind."""

    read: int
    undetected: int
    faults: dict[str, Fault]
    passed_over: dict[str, int]


class Description(Counts):
    """Counts of a finished shard, with the size and the digest of its file."""

    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Output:
    """The shards of a job, files of one prefix on any of Beam's file systems.

    A shard, such as `PREFIX-00000-of-00002.jsonl`, appears whole. Its description
    follows, which marks the shard as finished: a file of the same name with `.json`, in
    the folder `FOLDER/_NAME` if the prefix is `FOLDER/NAME`. Unfinished files are in
    this folder too. Some readers of folders of Parquet files pass over names that begin
    with an underscore, and others read all files. So that both read the rows only, a
    description of a Parquet shard is a Parquet file itself, without rows, and nothing
    else is left at the end.

    Attributes:
        prefix: str.
        format: str, `"jsonl"` or `"parquet"`.
        count: int, number of shards.
    """

    prefix: str
    format: str
    count: int

    def path(self, number: int) -> str:
        return f"{self.prefix}-{number:05d}-of-{self.count:05d}.{self.format}"

    @property
    def folder(self) -> str:
        """The folder of the descriptions."""
        head, slash, name = self.prefix.rpartition("/")
        return f"{head}{slash}_{name}"

    @property
    def source(self) -> str:
        """The path of the file that records the source of all shards."""
        return f"{self.folder}/source.{self._notes.suffix}"

    def description(self, number: int) -> str:
        """The path of a shard's description."""
        name = self.path(number).rpartition("/")[2]
        return f"{self.folder}/{name}.{self._notes.suffix}"

    @property
    def _notes(self):
        return FORMATS[self.format].notes

    @property
    def pattern(self) -> str:
        """A pattern of all shards, for messages."""
        return f"{self.prefix}-*-of-{self.count:05d}.{self.format}"

    def is_begun(self, source: Any) -> bool:
        """Whether shards of the prefix were begun, of this source, see `begin`."""
        return self._recorded() == stamp_of(source)

    def begin(self, source: Any) -> None:
        """Records the source of the shards, or compares it with the recorded one.

        Args:
            source: JSON value that identifies inputs, model and options.

        Raises:
            InputError: If files of the prefix have another source, or were not written
                by this command.
        """
        recorded = self._recorded()
        if recorded is not None:
            if recorded != stamp_of(source):
                raise InputError(
                    f"{self.prefix} was begun with other inputs, another model or "
                    "other options: name another --output, or remove its files."
                )
        elif others := match(f"{escaped(self.prefix)}-*-of-*"):
            raise InputError(
                f"{others[0].path} exists, and was not written by this command: name "
                "another --output."
            )
        else:
            self._write_note(self.source, {"stamp": stamp_of(source)})

    def _recorded(self):
        """What the source was recorded as, or `None`."""
        if not match(escaped(self.source)):
            return None
        return self._read_note(self.source, Source)["stamp"]

    def _write_note(self, path, content):
        with replacing_file(path, self.folder) as file:
            self._notes.write(json.dumps(content), file)

    def _read_note(self, path, schema):
        content = read_file(path)
        with reading(path):
            text = self._notes.read(content)
        return parse_json(text, schema, path)

    def count_finished(self) -> int:
        """Counts the shards that have a description, without reading descriptions."""
        return len(self._described())

    def finished(self, numbers: Container[int]) -> dict[int, Description]:
        """Descriptions of finished shards, by number.

        A shard is finished if its size and its digest are those in its description.

        Args:
            numbers: Container of int, the numbers of the shards that are read.
        """

        def read(number, size):
            path = self.description(number)
            with contextlib.suppress(InputError, OSError):
                description = self._read_note(path, Description)
                found = description["bytes"], description["sha256"]
                if size == found[0] and digest_of(self.path(number)) == found[1]:
                    return description
            return None

        sizes = {n: size for n, size in self._described().items() if n in numbers}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            described = zip(sizes, pool.map(read, sizes, sizes.values()), strict=True)
            return {number: x for number, x in described if x is not None}

    def delete_unfinished(self) -> None:
        """Deletes the files that killed jobs of this prefix have left."""
        if files := match(f"{escaped(self.folder)}/*.partial"):
            delete([file.path for file in files])

    def _described(self):
        """Sizes in bytes of the shards that have a description, by number."""
        ending = f"-*-of-{self.count:05d}.{self.format}"
        shards = match(f"{escaped(self.prefix)}{ending}")
        sizes = {file.path: file.size_in_bytes for file in shards}
        pattern = f"{escaped(self.folder)}/*.{self._notes.suffix}"
        described = {file.path for file in match(pattern)}
        return {
            n: sizes[self.path(n)]
            for n in range(self.count)
            if self.path(n) in sizes and self.description(n) in described
        }

    def write(
        self, number: int, rows: Iterable[Row], passed_over: Mapping[str, int]
    ) -> Description:
        """Writes a shard and its description.

        Args:
            number: int, number of the shard.
            rows: Iterable of `Row`.
            passed_over: dict that counts other content of the shard's file. It is
                complete once all rows have been read.
        """
        read, undetected = 0, 0
        faults: dict[str, Fault] = {}
        path = self.path(number)
        writing = FORMATS[self.format].writing
        with replacing_file(path, self.folder) as file, writing(file) as write:
            for row in rows:
                write(row)
                read += 1
                if row["error"] == UNDETECTED:
                    undetected += 1
                elif row["error"] is not None:
                    add_fault(faults, row)
        description: Description = {
            "bytes": file.size,
            "sha256": file.digest.hexdigest(),
            "read": read,
            "undetected": undetected,
            "faults": faults,
            "passed_over": dict(passed_over),
        }
        self._write_note(self.description(number), description)
        return description


def stamp_of(source: Any) -> str:
    """What a source is recorded as."""
    return hashlib.sha256(json.dumps(source).encode()).hexdigest()


def sum_of(descriptions: Iterable[Counts]) -> Counts:
    """The counts of all shards together."""
    total: Counts = {"read": 0, "undetected": 0, "faults": {}, "passed_over": {}}
    passed_over: collections.Counter[str] = collections.Counter()
    for description in descriptions:
        total["read"] += description["read"]
        total["undetected"] += description["undetected"]
        for kind, fault in description["faults"].items():
            known = total["faults"].setdefault(kind, {**fault, "count": 0})
            known["count"] += fault["count"]
        passed_over.update(description["passed_over"])
    total["passed_over"] = dict(passed_over)
    return total


def escaped(path: str) -> str:
    """A pattern that matches only this path."""
    return glob.escape(path) if is_local(path) else path


def add_fault(faults: dict[str, Fault], row: Row) -> None:
    """Adds a row with an error to the counts of faults by kind."""
    kind = kind_of(row["error"], row["id"])
    if kind not in faults and len(faults) >= KINDS:
        kind = OTHERS
    example: Fault = {"count": 0, "id": row["id"], "error": row["error"]}
    faults.setdefault(kind, example)["count"] += 1


def count_faults(faults: dict[str, Fault]) -> int:
    return sum(fault["count"] for fault in faults.values())
