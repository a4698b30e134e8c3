"""Kills every kind of training at random points, and compares what is resumed.

    python tests/endurance/kill_training.py [--kills 8] [--seed 0] [KIND ...]

A run of each kind is trained whole. Then runs of the same settings are killed by
SIGKILL, in turn after a random time of their training and before a random one of its
operations on files, until they are finished. After each kill every file must be whole
and every model must load; what is finished must be the whole run bit by bit: weights,
states of the optimizer, history and scores.

A process takes about 15 s on two idle cores: 20 minutes for 8 kills of each kind.
"""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

TESTS = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS.parent)]

SMALL = {
    "model.num_layers": 1,
    "model.model_dim": 8,
    "model.num_heads": 2,
    "model.feedforward_dim": 8,
}
CAPTIONING = {
    **SMALL,
    "model.geometry_dim": 4,
    "training.batch_size": 4,
    "training.scheduled_sampling": 0.1,
    "data.min_count": 1,
    "self_critical.batch_size": 4,
    "self_critical.halved_after": 1,
    "decoding.beam_size": 2,
}
TRANSLATION = {
    **SMALL,
    "data.tokenizer": "words",
    "data.max_tokens": 8,
    "training.tokens_per_batch": 64,
    "training.warmup_steps": 4,
    "training.accumulation": 2,
    "training.average": 2,
    "decoding.beam_size": 1,
    "decoding.max_length": 6,
}
QUESTIONS = {
    **SMALL,
    "data.images": "coco_objects",
    "model.embedding_dim": 4,
    "model.pooling_dim": 4,
    "model.fusion_dim": 8,
    "model.dropout": 0.1,
    "training.batch_size": 8,
}
OF_IMAGES = ("--model=ngsan", "--dataset=coco_objects", "--data_dir={data}/coco")
OBJECTS = "--config.self_critical.reward=cider_d+3*objects"
KINDS = {
    "cross_entropy": (CAPTIONING, [*OF_IMAGES, "--epochs=4"]),
    "self_critical": (
        CAPTIONING,
        [*OF_IMAGES, "--epochs=1", "--scst_epochs=3", OBJECTS],
    ),
    "two_replicas": (
        CAPTIONING,
        [*OF_IMAGES, "--epochs=2", "--scst_epochs=2", "--strategy=mirrored"],
    ),
    "accumulation": (
        TRANSLATION,
        [
            *("--model=transformer_tiny", "--dataset=parallel", "--epochs=4"),
            *("--data_dir={data}/text", "--config.data.target=fr"),
        ],
    ),
    "questions": (
        QUESTIONS,
        [
            *("--model=mcan", "--dataset=coco_qa", "--epochs=4"),
            *("--data_dir={data}/coco_qa.json", "--config.data.images_dir={data}/coco"),
        ],
    ),
}

# A run without its report and export, which ends as the variable END says: after
# seconds or operations on files, counted from the first training step.
RUN = """
import builtins, os, signal, sys, threading, time
import tensorflow as tf
from keras_caption import commands, evaluation, serving
from keras_caption.apps.report import run_report
from keras_caption.apps.report.tasks import captioning
from keras_caption.training import phases, strategies

if "--strategy=mirrored" in sys.argv:
    [cpu] = tf.config.list_physical_devices("CPU")
    halves = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, halves)
    strategies.make_strategy = lambda name: tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"]
    )
captioning.draw_attention = lambda *_: None
run_report.write_report = lambda *_: None
evaluation.score = lambda *_: ({}, {})
serving.export = lambda *_, **options: None
phases.check_space = lambda *_: None  # other programs may fill a disk at any time
kind, _, amount = os.environ["END"].partition(" ")
begun, done, fit = None, 0, phases.fit

def end():
    os.kill(os.getpid(), signal.SIGKILL)

def counted(function):
    def call(*arguments, **options):
        global done
        if begun and not (function is opened and not writes(arguments, options)):
            done += 1
            if kind == "operations" and done == int(amount):
                end()
        return function(*arguments, **options)
    return call

def writes(arguments, options):
    mode = options.get("mode", arguments[1] if len(arguments) > 1 else "r")
    return isinstance(mode, str) and not mode.startswith("r")

def begin(*arguments):
    global begun
    if begun is None:
        begun = time.monotonic()
        if kind == "seconds":
            timer = threading.Timer(float(amount), end)
            timer.daemon = True
            timer.start()
    return fit(*arguments)

opened = builtins.open
builtins.open = counted(opened)
for name in ("mkdir", "rename", "replace", "rmdir", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
phases.fit = begin
try:
    commands.main(["run", *sys.argv[1:]])
finally:
    if begun:
        print("MEASURED", time.monotonic() - begun, done)
"""


