"""Answers 100,000 records by `bulk`, some of them faulty, killed again and again.

    python tests/endurance/many_records.py [--records 100000] [--kills 5] [--seed 0]

Sentences of lists, Parquet and TFRecords are translated by a tiny model; one in a
hundred cannot be read. The job is killed by SIGKILL after random times and resumed.
Every record must have exactly one row, and every fault its own. Then photos are
captioned that vanish meanwhile, and a job writes to a folder that is read-only: each
must say so in one sentence. Linux lets root mount such a folder.

8 minutes on two idle cores.
"""

import argparse
import collections
import gzip
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS.parent)]

COMMAND = [sys.executable, str(TESTS.parent / "keras_caption_cli.py"), "bulk"]
FAULTS = {  # lines of a CSV list, and their errors; and how many records each is
    b'"an unclosed mark': "begins a cell with a quotation mark that is not closed",
    b"no \xff UTF-8": "is not UTF-8",
    b"two,cells": "has 3 columns; the header has 2",
    b"long" * 2**18: "is longer than 1,048,576 bytes",
}


def sentence(rng):
    return " ".join(rng.choices("abcdefgh", k=rng.randint(1, 6)))


def write_lists(folder, count, rng):
    """Writes records of four formats; returns the errors of ids, `None` for none."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import tensorflow as tf

    errors, faults = {}, [*FAULTS.items()]
    part = count // 4
    with open(folder / "list.csv", "wb") as file:
        file.write(b"id,text\n")
        for i in range(part):
            if i % 100 == 99:
                content, error = faults[i // 100 % len(faults)]
                file.write(b"%d,%s\n" % (i, content))
                errors[f"{folder / 'list.csv'}#{i + 2}"] = error
            else:
                file.write(f'{i},{sentence(rng)} 12" board\n'.encode())
                errors[str(i)] = None
    with gzip.open(folder / "list.jsonl.gz", "wt") as file:
        for i in range(part, 2 * part):
            if i % 100 == 99:
                file.write(json.dumps({"id": i, "text": 7}) + "\n")
                errors[str(i)] = "The record's text is no text"
            else:
                file.write(json.dumps({"id": i, "text": sentence(rng)}) + "\n")
                errors[str(i)] = None
    rows = [{"id": i, "text": sentence(rng)} for i in range(2 * part, 3 * part)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    errors |= {str(row["id"]): None for row in rows}
    path = folder / "rows.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(count - 3 * part):
            value = tf.train.BytesList(value=[sentence(rng).encode()])
            feature = {"text": tf.train.Feature(bytes_list=value)}
            features = tf.train.Features(feature=feature)
            writer.write(tf.train.Example(features=features).SerializeToString())
            errors[f"{path}#{i + 1}"] = None
    with open(path, "ab") as file:
        file.write(b"cut")  # within the header of a further one
    errors[str(path)] = "it ends within the next one"
    return errors


def run(*arguments, kill_after=None):
    """Runs a job; returns the status and what it printed."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    timer = threading.Timer(kill_after or 0, process.send_signal, [signal.SIGKILL])
    if kill_after:
        timer.start()
    printed, _ = process.communicate()
    timer.cancel()
    return process.returncode, printed


def rows_of(prefix):
    for path in sorted(prefix.parent.glob(f"{prefix.name}-*-of-*.jsonl")):
        with open(path, encoding="utf-8") as file:
            yield from map(json.loads, file)


