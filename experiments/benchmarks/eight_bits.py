"""Translations in float32 and in 8 bits, by engines with the same weights.

    pip install ctranslate2 ai-edge-litert
    taskset --cpu-list 0 python experiments/benchmarks/eight_bits.py

64 sentences of the small translator of `forced_translation.py`, by keras_caption and by
what `keras-caption export` writes for LiteRT and CTranslate2: CPU seconds, medians of
three calls in turn in one process, and how many translations and tokens are those of
keras_caption. The weights are random, so that tokens have closer alternatives than
those of trained ones.
"""

import functools
import statistics
import time

import numpy as np

from experiments.benchmarks.against_ctranslate2 import ctranslate2, litert
from experiments.benchmarks.forced_translation import LENGTH, WORKS, ours
from keras_caption.evaluation import markdown_table

REPEATS = 3


def best_tokens(output):
    """Tokens of the best translations, int `(sentences, LENGTH)`, of any search."""
    if isinstance(output, dict):  # LiteRT
        output = output["tokens"]
    elif isinstance(output, list):  # CTranslate2, whose words are ids
        output = [[int(x) for x in result.hypotheses[0]] for result in output]
    else:
        output = output[0]
    return np.reshape(output, (-1, LENGTH))


def main():
    work = WORKS[0]
    searches = {"keras_caption": ours(work)}
    for name, make in (("LiteRT", litert), ("CTranslate2", ctranslate2)):
        searches[name] = make(work)
        searches[f"{name}, int8"] = functools.partial(make, precision="int8")(work)
    found = {name: best_tokens(search()) for name, search in searches.items()}
    times = {name: [] for name in searches}
    for _ in range(REPEATS):
        for name, search in searches.items():
            begun = time.process_time()
            search()
            times[name].append(time.process_time() - begun)
    rows = []
    for name, tokens in found.items():
        equal = tokens == found["keras_caption"]
        counts = f"{equal.all(axis=1).sum()}", f"{equal.mean():.1%}"
        rows.append((name, f"{statistics.median(times[name]):.2f}", *counts))
    columns = "", "CPU seconds", "equal translations", "equal tokens"
    print(markdown_table(columns, rows))


if __name__ == "__main__":
    main()
