"""Writes datasets shard by shard, so that interrupted writing can be resumed."""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import multiprocessing
import os
import pathlib
import random
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds

from keras_caption.base.atomic import exclusive, replacing, write_json
from keras_caption.base.errors import InputError
from keras_caption.base.progress import EVERY, progress
from keras_caption.formats.json_files import read_json
from keras_caption.formats.prepared_folder import (
    DESCRIPTIONS,
    MANIFEST,
    SOURCE,
    Shard,
    Source,
    checksums,
    description_of,
    read_shards,
)

FILE_NAME = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
NAME = "prepared"


@dataclasses.dataclass(frozen=True)
class Content:
    """The content of a dataset.

    Attributes:
        records: dict from split to a list of records, each with a `name`.
        examples_of: Function from a list of records to an iterator that yields, for
            each record in turn, an example of `features`, or the `InputError` because
            of which the record is skipped. With several processes it is pickled.
        features: `tfds.features.FeaturesDict`.
        source: JSON value that identifies the records and how examples are made. A
            folder is resumed only if its source is equal.
        manifest: dict of further entries of the manifest.
        files: dict from the name of a further file to a function that writes the file
            to a path.
    """

    records: dict[str, list]
    examples_of: Callable[[list], Iterator]
    features: Any
    source: Any
    manifest: dict[str, Any] = dataclasses.field(default_factory=dict)
    files: dict[str, Callable] = dataclasses.field(default_factory=dict)


def write_shards(
    content: Content,
    folder: str | os.PathLike,
    *,
    shard_size: int = 200,
    strict: bool = False,
    processes: int = 1,
    execute: Callable[["ShardWriter", dict[pathlib.Path, list]], None] | None = None,
) -> dict[str, Any]:
    """Writes a dataset for TFDS, or resumes writing it.

    The records of the training split are shuffled, always in the same order. Each shard
    appears as a whole, followed by its description in a file beside it. A shard whose
    checksum matches its description is not written again. A record whose example is an
    error is skipped, counted and listed with the reason.

    Args:
        content: `Content`, the records and the function that makes examples of them.
        folder: Path of the folder of the dataset.
        shard_size: int, number of records of a shard. Defaults to 200.
        strict: bool, whether to raise the error of a record instead of skipping the
            record. Defaults to `False`.
        processes: int, number of processes that write shards. Defaults to 1.
        execute: Function of a `ShardWriter` and a dict from path to records. It calls
            the writer with the path and the records of each shard, on any machine and
            in any order. Defaults to `None`, the processes.

    Returns:
        The manifest, a dict, which is also written: `splits`, the numbers of records
        `listed` and `prepared` in each; `left_out`, pairs of name and reason of the
        skipped records; and `shards`, their checksums.

    Raises:
        InputError: If the folder was begun with another source, if another process
            writes to it, if all records have errors or, with `strict`, if one has.
        OSError: If a shard cannot be written, for instance to a full disk.
    """
    folder = pathlib.Path(folder)
    identity = json.dumps([content.source, shard_size])
    writer = ShardWriter(content.examples_of, content.features, strict)
    with exclusive(folder):
        # Before anything is written: a folder of other data is refused unchanged.
        _begin(folder, hashlib.sha256(identity.encode()).hexdigest())
        for name, write in content.files.items():
            with replacing(folder / name) as partial:
                write(partial)
        chunks = {
            split: _chunks(folder, split, records, shard_size)
            for split, records in content.records.items()
        }
        _write_missing(writer, chunks, processes, execute)
        manifest = {**content.manifest, "splits": {}, "left_out": [], "shards": {}}
        splits = []
        for split, split_chunks in chunks.items():
            shards = {p: read_json(description_of(p), Shard) for p in split_chunks}
            _count(manifest, split, len(content.records[split]), shards)
            if shards:
                splits.append(_split_info(folder, split, shards.values()))
        if not sum(x["prepared"] for x in manifest["splits"].values()):
            reasons = [reason for _, reason in manifest["left_out"]]
            raise InputError(
                f"{folder} would have no examples: "
                f"{reasons[0] if reasons else 'nothing is listed.'}"
            )
        with _os_errors(folder):
            tfds.folder_dataset.write_metadata(
                data_dir=folder,
                features=content.features,
                split_infos=splits,
                filename_template=FILE_NAME,
                description="A captioning dataset.",
                check_data=False,  # it fails if a whole split was skipped
            )
        manifest["descriptions"] = checksums(folder, [*DESCRIPTIONS, *content.files])
        write_json(folder / MANIFEST, manifest)
    return manifest


def or_error(function: Callable, *args: Any) -> Any:
    """Returns what a function returns, or the `InputError` that it raises."""
    try:
        return function(*args)
    except InputError as error:
        return error