def translate(folder, count, kills, rng):
    """Translates all records, killed again and again; returns what was checked."""
    import keras_caption as kc

    tokenizer = kc.text.WordTokenizer([*"abcdefgh"])
    model = kc.models.LSTMTranslator(tokenizer, tokenizer, num_layers=1, model_dim=8)
    model.save(folder / "model.keras")
    (folder / "lists").mkdir()
    errors = write_lists(folder / "lists", count, rng)
    prefix = folder / "out" / "t"
    job = ["translate", folder / "model.keras", folder / "lists", f"--output={prefix}"]
    job += ["--max_length=3", "--beam_size=1", "--shard_size=2500"]
    killed = 0
    for _ in range(kills):
        status, printed = run(*job, kill_after=rng.uniform(10, 60))
        if status != -signal.SIGKILL:
            break
        killed += 1
    status, printed = run(*job)
    assert status == 1, printed[-3000:]
    found = collections.Counter()
    for row in rows_of(prefix):
        found[row["id"]] += 1
        expected = errors[row["id"]]
        assert (row["error"] is None) == (expected is None), row
        assert expected is None or expected in row["error"], row
    assert found == collections.Counter(dict.fromkeys(errors, 1))
    failed = sum(error is not None for error in errors.values())
    line = f"Translated {len(errors) - failed:,} of {len(errors):,} records; {failed:,}"
    assert line in printed, printed[-3000:]
    return f"{len(errors):,} records, {failed:,} faults, {killed} kills: all are there"


def captioner_of(folder):
    """A tiny captioner of objects, and a detector."""
    from yolox_file import white_yolox

    import keras_caption as kc

    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    categories = list(kc.objects.CATEGORIES)
    words = kc.text.Vocabulary(["dog", "a", "two"])
    captioner = kc.models.create(
        "ngsan", vocabulary=words, region_dim=80, categories=categories, **sizes
    )
    captioner.save(folder / "captioner.keras")
    white_yolox(image_size=None).save(folder / "yolox.keras")
    options = ["--beam_size=1", "--max_length=3", "--shard_size=100"]
    models = [f"--model={folder / 'captioner.keras'}"]
    return [*models, f"--detector={folder / 'yolox.keras'}", *options]


def vanish(folder, options, rng, count=1000):
    """Captions photos while half of them vanish; returns what was checked."""
    from PIL import Image
    from yolox_file import photo

    photos = folder / "photos"
    photos.mkdir()
    for i in range(count):
        Image.fromarray(photo(104, 52, [(i % 6, i % 5)])).save(photos / f"{i:04}.png")
    paths = sorted(map(str, photos.iterdir()))
    doomed = set(rng.sample(paths, count // 2))
    ended = threading.Event()
    prefix = folder / "vanished" / "c"

    def remove():
        while not prefix.parent.exists():  # until the job is planned
            if ended.wait(0.1):
                return
        for path in sorted(doomed, reverse=True):
            if ended.wait(0.05):
                return
            pathlib.Path(path).unlink()

    thread = threading.Thread(target=remove)
    thread.start()
    _, printed = run("caption", photos, *options, f"--output={prefix}")
    ended.set()
    thread.join()
    rows = {row["id"]: row for row in rows_of(prefix)}
    gone = {path for path in doomed if not os.path.exists(path)}
    # Those that vanished before the job was planned have no row.
    assert {*paths} - {*rows} <= gone, printed[-3000:]
    failed = {name for name, row in rows.items() if row["error"]}
    assert failed <= gone
    assert all("there is no such file" in rows[name]["error"] for name in failed)
    line = f"Captioned {len(rows) - len(failed):,} of {len(rows):,} records"
    assert line in printed, printed[-3000:]
    return f"{len(rows):,} photos, {len(failed)} vanished before they were read"


def write_protected(folder, options):
    """Writes to a read-only folder; returns what was checked."""
    if os.geteuid():
        return "not run: only root may mount a read-only folder"
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    try:
        begun = disk / "c"
        again = ["caption", folder / "photos", *options, f"--output={begun}"]
        for mode in ("ro", "rw", "ro"):  # from the beginning, and once it was begun
            remount = ["mount", "-o", f"remount,{mode},size=1m", str(disk)]
            subprocess.run(remount, check=True)
            if mode == "rw":
                status, printed = run(*again, kill_after=40)
                continue
            status, printed = run(*again)
            lines = [x for x in printed.splitlines() if x.startswith("error: ")]
            assert status == 1, printed[-3000:]
            assert len(lines) == 1, printed[-3000:]
            assert "Traceback" not in printed
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return f"refused with one sentence: {lines[0][:80]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, start = random.Random(options.seed), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print(translate(folder, options.records, options.kills, rng), flush=True)
        of_photos = captioner_of(folder)
        print(vanish(folder, of_photos, rng), flush=True)
        print(write_protected(folder, of_photos), flush=True)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
