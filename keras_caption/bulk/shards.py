"""Which records are in which shard: planned before anything is read."""

import dataclasses
from collections.abc import Iterator, Sequence

from keras_caption.bulk.files import find_files, open_file
from keras_caption.errors import InputError
from keras_caption.features.clips import SUFFIXES as CLIPS
from keras_caption.features.photos import SUFFIXES as PHOTOS
from keras_caption.formats.record_files import (
    LIST_SUFFIXES,
    Part,
    Record,
    kind_of_file,
    parts_of_file,
    read_part,
)


@dataclasses.dataclass(frozen=True)
class Shard:
    """Records that are answered together and written to one file.

    Attributes:
        number: int, from 0.
        files: tuple of str, paths of photos or clips; or none.
        part: `Part` of a file of records, or `None`.
    """

    number: int
    files: tuple[str, ...] = ()
    part: Part | None = None

    def read(self, fields: tuple[str, ...]) -> Iterator[Record]:
        """Yields the records; files of photos are not opened, see `Record`."""
        if self.part is not None:
            yield from read_part(self.part, open_file, fields)
        for path in self.files:
            yield Record(path, path)


@dataclasses.dataclass(frozen=True)
class Plan:
    """All shards.

    Attributes:
        shards: tuple of `Shard`.
        sizes: dict from the path of a file of records to its number of bytes.
    """

    shards: tuple[Shard, ...]
    sizes: dict[str, int]


def plan(
    inputs: Sequence[str], fields: tuple[str, ...], shard_size: int, clips: bool = False
) -> Plan:
    """Plans the shards of inputs.

    A file that is named twice is read once. Of folders, files are read whose suffixes
    say that they hold photos or records, and lists only of what needs no photo: the
    text files beside photos are seldom lists of them.

    Args:
        inputs: Sequence of str, see `find_files`.
        fields: tuple of `"photo"` and `"text"`, what a record has.
        shard_size: int, number of photos, or of rows of a list, in a shard; each other
            file of records is one shard.
        clips: bool, whether files are clips, not photos.

    Raises:
        InputError: If an input does not exist, or holds nothing to read.
    """
    media, parts, sizes = {}, [], {}
    suffixes = CLIPS if clips else PHOTOS
    for name in inputs:
        found, is_folder = find_files(name)
        used = 0
        for file in found:
            kind = kind_of_file(file.path)
            is_medium = file.path.lower().endswith(suffixes)
            is_list = kind in LIST_SUFFIXES
            if is_folder and not (kind or (is_medium and fields == ("photo",))):
                continue
            if is_folder and is_list and "photo" in fields:
                continue
            used += 1
            if file.path in media or file.path in sizes:
                continue
            if kind is None and fields == ("photo",):
                media[file.path] = None
                continue
            if kind in (None, ".txt") and len(fields) == 2:
                raise InputError(
                    f"{file.path} holds no questions about photos: CSV, JSON Lines, "
                    "WebDataset tars, Parquet and TFRecords may."
                )
            sizes[file.path] = file.size_in_bytes
            parts += _parts(file.path, shard_size)
        if not used:
            raise InputError(f"{name} has no files of {' or '.join(fields)}s.")
    media = list(media)
    chunks = [media[i : i + shard_size] for i in range(0, len(media), shard_size)]
    contents = [{"files": tuple(chunk)} for chunk in chunks]
    contents += [{"part": part} for part in parts]
    return Plan(tuple(Shard(i, **x) for i, x in enumerate(contents)), sizes)


def _parts(path, size):
    try:
        with open_file(path) as file:
            return parts_of_file(file, path, size)
    except Exception:  # a damaged file: a fault once it is read
        return [Part(path)]
