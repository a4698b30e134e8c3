"""Folders of prepared datasets: shards, what is in each, and the manifest."""

import concurrent.futures
import functools
import hashlib
import os
import pathlib
from typing import NotRequired

from typing_extensions import TypedDict

from keras_caption.errors import InputError
from keras_caption.formats.faults import reading
from keras_caption.formats.json_files import read_json

MANIFEST = "manifest.json"
DESCRIPTIONS = "dataset_info.json", "features.json"  # TFDS's
SOURCE = "source.json"
LARGE = 2**30  # bytes whose reading takes about a second


class Source(TypedDict):
    """What a folder was begun with."""

    stamp: str


class Shard(TypedDict):
    """What is in a shard, and which records were skipped and why."""

    examples: int
    bytes: int
    sha256: str
    left_out: list[list[str]]


class Split(TypedDict):
    listed: int
    prepared: int


class Manifest(TypedDict):
    """What is in a whole dataset; checksums by the names of the files."""

    splits: dict[str, Split]
    left_out: list[list[str]]
    shards: dict[str, str]
    descriptions: NotRequired[dict[str, str]]  # earlier folders have none


def description_of(path):
    """The file that says what is in a shard."""
    return path.with_name(f"{path.name}.json")


def read_shard(path):
    """Reads what is in a shard, whose size and checksum have to be as written there.

    A process reads a shard for its checksum once, unless it changes.

    Args:
        path: `pathlib.Path` of the shard.

    Returns:
        dict, see `Shard`.

    Raises:
        InputError: If the shard is missing, cut short or damaged, or the file beside
            it is.
    """
    description = description_of(path)
    if not (path.exists() and description.exists()):
        raise InputError(f"{path} is missing or cut short: {REMEDY}.")
    shard = read_json(description, Shard)
    status = path.stat()
    if status.st_size != shard["bytes"]:
        raise InputError(f"{path} is missing or cut short: {REMEDY}.")
    if sha256_of(path, status.st_size, status.st_mtime_ns) != shard["sha256"]:
        raise InputError(
            f"{path} is damaged, its checksum is not that in {description.name}: "
            f"{REMEDY}."
        )
    return shard


REMEDY = "prepare the dataset again"


def checksums(folder, names):
    """The checksums of a folder's files, `None` of one that is missing, by name."""
    found = {}
    for path in (folder / name for name in names):
        if path.is_file():
            status = path.stat()
            found[path.name] = sha256_of(path, status.st_size, status.st_mtime_ns)
        else:
            found[path.name] = None
    return found


@functools.cache
def sha256_of(path, size, modified):
    """The checksum of a file of a size and a time of modification."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_shards(paths):
    """Reads what is in several shards, with a progress bar where they are large.

    Args:
        paths: List of `pathlib.Path`.

    Returns:
        A list with, for each path, what `read_shard` returned, or the `InputError`
        that it raised.
    """
    from tqdm import tqdm

    def read(path):
        try:
            return read_shard(path)
        except InputError as error:
            return error

    total = sum(path.stat().st_size for path in paths if path.exists())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(
            tqdm(
                pool.map(read, paths),
                total=len(paths),
                desc="Comparing checksums",
                unit=" shards",
                leave=False,
                disable=total < LARGE,
            )
        )


def read_prepared(folder):
    """Opens a finished folder, after its checksums and counts are compared.

    Args:
        folder: What `keras_caption.data.prepare` has filled.

    Returns:
        A TFDS builder.

    Raises:
        InputError: If the folder is unfinished, a file is missing or damaged, or
            their counts differ.
    """
    folder = pathlib.Path(folder)
    if not (folder / MANIFEST).exists():
        raise InputError(
            f"{folder} holds no prepared dataset, or an unfinished one: prepare it, "
            "or resume that."
        )
    manifest = read_json(folder / MANIFEST, Manifest)
    for name, checksum in manifest.get("descriptions", {}).items():
        if checksums(folder, [name]) != {name: checksum}:
            raise InputError(f"{folder / name} is missing or damaged: {REMEDY}.")
    shards = read_shards([folder / name for name in manifest["shards"]])
    for (name, checksum), shard in zip(manifest["shards"].items(), shards, strict=True):
        if isinstance(shard, InputError):
            raise shard
        if shard["sha256"] != checksum:
            raise InputError(f"{folder / name} is not the shard of {MANIFEST}.")
    builder, described = open_builder(folder)
    lengths = [shard["examples"] for shard in shards]
    found = dict(zip(manifest["shards"], lengths, strict=True))
    found |= {name: split["prepared"] for name, split in manifest["splits"].items()}
    for name in found | described:
        if found.get(name, 0) != described.get(name, 0):
            raise InputError(
                f"{folder}: {name} has {found.get(name, 0)} images; dataset_info.json "
                f"says {described.get(name, 0)}."
            )
    return builder


def open_builder(folder):
    """The TFDS builder of a folder, and its counts by shard and split, a dict."""
    import tensorflow_datasets as tfds

    with reading(f"{folder}, {' or '.join(DESCRIPTIONS)},"):
        builder = tfds.builder_from_directory(folder)
        counts = {}
        for name, split in builder.info.splits.items():
            files = [pathlib.Path(file).name for file in split.filenames]
            counts |= dict(zip(files, split.shard_lengths, strict=True))
            counts[name] = split.num_examples
    return builder, counts
