"""Training and beam search of a translator, against JoeyNMT on the same batches.

    python experiments/benchmarks/against_joeynmt.py --data_dir revisit_mmt \
        --peer_python joeynmt/bin/python

The model, its batches of 4,096 tokens and its text are those of
experiments/configs/translation/multi30k_bpe.py, which names the folder's files; any
folder of parallel text will do. An epoch of so many batches is trained on, forward,
backward and Adam's update, the second time that it is seen; ours includes reading the
batches. The search has beam width 5, over 64 test sentences at once; the weights are
random, and no search ends before its last token. Each runs in a process of its own, in
turn, and the medians are compared.

JoeyNMT (Kreutzer, Bastings, Riezler, EMNLP 2019) is a PyTorch toolkit. It has an
environment of its own, whose Python is `--peer_python`:

    python3 -m venv joeynmt
    joeynmt/bin/pip install torch  # the CPU build
    joeynmt/bin/pip install --no-deps joeynmt
    joeynmt/bin/pip install datasets importlib_metadata matplotlib numpy packaging \
        pandas pyyaml sacrebleu sacremoses sentencepiece subword-nmt tensorboard
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import keras
import numpy as np

import keras_caption as kc
from experiments.benchmarks.common import in_a_process
from keras_caption.commands.command_line import Parser, count, start
from keras_caption.commands.configuration import make_config
from keras_caption.commands.malloc import keep_freed_memory
from keras_caption.models.sentence_reader import pad

CONFIG = pathlib.Path(__file__).parents[1] / "configs/translation/multi30k_bpe.py"
PEER = pathlib.Path(__file__).with_name("joeynmt_peer.py")
SENTENCES = 64  # that are translated at once
BEAM_SIZE, MAX_LENGTH, LENGTH_PENALTY = 5, 30, 0.6


def make_task(data_dir):
    task, config = make_config(str(CONFIG), {"data.data_dir": data_dir})
    return task(config)


def write_batches(data_dir, steps, searches, folder):
    """Writes what the peer needs: sizes of the model, and batches of tokens."""
    task = make_task(data_dir)
    model = task.create_model(task.build_vocabularies())
    arrays = {}
    batches = task.train_batches(model, "training", 0).take(steps)
    for i, (inputs, targets, _) in enumerate(batches.as_numpy_iterator()):
        last = targets[:, -1:]
        arrays[f"source_{i}"] = inputs["source"]
        arrays[f"tokens_{i}"] = np.concatenate([inputs["tokens"], last], axis=1)
    for i, sources in enumerate(test_batches(task, model, searches)):
        arrays[f"test_{i}"] = sources
    np.savez(folder / "batches.npz", **arrays)
    names = "num_layers", "num_heads", "model_dim", "feedforward_dim", "dropout"
    settings = {
        **{name: getattr(model, name) for name in names},
        "vocabulary_size": len(model.vocabulary),
        "label_smoothing": task.config["training"]["label_smoothing"],
        "steps": steps,
        "searches": searches,
        "search": {
            "beam_size": BEAM_SIZE,
            "max_output_length": MAX_LENGTH,
            "beam_alpha": LENGTH_PENALTY,
        },
        "threads": os.cpu_count(),
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return int(sum((arrays[f"tokens_{i}"][:, 1:] != 0).sum() for i in range(steps)))


def test_batches(task, model, searches):
    """Batches of test sentences of similar length, as `translate` makes them."""
    sources, _ = task.sentences("test")
    rows = sorted(model.source_tokens(sources[: searches * SENTENCES]), key=len)
    return [pad(rows[i : i + SENTENCES]) for i in range(0, len(rows), SENTENCES)]


class EpochTimes(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds = time.perf_counter() - self.start


def our_seconds(data_dir, steps, searches):
    """Seconds of an epoch and of a search, as `keras-caption run` computes them."""
    keep_freed_memory()
    task = make_task(data_dir)
    model = task.create_model(task.build_vocabularies())
    smoothing = task.config["training"]["label_smoothing"]
    loss = kc.training.SequenceCrossEntropy(smoothing)
    model.compile(task.make_optimizer("training", 1), loss, jit_compile=False)
    batches = task.train_batches(model, "training", 0).take(steps)
    times = EpochTimes()
    model.fit(batches, epochs=2, verbose=0, callbacks=[times])

    model = task.create_model(task.build_vocabularies())
    options = {"beam_size": BEAM_SIZE, "max_length": MAX_LENGTH}
    options["length_penalty"] = LENGTH_PENALTY
    for _ in range(2):
        start = time.perf_counter()
        for sources in test_batches(task, model, searches):
            model.generate_tokens(
                {"source": sources}, batch_size=len(sources), **options
            )
    return {"training": times.seconds, "search": time.perf_counter() - start}


def peer_seconds(python, folder):
    subprocess.run([python, str(PEER), str(folder)], check=True)
    return json.loads((folder / "seconds.json").read_text())


def main(arguments):
    parser = Parser("experiments/benchmarks/against_joeynmt.py", __doc__)
    parser.add_argument("--data_dir", required=True, help="folder of parallel text")
    parser.add_argument("--peer_python", required=True, help="Python with JoeyNMT")
    parser.add_argument("--steps", type=count, default=16, help="batches of an epoch")
    parser.add_argument("--searches", type=count, default=4, help="batches to search")
    parser.add_argument("--rounds", type=count, default=3)
    options = parser.parse_args(arguments)
    ours, theirs = [], []
    data = options.data_dir, options.steps, options.searches
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tokens = in_a_process(write_batches, *data, folder)
        for _ in range(options.rounds):
            ours.append(in_a_process(our_seconds, *data))
            theirs.append(peer_seconds(options.peer_python, folder))
    sentences = options.searches * SENTENCES
    amounts = {"training": (tokens, "tokens/s"), "search": (sentences, "sentences/s")}
    for what, (amount, unit) in amounts.items():
        rates = [
            amount / statistics.median(each[what] for each in seconds)
            for seconds in (ours, theirs)
        ]
        print(f"{what:9} keras_caption {rates[0]:8,.0f} {unit}")
        print(f"{what:9} JoeyNMT       {rates[1]:8,.0f} {unit}", end="")
        print(f"   ours is {rates[0] / rates[1]:.2f} x")


if __name__ == "__main__":
    start(main, sys.argv[1:])