def write_data(folder):
    """Data of all kinds, a few kilobytes."""
    import coco_files

    coco_files.write(folder / "coco", *coco_files.contents(images=24))
    asked = [
        {
            "question_id": 10 * image + number,
            "image_id": image,
            "question": f"what colour is the {thing} ?",
            "answer": ("red", "blue", "green")[(image + number) % 3],
            "type": thing,
        }
        for image in range(10, 34)
        for number, thing in enumerate(["dog", "ball"])
    ]
    (folder / "coco_qa.json").write_text(json.dumps({"questions": asked}))
    (folder / "text").mkdir()
    words, rng = ["one", "two", "three", "four", "five"], np.random.default_rng(0)
    for split, count in (("train", 40), ("val", 4), ("test", 4)):
        pairs = [list(rng.choice(words, rng.integers(2, 7))) for _ in range(count)]
        for language, step in (("en", 1), ("fr", -1)):
            lines = "".join(" ".join(x[::step]) + "\n" for x in pairs)
            (folder / "text" / f"{split}.{language}").write_text(lines)


def command_of(kind, data, output, end):
    """The command of a kind of training, and its environment."""
    values, options = KINDS[kind]
    options = [option.format(data=data) for option in options]
    options += [f"--config.{name}={value}" for name, value in values.items()]
    command = [sys.executable, "-c", RUN, *options, f"--output_dir={output}"]
    environment = {**os.environ, "TFDS_DATA_DIR": str(data / "tfds"), "END": end}
    environment["PYTHONPATH"] = str(TESTS.parent)
    return [*command, "--resume"], environment


def run(kind, data, output, end):
    """Runs a kind of training; returns the status and what it printed."""
    command, environment = command_of(kind, data, output, end)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout + done.stderr


def check_whole(folder):
    """Checks that every file of a killed run is whole, and every model loads."""
    import keras_caption as kc

    for path in folder.rglob("*"):
        if path.suffix == ".json" and not path.name.startswith("."):
            json.loads(path.read_text())
        if path.suffix == ".keras" and not path.name.startswith("."):
            kc.models.load(path)


def check_same(whole, killed):
    """Checks that a run that was killed and resumed is a whole one, bit by bit."""
    import keras_caption as kc

    for path in whole.rglob("*.keras"):
        a, b = (kc.models.load(x / path.relative_to(whole)) for x in (whole, killed))
        pairs = [*zip(a.weights, b.weights, strict=True)]
        if path.name == "last.keras":
            pairs += zip(a.optimizer.variables, b.optimizer.variables, strict=True)
        for x, y in pairs:
            np.testing.assert_array_equal(x.numpy(), y.numpy(), str(path))
    for name in ("history.json", "test_scores.json"):
        for path in whole.rglob(name):
            other = killed / path.relative_to(whole)
            first, second = (json.loads(x.read_text()) for x in (path, other))
            assert first == second, (path, first, second)


def kill(kind, kills, folder, rng):
    """Kills runs of a kind; returns how often, and how many were finished."""
    data, whole = folder / "data", folder / f"{kind}_whole"
    status, printed = run(kind, data, whole, "never")
    assert status == 0, printed[-3000:]
    killed, finished, before = 0, 0, 0
    while killed < kills:
        if killed == before:  # a whole run: later ones may be faster than the first
            measured = re.search(r"MEASURED ([\d.]+) (\d+)", printed)
            seconds, operations = float(measured[1]), int(measured[2])
        output, before = folder / f"{kind}_{finished}", killed
        while True:
            end = f"operations {rng.randint(1, operations)}"
            if killed % 2:
                end = f"seconds {rng.uniform(0, seconds):.3f}"
            status, printed = run(kind, data, output, end)
            if status != -signal.SIGKILL:
                break
            killed += 1
            check_whole(output)
        assert status == 0, printed[-3000:]
        check_same(whole, output)
        finished += 1
    return killed, finished


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=[*KINDS], metavar="KIND")
    parser.add_argument("--kills", type=int, default=8, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "data").mkdir()
        write_data(folder / "data")
        for kind in options.kinds:
            start = time.monotonic()
            killed, finished = kill(kind, options.kills, folder, rng)
            seconds = time.monotonic() - start
            print(
                f"{kind}: {killed} kills, {finished} runs finished and equal, "
                f"{seconds:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
