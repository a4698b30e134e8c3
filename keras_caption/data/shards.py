"""Datasets written shard by shard, so that an interrupted one can be gone on with."""

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

from keras_caption.atomic import replacing, write_json
from keras_caption.errors import InputError

FILE_NAME = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
NAME = "prepared"
MANIFEST = "manifest.json"
SOURCE = "source.json"


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
    processes=1,
):
    """Writes a dataset that TFDS reads, or goes on with one.

    Records of the training split are shuffled, always in the same way, for those who
    will read them in their order. A shard appears whole, and then a file beside it
    that says what is in it; a shard that has one is not made again. What is wrong with
    a record is told, counted and written down, and the record left out.

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
        strict: Whether a record that is wrong ends everything.
        about: dict to go into the manifest too.
        processes: Number of processes that write shards at the same time.

    Returns:
        The manifest, a dict, which is also written: for each split, the numbers of
        records `listed` and `prepared`; for those `left_out`, pairs of name and
        reason; and checksums of all `shards`.

    Raises:
        InputError: If the folder was begun with another source; or, with `strict`, if
            a record is wrong.
        OSError: If a shard cannot be written, as on a full disk.
    """
    from tqdm import tqdm

    folder = pathlib.Path(folder)
    stamp = hashlib.sha256(json.dumps([source, shard_size]).encode()).hexdigest()
    if not (folder / SOURCE).exists():
        write_json(folder / SOURCE, {"stamp": stamp})
    elif json.loads((folder / SOURCE).read_text())["stamp"] != stamp:
        raise InputError(
            f"{folder} was begun with other data, or other ways to prepare them: name "
            "another folder, or remove it."
        )
    paths, missing = {}, {}
    for split, of_split in records.items():
        if split == "train":
            of_split = random.Random(0).sample(of_split, len(of_split))
        starts = range(0, len(of_split), shard_size)
        paths[split] = [
            folder / f"{NAME}-{split}.tfrecord-{number:05d}-of-{len(starts):05d}"
            for number in range(len(starts))
        ]
        for path, start in zip(paths[split], starts, strict=True):
            shard = _finished(path)
            if not shard or (strict and shard["left_out"]):
                missing[path] = of_split[start : start + shard_size]
    total = sum(map(len, records.values()))
    with tqdm(
        total=total,
        initial=total - sum(map(len, missing.values())),
        unit=" images",
        smoothing=0.05,
    ) as progress:
        writer = ShardWriter(examples_of, features, strict)
        processes = min(processes, len(missing))
        if processes > 1:
            _write_in_processes(writer, missing, processes, progress)
        else:
            for path, chunk in missing.items():
                writer(path, chunk, progress.update)
    manifest = {**(about or {}), "splits": {}, "left_out": [], "shards": {}}
    splits = []
    for split, of_split in records.items():
        shards = {path.name: _finished(path) for path in paths[split]}
        lengths = [shard["examples"] for shard in shards.values()]
        manifest["splits"][split] = {"listed": len(of_split), "prepared": sum(lengths)}
        for name, shard in shards.items():
            manifest["left_out"] += shard["left_out"]
            manifest["shards"][name] = shard["sha256"]
        if shards:
            splits.append(
                tfds.core.SplitInfo(
                    name=split,
                    shard_lengths=lengths,
                    num_bytes=sum(shard["bytes"] for shard in shards.values()),
                    filename_template=tfds.core.ShardedFileTemplate(
                        folder, FILE_NAME, NAME, split, "tfrecord"
                    ),
                )
            )
    with _full_disks_told(folder):
        tfds.folder_dataset.write_metadata(
            data_dir=folder,
            features=features,
            split_infos=splits,
            filename_template=FILE_NAME,
            description="A captioning dataset.",
        )
    write_json(folder / MANIFEST, manifest)
    return manifest


def _about(path):
    """The file that says what is in a shard."""
    return path.with_name(f"{path.name}.json")


def _finished(path):
    """What is in a shard, or `None` where it is not there, or not whole."""
    if not (_about(path).exists() and path.exists()):
        return None
    shard = json.loads(_about(path).read_text())
    return shard if path.stat().st_size == shard["bytes"] else None


class ShardWriter:
    """Writes one file, and the file beside it that says what is in it."""

    def __init__(self, examples_of, features, strict):
        self.examples_of = examples_of
        self.features = features
        self.strict = strict

    def __call__(self, path, records, tick):
        left_out, count = [], 0
        with replacing(path) as partial:
            with _full_disks_told(path), tf.io.TFRecordWriter(str(partial)) as writer:
                examples = self.examples_of(records)
                for record, example in zip(records, examples, strict=True):
                    if not isinstance(example, InputError):
                        with _full_disks_told(f"{path}, {record.name}"):
                            writer.write(self.features.serialize_example(example))
                        count += 1
                    elif self.strict:
                        raise example
                    else:
                        left_out.append((record.name, str(example)))
                    tick()
            content = partial.read_bytes()
        write_json(
            _about(path),
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
                "A process was killed, perhaps for want of memory. The same command "
                "goes on from here."
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
def _full_disks_told(what):
    """TensorFlow's errors of writing as Python's own."""
    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(
            f"{what}: cannot be written: {error.message}. The same command goes on "
            "from here."
        ) from error


def read_shards(folder):
    """The TFDS builder of a folder that `write_shards` has filled.

    Raises:
        InputError: If it has not, or not to the end.
    """
    folder = pathlib.Path(folder)
    if not (folder / MANIFEST).exists():
        raise InputError(
            f"{folder} holds no prepared dataset, or an unfinished one: "
            "experiments/prepare.py makes one, and goes on with one."
        )
    for name in json.loads((folder / MANIFEST).read_text())["shards"]:
        if not _finished(folder / name):
            raise InputError(
                f"{folder / name} is missing or cut short: experiments/prepare.py "
                "makes it again."
            )
    return tfds.builder_from_directory(folder)