def _begin(folder, stamp):
    """Stamps a new folder; refuses a folder that was begun with another stamp."""
    if not (folder / SOURCE).exists():
        write_json(folder / SOURCE, {"stamp": stamp})
    elif read_json(folder / SOURCE, Source)["stamp"] != stamp:
        raise InputError(
            f"{folder} was begun with other data or other settings: name another "
            "folder, or remove it."
        )


def _chunks(folder, split, records, shard_size):
    """Assigns the records of a split to shards: a dict from path to records."""
    if split == "train":
        # Always the same order: a resumed folder assigns records to the same shards.
        records = random.Random(0).sample(records, len(records))
    starts = range(0, len(records), shard_size)
    name = f"{NAME}-{split}.tfrecord-{{:05d}}-of-{len(starts):05d}"
    return {
        folder / name.format(number): records[start : start + shard_size]
        for number, start in enumerate(starts)
    }


def _write_missing(writer, chunks, processes, execute):
    """Writes the shards that are missing or damaged."""
    chunks = {
        path: records
        for split_chunks in chunks.values()
        for path, records in split_chunks.items()
    }
    missing = {}
    for path, shard in zip(chunks, read_shards(list(chunks)), strict=True):
        damaged = isinstance(shard, InputError)
        if damaged or (writer.strict and shard["left_out"]):
            missing[path] = chunks[path]
    if execute:
        if missing:
            execute(writer, missing)
        return
    total = sum(map(len, chunks.values()))
    done = total - sum(map(len, missing.values()))
    with progress(total=total, unit="records", initial=done, smoothing=0.05) as records:
        processes = min(processes, len(missing))
        if processes > 1:
            _write_in_processes(writer, missing, processes, records)
        else:
            for path, chunk in missing.items():
                writer(path, chunk, records.update)


def _count(manifest, split, listed, shards):
    """Adds a split to a manifest, from the descriptions of its shards by path."""
    prepared = sum(shard["examples"] for shard in shards.values())
    manifest["splits"][split] = {"listed": listed, "prepared": prepared}
    for path, shard in shards.items():
        manifest["left_out"] += shard["left_out"]
        manifest["shards"][path.name] = shard["sha256"]


def _split_info(folder, split, shards):
    """Makes TFDS's description of a split."""
    return tfds.core.SplitInfo(
        name=split,
        shard_lengths=[shard["examples"] for shard in shards],
        num_bytes=sum(shard["bytes"] for shard in shards),
        filename_template=tfds.core.ShardedFileTemplate(
            folder, FILE_NAME, NAME, split, "tfrecord"
        ),
    )


class ShardWriter:
    """Writes a shard and its description.

    Args:
        examples_of: Function that makes examples, see `Content`.
        features: `tfds.features.FeaturesDict`.
        strict: bool, whether to raise the error of a record.
    """

    def __init__(self, examples_of: Callable, features: Any, strict: bool):
        self.examples_of = examples_of
        self.features = features
        self.strict = strict

    def __call__(self, path: pathlib.Path, records: list, tick: Callable) -> None:
        """Writes the shard of some records; calls `tick` after each."""
        skipped, count = [], 0
        with replacing(path) as partial:
            with _os_errors(path), tf.io.TFRecordWriter(str(partial)) as writer:
                examples = self.examples_of(records)
                for record, example in zip(records, examples, strict=True):
                    if not isinstance(example, InputError):
                        with _os_errors(f"{path}, {record.name}"):
                            writer.write(self.features.serialize_example(example))
                        count += 1
                    elif self.strict:
                        raise example
                    else:
                        skipped.append((record.name, str(example)))
                    tick()
            with open(partial, "rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size = partial.stat().st_size
        write_json(
            description_of(path),
            {
                "examples": count,
                "bytes": size,
                "sha256": sha256,
                "left_out": skipped,
            },
        )


def _write_in_processes(writer, chunks, processes, records):
    """Writes the shards of `chunks` in several processes."""
    with concurrent.futures.ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(writer,),
    ) as pool:
        futures = {pool.submit(_write, *item): len(item[1]) for item in chunks.items()}
        try:
            left = set(futures)
            while left:
                done, left = concurrent.futures.wait(
                    left, EVERY, concurrent.futures.FIRST_COMPLETED
                )
                for future in done:
                    future.result()
                records.update(sum(futures[future] for future in done))
        except concurrent.futures.process.BrokenProcessPool as error:
            raise OSError(
                "A process was killed, perhaps for lack of memory; rerun the same "
                "command to resume."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _start(writer):
    """Initializes a process; the main process handles interruptions."""
    global _writer
    _writer = writer
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):  # not on Windows
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    """Ends this process if the main one is killed: it would wait for work."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _write(path, records):
    _writer(path, records, tick=lambda: None)


@contextlib.contextmanager
def _os_errors(target):
    """Converts TensorFlow's errors of writing to a target to `OSError`."""
    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(
            f"{target}: cannot be written: {error.message}; rerun the same command to "
            "resume."
        ) from error
