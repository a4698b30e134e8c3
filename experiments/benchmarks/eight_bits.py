"""Translations in float32 and in 8 bits, by engines with the same weights.

    pip install ctranslate2 ai-edge-litert
    taskset --cpu-list 0 python experiments/benchmarks/eight_bits.py \
        [RUN SENTENCES REFERENCES]

64 sentences of the small translator of `forced_translation.py`, by keras_caption and by
what `keras-caption export` writes for LiteRT and CTranslate2: CPU seconds, medians of
three calls in turn in one process, and how many translations and tokens are those of
keras_caption. The weights are random, so that tokens have closer alternatives than
those of trained ones.

With RUN, the folder of a trained Transformer with plain attention, and two files with a
sentence a line: its translations of these sentences, by a beam of four without a
length penalty, and their BLEU in %.
"""

import argparse
import functools
import pathlib
import statistics
import tempfile
import time

import numpy as np
from keras_caption.serving import export_engine

import keras_caption as kc
from experiments.benchmarks.against_ctranslate2 import (
    ctranslate2,
    ctranslate2_search,
    litert,
)
from experiments.benchmarks.forced_translation import LENGTH, WORKS, ours
from keras_caption.evaluation import markdown_table, score_translations

REPEATS = 3
BEAM_SIZE = 4  # of a trained translator


def best_tokens(output):
    """Tokens of the best translations, int `(sentences, LENGTH)`, of any search."""
    if isinstance(output, dict):  # LiteRT
        output = output["tokens"]
    elif isinstance(output, list):  # CTranslate2, whose words are ids
        output = [[int(x) for x in result.hypotheses[0]] for result in output]
    else:
        output = output[0]
    return np.reshape(output, (-1, LENGTH))


def of_random():
    """Searches of the small translator by engines, and how outputs are compared."""
    work = WORKS[0]
    engines = {"LiteRT": litert, "CTranslate2": ctranslate2}
    makers = {x: functools.partial(make, work) for x, make in engines.items()}

    def compare(output, expected):
        equal = best_tokens(output) == best_tokens(expected)
        return str(equal.all(axis=1).sum()), f"{equal.mean():.1%}"

    return ours(work), makers, "equal tokens", compare


def of_trained(run, sentences, references):
    """As `of_random`, of a trained translator and two lists of texts."""
    model = kc.models.load(run)
    longest = model.decoding.max_length
    model.decoding = kc.decoding.Decoding(
        beam_size=BEAM_SIZE, max_length=longest, renormalize=True
    )

    def lite(precision):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "translator"
            export_engine(model, path, "litert", precision)
            engine = kc.models.load(path)
        return functools.partial(engine.generate, sentences)

    def ct2(precision):
        search = ctranslate2_search(
            model,
            map(model.source.to_ids, sentences),
            precision,
            beam_size=BEAM_SIZE,
            min_decoding_length=0,
            max_decoding_length=longest,
        )
        return lambda: [
            model.target.to_text([*map(int, x.hypotheses[0])]) for x in search()
        ]

    def compare(output, expected):
        equal = sum(a == b for a, b in zip(output, expected, strict=True))
        scores, _ = score_translations(output, references)
        return str(equal), f"{100 * scores['BLEU']:.2f}"

    makers = {"LiteRT": lite, "CTranslate2": ct2}
    return functools.partial(model.generate, sentences), makers, "BLEU", compare


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trained", nargs="*", metavar="RUN SENTENCES REFERENCES")
    trained = parser.parse_args().trained
    if len(trained) not in (0, 3):
        parser.error("RUN, SENTENCES and REFERENCES are given together.")
    if trained:
        run, *files = trained
        texts = (pathlib.Path(x).read_text("utf-8").splitlines() for x in files)
        search, makers, last, compare = of_trained(run, *texts)
    else:
        search, makers, last, compare = of_random()
    searches = {"keras_caption": search}
    for name, make in makers.items():
        searches[name] = make(precision="float32")
        searches[f"{name}, int8"] = make(precision="int8")
    found = {name: search() for name, search in searches.items()}
    times = {name: [] for name in searches}
    for _ in range(REPEATS):
        for name, search in searches.items():
            begun = time.process_time()
            search()
            times[name].append(time.process_time() - begun)
    rows = []
    for name, output in found.items():
        seconds = f"{statistics.median(times[name]):.2f}"
        rows.append((name, seconds, *compare(output, found["keras_caption"])))
    columns = "", "CPU seconds", "equal translations", last
    print(markdown_table(columns, rows))


if __name__ == "__main__":
    main()
