"""Datasets written shard by shard, so that an interrupted one can be resumed."""

import concurrent.futures
import contextlib
import hashlib
import json
import multiprocessing
import os
import pathlib
import random
import signal
import threading

import tensorflow as tf
import tensorflow_datasets as tfds

from keras_caption.atomic import exclusive, replacing, write_json
from keras_caption.errors import InputError
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


def write_shards(
    records,
    examples_of,
    features,
    folder,
    source,
    *,
    shard_size=200,
    strict=False,
    about=None,
    more=None,
    processes=1,
):
    """Writes a dataset that TFDS reads, or resumes writing it.

    Records of the training split are shuffled, always in the same way, for those who
    will read them in their order. A shard appears whole, and then a file beside it
    that says what is in it; a shard that has one, and its checksum, is not made again.
    A record that is wrong is skipped, counted and written down with the reason.

    Args:
        records: dict from split to a list of records, each with a `name`.
        examples_of: Function from a list of records to an iterator that yields, for
            each in turn, an example of `features`, or the `InputError` that says
            what is wrong with it. With several processes it is pickled.
        features: `tfds.features.FeaturesDict`.
        folder: Where the dataset goes.
        source: What goes into JSON and tells whether records and examples are the
            same as before.
        shard_size: Number of records of a shard.
        strict: Whether to raise what is wrong with a record.
        about: dict to go into the manifest too.
        more: dict from the name of a further file to a function that writes it to a
            path.
        processes: Number of processes that write shards at the same time.

    Returns:
        The manifest, a dict, which is also written: for each split, the numbers of
        records `listed` and `prepared`; for those `left_out`, pairs of name and
        reason; and checksums of all `shards`.

    Raises:
        InputError: If the folder was begun with another source, or another process
            writes it; or, with `strict`, if a record is wrong.
        OSError: If a shard cannot be written, as on a full disk.
    """
    folder, more = pathlib.Path(folder), more or {}
    stamp = hashlib.sha256(json.dumps([source, shard_size]).encode()).hexdigest()
    writer = ShardWriter(examples_of, features, strict)
    with exclusive(folder):
        _begin(folder, stamp)
        chunks = {
            split: _chunks(folder, split, of_split, shard_size)
            for split, of_split in records.items()
        }
        _write_missing(writer, chunks, processes)
        manifest = {**(about or {}), "splits": {}, "left_out": [], "shards": {}}
        splits = []
        for split, of_split in chunks.items():
            shards = {p: read_json(description_of(p), Shard) for p in of_split}
            _count(manifest, split, len(records[split]), shards)
            if shards:
                splits.append(_split_info(folder, split, shards.values()))
        with _os_errors(folder):
            tfds.folder_dataset.write_metadata(
                data_dir=folder,
                features=features,
                split_infos=splits,
                filename_template=FILE_NAME,
                description="A captioning dataset.",
            )
        for name, write in more.items():
            with replacing(folder / name) as partial:
                write(partial)
        manifest["descriptions"] = checksums(folder, [*DESCRIPTIONS, *more])
        write_json(folder / MANIFEST, manifest)
    return manifest


def _begin(folder, stamp):
    """Stamps a new folder, and refuses one that was begun with another stamp."""
    if not (folder / SOURCE).exists():
        write_json(folder / SOURCE, {"stamp": stamp})
    elif read_json(folder / SOURCE, Source)["stamp"] != stamp:
        raise InputError(
            f"{folder} was begun with other data, or other ways to prepare them: name "
            "another folder, or remove it."
        )


def _chunks(folder, split, records, shard_size):
    """The records of each shard of a split, by the path of the shard."""
    if split == "train":
        records = random.Random(0).sample(records, len(records))
    starts = range(0, len(records), shard_size)
    name = f"{NAME}-{split}.tfrecord-{{:05d}}-of-{len(starts):05d}"
    return {
        folder / name.format(number): records[start : start + shard_size]
        for number, start in enumerate(starts)
    }


def _write_missing(writer, chunks, processes):
    """Writes the shards that are missing or damaged."""
    from tqdm import tqdm

    chunks = {
        p: records for of_split in chunks.values() for p, records in of_split.items()
    }
    missing = {}
    for path, shard in zip(chunks, read_shards(list(chunks)), strict=True):
        is_bad = isinstance(shard, InputError)
        if is_bad or (writer.strict and shard["left_out"]):
            missing[path] = chunks[path]
    total = sum(map(len, chunks.values()))
    with tqdm(
        total=total,
        initial=total - sum(map(len, missing.values())),
        unit=" images",
        smoothing=0.05,
    ) as progress:
        processes = min(processes, len(missing))
        if processes > 1:
            _write_in_processes(writer, missing, processes, progress)
        else:
            for path, chunk in missing.items():
                writer(path, chunk, progress.update)


def _count(manifest, split, listed, shards):
    """Enters the shards of a split, what `Shard` describes by path, in a manifest."""
    prepared = sum(shard["examples"] for shard in shards.values())
    manifest["splits"][split] = {"listed": listed, "prepared": prepared}
    for path, shard in shards.items():
        manifest["left_out"] += shard["left_out"]
        manifest["shards"][path.name] = shard["sha256"]


def _split_info(folder, split, shards):
    """TFDS's description of a split."""
    return tfds.core.SplitInfo(
        name=split,
        shard_lengths=[shard["examples"] for shard in shards],
        num_bytes=sum(shard["bytes"] for shard in shards),
        filename_template=tfds.core.ShardedFileTemplate(
            folder, FILE_NAME, NAME, split, "tfrecord"
        ),
    )


class ShardWriter:
    """Writes one file, and the file beside it that says what is in it."""

    def __init__(self, examples_of, features, strict):
        self.examples_of = examples_of
        self.features = features
        self.strict = strict

    def __call__(self, path, records, tick):
        left_out, count = [], 0
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
                        left_out.append((record.name, str(example)))
                    tick()
            content = partial.read_bytes()
        write_json(
            description_of(path),
            {
                "examples": count,
                "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
                "left_out": left_out,
            },
        )


def _write_in_processes(writer, chunks, processes, progress):
    """Writes the files of `chunks`, several at a time."""
    with concurrent.futures.ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(writer,),
    ) as pool:
        futures = {pool.submit(_write, *item): len(item[1]) for item in chunks.items()}
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
                progress.update(futures[future])
        except concurrent.futures.process.BrokenProcessPool as error:
            raise OSError(
                "A process was killed, perhaps for want of memory; rerun the same "
                "command to resume."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _start(writer):
    """Makes a process ready; an interruption is the first process's to handle."""
    global _writer
    _writer = writer
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    """Else it would wait for work for ever, once the first process is killed."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _write(path, records):
    _writer(path, records, tick=lambda: None)


@contextlib.contextmanager
def _os_errors(what):
    """TensorFlow's errors of writing as Python's own."""
    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(
            f"{what}: cannot be written: {error.message}; rerun the same command to "
            "resume."
        ) from error
