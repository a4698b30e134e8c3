"""The files of a job: shards, a description beside each, and what was begun."""

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

AT_ONCE = 32  # descriptions that are read
KINDS = 100  # of faults, in the description of a shard
OTHERS = "other reasons"


class Fault(TypedDict):
    """Records that failed alike: how many, and one of them."""

    count: int
    id: str
    error: str


class Description(TypedDict):
    """A finished shard: its records, its faults by kind, and how many show nothing."""

    bytes: int
    read: int
    undetected: int
    faults: dict[str, Fault]
    passed_over: NotRequired[dict[str, int]]  # missing in older descriptions


@dataclasses.dataclass(frozen=True)
class Output:
    """The shards of a job, files of one prefix on any of Beam's file systems.

    A shard `PREFIX-00000-of-00002.jsonl` appears whole, and then its description, by
    which it is known as finished: the same name with `.json`, in a folder beside the
    shards, `_NAME` of a prefix `FOLDER/NAME`. What reads folders of Parquet files
    passes over such names.

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
        """The path of what records the source of all shards."""
        return f"{self.folder}/source.json"

    def description(self, number: int) -> str:
        """The path of a shard's description."""
        return f"{self.folder}/{self.path(number).rpartition('/')[2]}.json"

    @property
    def pattern(self) -> str:
        """All shards, for messages."""
        return f"{self.prefix}-*-of-{self.count:05d}.{self.format}"

    def is_begun(self, source: Any) -> bool:
        """Whether shards of the prefix were begun, of this source, see `begin`."""
        return self._recorded() == stamp_of(source)

    def begin(self, source: Any) -> None:
        """Records what the shards are made of, or compares it.

        Args:
            source: JSON value that identifies inputs, model and options.

        Raises:
            InputError: If files of the prefix are of another source, or not ours.
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
                f"{others[0].path} is there, but not by this command: name another "
                "--output."
            )
        else:
            write_json(self.source, {"stamp": stamp_of(source)})

    def _recorded(self):
        """What the source was recorded as, or `None`."""
        if not match(escaped(self.source)):
            return None
        return parse_json(read_file(self.source), Source, self.source)["stamp"]

    def count_finished(self) -> int:
        """Number of shards that have a description, which are not opened."""
        return len(self._described())

    def finished(self) -> dict[int, Description]:
        """Descriptions of the shards that are whole, by number.

        A shard is whole if it has as many bytes as its description says.
        """

        def read(number, size):
            path = self.description(number)
            with contextlib.suppress(InputError):
                description = parse_json(read_file(path), Description, path)
                return description if description["bytes"] == size else None

        sizes = self._described()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            found = zip(sizes, pool.map(read, sizes, sizes.values()), strict=True)
            return {number: x for number, x in found if x is not None}

    def _described(self):
        """Number of bytes of each shard that has a description, by its number."""
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
            number: int, of the shard.
            rows: Iterable of `Row`.
            passed_over: dict of what the shard's file has that is no data, complete
                once all rows have been taken.
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
    """A path as a pattern that it alone matches."""
    return glob.escape(path) if is_local(path) else path


def add_fault(faults: dict[str, Fault], row: Row) -> None:
    """Counts a row with an error among faults by kind."""
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
