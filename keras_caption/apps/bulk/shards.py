"""The plan of shards, made before any record is read."""

import collections
import dataclasses
from collections.abc import Iterator, Sequence

from keras_caption.apps.bulk.files import digest_of, find_files, open_file
from keras_caption.base.errors import InputError
from keras_caption.formats.folders import CLIPS, PHOTOS, kind_of_suffix
from keras_caption.formats.record_files import (
    LIST_SUFFIXES,
    Part,
    Record,
    kind_of_file,
    parts_of_file,
    read_part,
)

# Greatest and least number of photos of a shard; number of shards of few photos, for
# several workers.
LARGEST, LEAST, SEVERAL = 1000, 32, 8


@dataclasses.dataclass(frozen=True)
class Shard:
    """Records that are answered together and written to one file.

    Attributes:
        number: int, from 0.
        files: tuple of str, paths of photos or clips; may be empty.
        part: `Part` of a file of records, or `None`.
    """

    number: int
    files: tuple[str, ...] = ()
    part: Part | None = None

    def read(
        self, fields: tuple[str, ...], passed_over: collections.Counter
    ) -> Iterator[Record]:
        """Yields the records, without opening files of photos, see `Record`."""
        if self.part is not None:
            yield from read_part(self.part, open_file, fields, passed_over)
        for path in self.files:
            yield Record(path, path)


@dataclasses.dataclass(frozen=True)
class Plan:
    """All shards.

    Attributes:
        shards: tuple of `Shard`.
        stamps: dict from the path of each file to a value that changes with its
            content: the SHA-256 of a list; size and time of the last change of any
            other file.
        passed_over: dict that counts other files of folders, see
            `keras_caption.formats.folders.list_files`.
    """

    shards: tuple[Shard, ...]
    stamps: dict[str, str | tuple[int, float]]
    passed_over: dict[str, int]


def plan(
    inputs: Sequence[str],
    fields: tuple[str, ...],
    shard_size: int | None = None,
    clips: bool = False,
) -> Plan:
    """Plans the shards of inputs.

    A file that is named twice is read once. In folders, suffixes decide which files
    hold photos or records. Lists in folders are read only if records have no photo:
    text files beside photos are seldom lists of photos. A Parquet file beside a tar of
    the same name is a table about the tar, as img2dataset writes it, and is passed
    over.

    Args:
        inputs: Sequence of str, see `find_files`.
        fields: tuple of `"photo"` and `"text"`, fields of a record.
        shard_size: int, number of photos, or of rows of a list, in a shard. Any other
            file of records is one shard. Defaults to 1,000, and to less for few photos,
            see `size_of_shards`.
        clips: bool, whether files are clips, not photos.

    Raises:
        InputError: If an input does not exist, or holds nothing to read.
    """
    media: list[str] = []
    parts: list[Part] = []
    stamps: dict[str, str | tuple[int, float]] = {}
    passed_over: collections.Counter[str] = collections.Counter()
    suffixes = CLIPS if clips else PHOTOS
    for name in inputs:
        files, is_folder = find_files(name, passed_over)
        paths = {file.path for file in files}
        used = 0
        for file in files:
            path, kind = file.path, kind_of_file(file.path)
            is_medium = fields == ("photo",) and path.lower().endswith(suffixes)
            is_list = kind in LIST_SUFFIXES
            about_tar = kind == ".parquet" and path[: -len(kind)] + ".tar" in paths
            if is_folder and (
                about_tar
                or (kind is None and not is_medium)
                or (is_list and "photo" in fields)
            ):
                passed_over[kind_of_suffix(path)] += 1
                continue
            used += 1
            if path in stamps:
                continue
            stamps[path] = file.size_in_bytes, file.last_updated_in_seconds
            if kind is None and fields == ("photo",):
                media.append(path)
                continue
            if kind in (None, ".txt") and len(fields) == 2:
                raise InputError(
                    f"{path} holds no questions about photos: CSV, JSON Lines, "
                    "WebDataset tars, Parquet and TFRecords may."
                )
            parts += _parts(path, shard_size or LARGEST)
            if is_list or kind is None:
                stamps[path] = _checksum(path) or stamps[path]
        if not used:
            raise InputError(f"{name} has no files of {' or '.join(fields)}s.")
    shard_size = shard_size or size_of_shards(len(media))
    chunks = [media[i : i + shard_size] for i in range(0, len(media), shard_size)]
    shards = [Shard(i, files=tuple(chunk)) for i, chunk in enumerate(chunks)]
    shards += [Shard(i, part=part) for i, part in enumerate(parts, len(chunks))]
    return Plan(tuple(shards), stamps, dict(passed_over))


def size_of_shards(count: int) -> int:
    """The number of photos in a shard, for `SEVERAL` shards if there are few photos."""
    return min(LARGEST, max(LEAST, -(-count // SEVERAL)))


def _parts(path, size):
    try:
        with open_file(path) as file:
            return parts_of_file(file, path, size)
    except Exception:  # a damaged file becomes a fault when the shard is read
        return [Part(path)]


def _checksum(path):
    """The SHA-256 of a list, or `None` if it cannot be read."""
    try:
        return digest_of(path)
    except Exception:
        return None
