"""The papers' work on this machine's cores, beside peers, in turn.

    pip install torch transformers ctranslate2  # the CPU build of PyTorch
    python experiments/benchmarks/beside_peers.py
    python experiments/benchmarks/beside_peers.py --luo ImageCaptioning.pytorch \
        --mcan mcan-vqa --works "MCAN, training, 64 questions"

prints a row for each work of `accelerator.py` and each peer of it: Hugging Face and
CTranslate2 of translators; of clones, `--luo`, Luo's toolkit with its cached decoder,
and `--mcan`, MCAN's released code. Each has a process of its own, with random weights
of the same sizes. One image or sentence is timed after 16 others, by when XLA compiles
it. Medians of five calls: our seconds, by the clock and of processors;
the part of a large product's rate, by processors, that our matrix products reach; and
how many times as long a peer takes.

On a machine that does other things too, `taskset --cpu-list 0` before the command gives
each one thread: several threads that wait for each other count as work.
"""

import argparse
import functools

from keras_caption.compilation import REPEATS

from experiments.benchmarks import accelerator
from experiments.benchmarks.common import in_turn
from experiments.benchmarks.forced_translation import (
    PRODUCT,
    PRODUCT_SIZE,
    large_product,
    processor,
)

WORKS = (
    "cross-entropy, 10 images",
    "self-critical, 10 images",
    "beam 3, one image",
    "beam 3, 50 images",
    "AoANet, cross-entropy, 10 images",
    "AoANet, self-critical, 10 images",
    "AoANet, beam 3, 50 images",
    "MCAN, training, 64 questions",
    "MCAN, 64 questions",
    "translation training 4 + 4 x 128, 64 sentences",
    "translation training 6 + 6 x 512, 64 sentences",
    "translation 4 + 4 x 128, 64 sentences",
    "translation 6 + 6 x 512, 64 sentences",
    "translation 6 + 6 x 512, one sentence",
)


def ours(work):
    """Our work, which XLA compiles before it is timed if it is of one example."""
    step, _ = accelerator.WORKS[work]()
    for _ in range(REPEATS + 1 if "one" in work else 0):
        step()
    return step


def ctranslate2_works():
    from experiments.benchmarks.against_ctranslate2 import ctranslate2

    return accelerator.translation_works(ctranslate2)


def peer(make_works, work):
    """A peer's work, which the peer's process makes."""
    import torch

    from experiments.benchmarks.forced_translation import cores

    torch.set_num_threads(cores())
    return make_works()[work]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--luo", metavar="FOLDER")
    parser.add_argument("--mcan", metavar="FOLDER")
    parser.add_argument("--works", nargs="+", default=WORKS, choices=WORKS)
    options = parser.parse_args()
    peers = {
        "Hugging Face": accelerator.huggingface_works,
        "CTranslate2": ctranslate2_works,
    }
    if options.luo:
        peers["Luo's toolkit"] = functools.partial(accelerator.luo_works, options.luo)
    if options.mcan:
        peers["MCAN's code"] = functools.partial(accelerator.mcan_works, options.mcan)
    print(f"{processor()}; medians of five, in turn\n")
    print("| work | seconds | of processors | of a product's rate |")
    print("|---|---:|---:|---:|")
    for work in options.works:
        makers = {"keras_caption": ours, PRODUCT: large_product}
        for name, make_works in peers.items():
            if work in make_works():
                makers[name] = functools.partial(peer, make_works)
        times = in_turn(makers, work)
        rate = 2 * PRODUCT_SIZE**3 / times.pop(PRODUCT).cpu
        own = times.pop("keras_caption")
        share = accelerator.WORKS[work]()[1] / own.cpu / rate
        print(f"| {work} | {own.wall:.2f} | {own.cpu:.2f} | {share:.2f} |", flush=True)
        for name, taken in times.items():
            ratios = f"{taken.wall / own.wall:.2f} x", f"{taken.cpu / own.cpu:.2f} x"
            print(f"| {name} | {' | '.join(ratios)} | |", flush=True)


if __name__ == "__main__":
    main()
