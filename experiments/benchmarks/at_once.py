r"""What a training step of several seeds at once costs, on JAX.

    python experiments/benchmarks/at_once.py --dataset scenes --sizes 64,128,256

prints the images that a CPU second trains, of all seeds together, by cross-entropy and
self-critically, and how much longer a step of K seeds takes than one of one seed. A
step is that of experiments/seeds.py on the first batch of each seed.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

if "keras" not in sys.modules:
    os.environ["KERAS_BACKEND"] = "jax"

import jax
import numpy as np

from experiments import seeds
from keras_caption.commands.configuration import make_config

STEPS = 5  # after one that compiles


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0][3:])
    parser.add_argument("--model", default="ngsan")
    parser.add_argument("--dataset", default="scenes")
    parser.add_argument("--data_dir", help="folder of the dataset's files")
    parser.add_argument("--sizes", default="64,128,256", help="model.model_dim")
    parser.add_argument("--seeds", default="1,3,5,10", help="numbers of seeds at once")
    options = parser.parse_args(arguments)
    print(
        "| model_dim | seeds | cross-entropy, images/s | of one | self-critical, "
        "images/s | of one |\n|---:|---:|---:|---:|---:|---:|"
    )
    for size in map(int, options.sizes.split(",")):
        one = None
        for count in map(int, options.seeds.split(",")):
            spent = measure(options, size, count)
            one = one or spent
            cells = [
                f"{count * batch / cpu:.0f} | {cpu / first:.2f}"
                for (cpu, batch), (first, _) in zip(spent, one, strict=True)
            ]
            print(f"| {size} | {count} | {' | '.join(cells)} |", flush=True)


def measure(options, size, count):
    """CPU seconds of a step of `count` seeds, and its images, for both objectives."""
    changes = {
        "model.name": options.model,
        "model.model_dim": size,
        "model.feedforward_dim": 4 * size,
        "data.dataset": options.dataset,
        "self_critical.epochs": 1,
    }
    if options.data_dir:
        changes["data.data_dir"] = options.data_dir
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        tasks = []
        for seed in range(count):
            task, config = make_config(None, {**changes, "seed": seed})
            tasks.append(task(config))
        seeds.share_data(tasks)
        starts = [pathlib.Path(folder) / str(number) for number in range(count)]
        for objective in "cross-entropy", "self-critical":
            runs = [
                seeds.Run(task, start)
                if objective == "cross-entropy"
                else seeds.Run(task, start / "scst", start / "best.keras")
                for task, start in zip(tasks, starts, strict=True)
            ]
            for run in runs:
                run.load()
            batch = seeds.padded([next(run.batches()) for run in runs])
            step, state = seeds.compiled_step(runs[0].trainer), seeds.stacked(runs)
            numbers = np.arange(count, dtype="int32")
            _, state = jax.block_until_ready(step(state, numbers, batch))
            begun = time.process_time()
            for _ in range(STEPS):
                _, state = jax.block_until_ready(step(state, numbers, batch))
            seconds = (time.process_time() - begun) / STEPS
            spent.append((seconds, runs[0].values["batch_size"]))
            if objective == "cross-entropy":
                for run, start in zip(runs, starts, strict=True):
                    run.trainer.save(start / "best.keras")
    return spent


if __name__ == "__main__":
    main(sys.argv[1:])
