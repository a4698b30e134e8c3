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
from keras_caption.serving import export_ctranslate2, export_engine

import keras_caption as kc
from experiments.benchmarks.against_ctranslate2 import ctranslate2, litert
from experiments.benchmarks.forced_translation import LENGTH, WORKS, cores, ours
from keras_caption.evaluation import markdown_table, score_translations

REPEATS = 3
DECODING = {"beam_size": 4, "renormalize": True}  # as CTranslate2 decodes
PRECISIONS = {"": "float32", ", int8": "int8"}


def best_tokens(output):
    """Tokens of the best translations, int `(sentences, LENGTH)`, of any search."""
    if isinstance(output, dict):  # LiteRT
        output = output["tokens"]
    elif isinstance(output, list):  # CTranslate2, whose words are ids
        output = [[int(x) for x in result.hypotheses[0]] for result in output]
    else:
        output = output[0]
    return np.reshape(output, (-1, LENGTH))


def random_searches():
    """Searches of the small translator, by engine; each returns its own output."""
    work = WORKS[0]
    searches = {"keras_caption": ours(work)}
    for name, make in (("LiteRT", litert), ("CTranslate2", ctranslate2)):
        for suffix, precision in PRECISIONS.items():
            searches[name + suffix] = functools.partial(make, precision=precision)(work)
    return searches


def trained_searches(run, sentences):
    """Searches of a trained translator, by engine; each returns texts."""
    import ctranslate2

    model = kc.models.load(run)
    model.decoding = kc.decoding.Decoding(
        max_length=model.decoding.max_length, **DECODING
    )
    searches = {"keras_caption": functools.partial(model.generate, sentences)}
    ids = [[*map(str, model.source.to_ids(sentence))] for sentence in sentences]

    def translate(engine):
        results = engine.translate_batch(
            ids,
            beam_size=DECODING["beam_size"],
            length_penalty=0,
            min_decoding_length=0,
            max_decoding_length=model.decoding.max_length,
            suppress_sequences=[["<pad>"], ["<bos>"]],
            disable_unk=True,
        )
        return [model.target.to_text([*map(int, x.hypotheses[0])]) for x in results]

    for suffix, precision in PRECISIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            export_engine(model, path / "litert", "litert", precision)
            export_ctranslate2(model, path / "ctranslate2", precision)
            engine = kc.models.load(path / "litert")
            searches[f"LiteRT{suffix}"] = functools.partial(engine.generate, sentences)
            engine = ctranslate2.Translator(
                str(path / "ctranslate2"), intra_threads=cores()
            )
            searches[f"CTranslate2{suffix}"] = functools.partial(translate, engine)
    return searches


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trained", nargs="*", metavar="RUN SENTENCES REFERENCES")
    trained = parser.parse_args().trained
    if trained:
        run, *files = trained
        sentences, references = (
            pathlib.Path(x).read_text(encoding="utf-8").splitlines() for x in files
        )
        searches = trained_searches(run, sentences)
    else:
        searches = random_searches()
    found = {name: search() for name, search in searches.items()}
    times = {name: [] for name in searches}
    for _ in range(REPEATS):
        for name, search in searches.items():
            begun = time.process_time()
            search()
            times[name].append(time.process_time() - begun)
    if not trained:
        found = {name: best_tokens(output) for name, output in found.items()}
    rows = []
    for name, output in found.items():
        if trained:
            pairs = zip(output, found["keras_caption"], strict=True)
            equal = sum(a == b for a, b in pairs)
            last = f"{100 * score_translations(output, references)[0]['BLEU']:.2f}"
        else:
            tokens = output == found["keras_caption"]
            equal, last = tokens.all(axis=1).sum(), f"{tokens.mean():.1%}"
        seconds = statistics.median(times[name])
        rows.append((name, f"{seconds:.2f}", str(equal), last))
    last = "BLEU" if trained else "equal tokens"
    print(markdown_table(("", "CPU seconds", "equal translations", last), rows))


if __name__ == "__main__":
    main()
