"""The papers' work by an earlier commit and by this one, in turn.

    git worktree add ../before COMMIT
    taskset --cpu-list 0 python experiments/benchmarks/before_and_after.py ../before

prints a row for each work of `beside_peers.py`, of two processes that run at once and
take turns, each with the library and the works of `accelerator.py` of its own folder:
seconds of processors of the first call, which traces and compiles, and medians of later
calls. One image or sentence is timed as in `beside_peers.py`. Texts of random weights
have the greatest length; so the last rows are of texts that end: captions by
`ngsan_coco` and a self-critical step of it, and translations that are as long as their
sentences. `--works` names rows, or other works of `accelerator.py`.
"""

import argparse
import functools
import os
import pathlib
import statistics
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).parents[2]


def captioner_of_objects(images, objects=10):
    """A trained captioner, and objects in random layouts."""
    import numpy as np

    import keras_caption as kc
    from experiments.benchmarks.common import arrays

    model = kc.models.load(PROJECT / "saved_models" / "ngsan_coco.keras")
    model.decoding = model.decoding.override(evidence=False)
    names = len(model.categories)
    categories = np.random.default_rng(0).integers(0, names, (images, objects))
    regions = np.eye(names, dtype="float32")[categories]
    return model, {"regions": regions, "boxes": arrays(images, objects)["boxes"]}


def captions_that_end():
    model, inputs = captioner_of_objects(300)
    return functools.partial(model.generate_tokens, inputs, 50, beam_size=3)


def self_critical_that_ends():
    import keras
    import numpy as np
    import tensorflow as tf

    import keras_caption as kc
    from experiments.benchmarks.accelerator import training

    model, inputs = captioner_of_objects(10)
    shape, words = (10, 5, 12), len(model.vocabulary)
    references = np.random.default_rng(0).integers(4, words, shape).astype("int32")
    batch = {**inputs, "references": references}
    reward = kc.rewards.CiderD.from_references(references)
    trainer = kc.training.SelfCritical(model, reward)
    trainer.compile(keras.optimizers.Adam(0.0))
    return training(trainer, tf.data.Dataset.from_tensors(batch))


def translations_that_end(size):
    """Translations of 64 sentences, each of as many tokens as its sentence, 4 to 30."""
    import numpy as np

    from experiments.benchmarks import forced_translation as forced

    lengths = np.random.default_rng(0).normal(15, 5, 64).round().clip(4, forced.LENGTH)
    sources = np.full((64, forced.LENGTH), forced.EOS, "int32")
    sources[:, :-1] = np.arange(1, forced.LENGTH) + forced.EOS
    sources = np.where(np.arange(forced.LENGTH) < lengths[:, None], sources, 0)
    return functools.partial(
        forced.make_model(forced.WORKS[size]).generate_tokens,
        {"source": sources},
        64,
        beam_size=forced.BEAM_SIZE,
        max_length=forced.LENGTH,
        length_ratio=1.0,
        length_margin=0,
    )


ENDING = {
    "300 captions that end": captions_that_end,
    "self-critical, 10 images, captions that end": self_critical_that_ends,
    "translation 4 + 4 x 128, 64 sentences, that end": functools.partial(
        translations_that_end, 0
    ),
    "translation 6 + 6 x 512, 64 sentences, that end": functools.partial(
        translations_that_end, 1
    ),
}


def serve(work):
    """Makes a work, and prints the seconds of a call for each line that is read."""
    import keras

    from experiments.benchmarks.beside_peers import WORKS, accelerator, ours

    keras.utils.set_random_seed(0)
    begun = time.process_time()
    if work in ENDING:
        step = ENDING[work]()
    else:
        step = ours(work) if work in WORKS else accelerator.WORKS[work]()[0]
    step()
    print(time.process_time() - begun, flush=True)
    for _ in sys.stdin:
        begun = time.process_time()
        step()
        print(time.process_time() - begun, flush=True)


def begin(folder, work):
    """A process of `serve` by the code of a folder, and its seconds until then."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", work],
        env={**os.environ, "PYTHONPATH": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return process, float(process.stdout.readline())


def turn(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", nargs="?", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--works", nargs="+", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--serve", metavar="WORK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    from experiments.benchmarks.beside_peers import WORKS

    columns = "first call before", "after", "before", "after", "times as fast"
    print("| work |", " | ".join(columns), "|")
    print("|---|" + "---:|" * len(columns))
    for work in options.works or [*WORKS, *ENDING]:
        started = [
            begin(folder.resolve(), work) for folder in (options.before, PROJECT)
        ]
        for process, _ in started:
            turn(process)  # to warm up
        turns = [
            [turn(process) for process, _ in started] for _ in range(options.rounds)
        ]
        for process, _ in started:
            process.stdin.close()
            process.wait()
        first = [f"{seconds:.1f}" for _, seconds in started]
        before, after = map(statistics.median, zip(*turns, strict=True))
        times = [f"{before:.2f}", f"{after:.2f}", f"{before / after:.2f}"]
        print("|", " | ".join([work, *first, *times]), "|", flush=True)


if __name__ == "__main__":
    main()
