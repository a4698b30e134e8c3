"""Folders of prepared datasets: shards, their descriptions, and the manifest."""

import concurrent.futures
import functools
import hashlib
import os
import pathlib
from collections.abc import Iterable
from typing import Any, NotRequired

from typing_extensions import TypedDict

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.progress import progress
from keras_caption.formats.faults import reading
from keras_caption.formats.json_files import read_json

MANIFEST = "manifest.json"
DESCRIPTIONS = "dataset_info.json", "features.json"  # TFDS's
SOURCE = "source.json"
IMAGE_IDS = "image_ids.json"
LARGE = 2**30  # bytes; reading them takes about a second
REMEDY = "prepare the dataset again, which makes only what is missing"


class Source(TypedDict):
    """Identifies the data that a folder is prepared from."""

    stamp: str


class Shard(TypedDict):
    """Description of a shard; `left_out` has the skipped records and the reasons."""

    examples: int
    bytes: int
    sha256: str
    left_out: list[list[str]]


class Split(TypedDict):
    listed: int
    prepared: int


class Manifest(TypedDict):
    """Description of a dataset; `shards` and `descriptions` are checksums by file."""

    splits: dict[str, Split]
    left_out: list[list[str]]
    shards: dict[str, str]
    descriptions: NotRequired[dict[str, str]]  # missing in older folders


def description_of(path: pathlib.Path) -> pathlib.Path:
    """Path of the description of a shard, a JSON file beside it."""
    return path.with_name(f"{path.name}.json")


def read_shard(path: pathlib.Path) -> Shard:
    """Reads the description of a shard and compares its size and checksum.

    A process computes the checksum of a shard once, unless the shard changes.

    Args:
        path: `pathlib.Path` of the shard.

    Returns:
        dict, see `Shard`.

    Raises:
        InputError: If the shard or its description is missing, truncated or damaged.
    """
    description = description_of(path)
    if not (path.exists() and description.exists()):
        raise InputError(f"{path} is missing or truncated: {REMEDY}.")
    shard = read_json(description, Shard)
    status = path.stat()
    if status.st_size != shard["bytes"]:
        raise InputError(f"{path} is missing or truncated: {REMEDY}.")
    if sha256_of(path, status.st_size, status.st_mtime_ns) != shard["sha256"]:
        raise InputError(
            f"{path} is damaged, its checksum is not that in {description.name}: "
            f"{REMEDY}."
        )
    return shard


def checksums(folder: pathlib.Path, names: Iterable[str]) -> dict[str, str | None]:
    """Computes the checksums of files in a folder, `None` for a missing file."""
    checksum_of: dict[str, str | None] = {}
    for path in (folder / name for name in names):
        if path.is_file():
            status = path.stat()
            checksum_of[path.name] = sha256_of(path, status.st_size, status.st_mtime_ns)
        else:
            checksum_of[path.name] = None
    return checksum_of


@functools.cache
def sha256_of(path: pathlib.Path, size: int, modified: int) -> str:
    """Computes the checksum of a file, once for each size and modification time."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_image_ids(path: pathlib.Path) -> dict[str, int]:
    """Reads the numbers of images whose ids are names, a dict from name to number."""
    return read_json(path, dict[str, int])


def read_shards(paths: list[pathlib.Path]) -> list[Shard | InputError]:
    """Reads the descriptions of several shards; large ones with a progress bar.

    Args:
        paths: List of `pathlib.Path`.

    Returns:
        A list with the result of `read_shard` for each path, or the `InputError` that
        it raised.
    """

    def read(path):
        try:
            return read_shard(path)
        except InputError as error:
            return error

    total = sum(path.stat().st_size for path in paths if path.exists())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        shards = pool.map(read, paths)
        if total >= LARGE:
            desc = "Comparing checksums"
            shards = progress(shards, desc, len(paths), "shards", leave=False)
        return list(shards)


def read_prepared(folder: str | os.PathLike) -> Any:
    """Opens a prepared dataset after comparing its checksums and counts.

    Args:
        folder: Path of a folder written by `keras_caption.prepare.prepare_photos` or
            `prepare_regions`.

    Returns:
        TFDS builder of the dataset.

    Raises:
        InputError: If the folder is unfinished, a file is missing or damaged, or
            its counts of images differ from those of TFDS.
    """
    folder = pathlib.Path(folder)
    if not (folder / MANIFEST).exists():
        raise InputError(
            f"{folder} holds no prepared dataset, or an unfinished one: prepare it, "
            "which resumes what was interrupted."
        )
    manifest = read_json(folder / MANIFEST, Manifest)
    for name, checksum in manifest.get("descriptions", {}).items():
        if checksums(folder, [name]) != {name: checksum}:
            raise InputError(f"{folder / name} is missing or damaged: {REMEDY}.")
    shards = read_shards([folder / name for name in manifest["shards"]])
    lengths = []
    for (name, checksum), shard in zip(manifest["shards"].items(), shards, strict=True):
        if isinstance(shard, InputError):
            raise shard
        if shard["sha256"] != checksum:
            raise InputError(f"{folder / name} is not the shard of {MANIFEST}.")
        lengths.append(shard["examples"])
    builder, tfds_counts = open_builder(folder)
    counts = dict(zip(manifest["shards"], lengths, strict=True))
    counts |= {name: split["prepared"] for name, split in manifest["splits"].items()}
    for name in counts | tfds_counts:
        if counts.get(name, 0) != tfds_counts.get(name, 0):
            raise InputError(
                f"{folder}: {name} has {counts.get(name, 0)} images; dataset_info.json "
                f"says {tfds_counts.get(name, 0)}."
            )
    return builder


def open_builder(folder: pathlib.Path) -> tuple[Any, dict[str, int]]:
    """Opens the TFDS builder of a folder; returns it with counts by shard and split."""
    with missing_extras():
        import tensorflow_datasets as tfds

    with reading(f"{folder}, {' or '.join(DESCRIPTIONS)},"):
        builder = tfds.builder_from_directory(folder)
        counts: dict[str, int] = {}
        for name, split in builder.info.splits.items():
            files = [pathlib.Path(file).name for file in split.filenames]
            counts |= dict(zip(files, split.shard_lengths, strict=True))
            counts[name] = split.num_examples
    return builder, counts
