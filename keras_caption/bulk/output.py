"""The files of a job: shards, their descriptions, and a record of their source."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import glob
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NotRequired

from typing_extensions import TypedDict

from keras_caption.bulk.files import is_local, match, read_file, replacing_file
from keras_caption.bulk.rows import FORMATS, UNDETECTED, Row
from keras_caption.errors import InputError
from keras_caption.formats.faults import kind_of
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


class Description(TypedDict):
    """Counts of a finished shard: records, faults by kind, and undetected objects."""

    bytes: int
    read: int
    undetected: int
    faults: dict[str, Fault]
    passed_over: NotRequired[dict[str, int]]  # missing in older descriptions


@dataclasses.dataclass(frozen=True)
class Output:
    """The shards of a job, files of one prefix on any of Beam's file systems.

    A shard, such as `PREFIX-00000-of-00002.jsonl`, appears whole. Its description
    follows, which marks the shard as finished: a file of the same name with `.json`, in
    the folder `FOLDER/_NAME` if the prefix is `FOLDER/NAME`. Readers of folders of
    Parquet files ignore names that begin with an underscore.

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
        return f"{self.folder}/source.json"

    def description(self, number: int) -> str:
        """The path of a shard's description."""
        return f"{self.folder}/{self.path(number).rpartition('/')[2]}.json"

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
            write_json(self.source, {"stamp": stamp_of(source)})

    def _recorded(self):
        """What the source was recorded as, or `None`."""
        if not match(escaped(self.source)):
            return None
        return parse_json(read_file(self.source), Source, self.source)["stamp"]

    def count_finished(self) -> int:
        """Counts the shards that have a description, without reading descriptions."""
        return len(self._described())

    def finished(self) -> dict[int, Description]:
        """Descriptions of finished shards, by number.

        A shard is finished if its size is that in its description.
        """

        def read(number, size):
            path = self.description(number)
            with contextlib.suppress(InputError):
                description = parse_json(read_file(path), Description, path)
                return description if description["bytes"] == size else None

        sizes = self._described()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            described = zip(sizes, pool.map(read, sizes, sizes.values()), strict=True)
            return {number: x for number, x in described if x is not None}

    def _described(self):
        """Sizes in bytes of the shards that have a description, by number."""
        ending = f"-*-of-{self.count:05d}.{self.format}"
        shards = match(f"{escaped(self.prefix)}{ending}")
        sizes = {file.path: file.size_in_bytes for file in shards}
        described = {file.path for file in match(f"{escaped(self.folder)}/*.json")}
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
        read, undetected, faults = 0, 0, {}
        path = self.path(number)
        with replacing_file(path) as file:
            with FORMATS[self.format](file) as write:
                for row in rows:
                    write(row)
                    read += 1
                    if row["error"] == UNDETECTED:
                        undetected += 1
                    elif row["error"] is not None:
                        add_fault(faults, row)
            size = file.tell()
        description = {"bytes": size, "read": read, "faults": faults}
        description["passed_over"] = dict(passed_over)
        description["undetected"] = undetected
        write_json(self.description(number), description)
        return description


def stamp_of(source: Any) -> str:
    """What a source is recorded as."""
    return hashlib.sha256(json.dumps(source).encode()).hexdigest()


def sum_of(descriptions: Iterable[Description]) -> Description:
    """The description of all shards together."""
    total = {"bytes": 0, "read": 0, "undetected": 0, "faults": {}}
    passed_over = collections.Counter()
    for description in descriptions:
        for name in ("bytes", "read", "undetected"):
            total[name] += description[name]
        for kind, fault in description["faults"].items():
            known = total["faults"].setdefault(kind, {**fault, "count": 0})
            known["count"] += fault["count"]
        passed_over.update(description.get("passed_over", {}))
    return {**total, "passed_over": dict(passed_over)}


def escaped(path: str) -> str:
    """A pattern that matches only this path."""
    return glob.escape(path) if is_local(path) else path


def add_fault(faults: dict[str, Fault], row: Row) -> None:
    """Adds a row with an error to the counts of faults by kind."""
    kind = kind_of(row["error"], row["id"])
    if kind not in faults and len(faults) >= KINDS:
        kind = OTHERS
    example = {"count": 0, "id": row["id"], "error": row["error"]}
    faults.setdefault(kind, example)["count"] += 1


def count_faults(faults: dict[str, Fault]) -> int:
    return sum(fault["count"] for fault in faults.values())


def write_json(path: str, content: Any) -> None:
    """Writes a JSON file on any file system, whole or not at all."""
    with replacing_file(path) as file:
        file.write(json.dumps(content).encode())
