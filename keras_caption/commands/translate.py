r"""Translates sentences with a trained model.

    keras-caption translate saved_models/transformer_tiny_wmt "A dog runs."
    keras-caption translate MODEL --input news.en --output news.de
    cat news.en | keras-caption translate MODEL --n_best 5

Prints one line for each sentence or, with --n_best, a line for each translation: the
sentence's number, from 1, the log-probability and the translation, between tabs, the
best first. A folder stands for the best.keras in it; several models, separated by
commas, translate as an ensemble. An empty line has an empty translation; so has one of
too many tokens, which is reported. Sentences that have unknown words only are
translated, counted and reported.
"""

import argparse
import contextlib
import itertools
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras_caption as kc
from keras_caption.commands.command_line import (
    Parser,
    decoding,
    names,
    new_file,
    write_lines,
)
from keras_caption.commands.skipped import Skipped
from keras_caption.formats.text_lines import lines, lines_of
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.progress import progress

AT_ONCE = 1024  # lines in memory
LIMIT = {"length_ratio": 2.0, "length_margin": 10}


def main(arguments: Sequence[str]) -> int:
    parser = Parser("keras-caption translate", __doc__, imports=True)
    parser.add_argument(
        "model", type=names, help="saved model, or several separated by commas"
    )
    parser.add_argument(
        "sentences", nargs="*", help="if omitted, those of --input or standard input"
    )
    parser.add_argument("--input", help="text file, a sentence in a line, or its .gz")
    parser.add_argument("--output", type=new_file, help="new file for the translations")
    parser.add_argument(
        "--beam_size",
        type=decoding("beam_size"),
        default=4,
        help="beam width; 1 is greedy search",
    )
    parser.add_argument(
        "--n_best",
        type=decoding("beam_size"),
        metavar="N",
        help="print N translations of a sentence",
    )
    parser.add_argument(
        "--length_penalty",
        type=decoding("length_penalty", float),
        default=0.6,
        help="0 ranks by log-probability",
    )
    options = parser.parse_intermixed_args(arguments)
    if options.sentences and options.input:
        parser.error("sentences are given on the command line or by --input, not both")
    sentences, name = source_of(options)
    skipped = Skipped.beside(options.output)
    model = kc.models.Ensemble(options.model)
    if model.source is None:
        raise kc.InputError(f"{','.join(options.model)} translates no sentences.")
    translator = LineTranslator(model, options, name, skipped)
    write_lines(translator(sentences), options.output)
    skipped.close()
    if translator.unknown:
        print(
            f"note: {len(translator.unknown):,} of the sentences have unknown words "
            f"only: {name} {translator.unknown[0]}, for instance.",
            file=sys.stderr,
        )
    return 1 if skipped.records else 0


def source_of(options: argparse.Namespace) -> tuple[Iterable[str], str]:
    """The sentences, one after another, and where they are from, for messages."""
    if options.sentences:
        return options.sentences, "Sentence"
    if not options.input:
        stdin = contextlib.nullcontext(sys.stdin.buffer)
        name = "Standard input"
        return lines_of(lambda: stdin, name), f"{name}, line"
    path = pathlib.Path(options.input)
    total = sum(1 for _ in lines(path))  # reads it all, before anything is written
    return progress(lines(path), total=total, unit="lines"), f"{path}, line"


class LineTranslator:
    """Translates a stream of sentences; memory does not grow with it.

    Args:
        model: Translator or ensemble, with tokenizers.
        options: Options of the command line.
        name: str, what a sentence is called in messages, before its number.
        skipped: `Skipped`, to which sentences of too many tokens are added.

    Attributes:
        unknown: List of int, numbers of sentences of unknown words only.
    """

    def __init__(
        self, model: Any, options: argparse.Namespace, name: str, skipped: Skipped
    ):
        self.model = model
        self.name = name
        self.n_best = options.n_best
        self.search = {"length_penalty": options.length_penalty, **LIMIT}
        self.search["beam_size"] = max(options.beam_size, options.n_best or 1)
        self.skipped = skipped
        self.unknown = []

    def __call__(self, sentences: Iterable[str]) -> Iterator[str]:
        """Yields the lines to print."""
        first, sentences = 1, iter(sentences)
        while chunk := list(itertools.islice(sentences, AT_ONCE)):
            for number, found in enumerate(self._translate(chunk, first), start=first):
                if self.n_best is None:
                    yield kc.text.one_line(found)
                    continue
                for text, score in found:
                    yield f"{number}\t{score:.4f}\t{kc.text.one_line(text)}"
            first += len(chunk)

    def _translate(self, sentences, first):
        """Translations of some sentences, the first of which has the number `first`."""
        groups = {}  # by the greatest length of the output, rounded up
        tokens = self.model.source_tokens(sentences)
        for i, ids in enumerate(tokens):
            if len(ids) > MAX_TOKENS:
                which = f"{self.name} {first + i}"
                self.skipped.add(
                    which,
                    f"{which} has more than {MAX_TOKENS:,} tokens and is not "
                    "translated.",
                )
                continue
            words = ids[:-1]  # without EOS
            if words and not any(map(self.model.source.is_known, words)):
                self.unknown.append(first + i)
            longest = LIMIT["length_ratio"] * len(ids) + LIMIT["length_margin"]
            groups.setdefault(1 << int(longest - 1).bit_length(), []).append(i)
        found = ["" if self.n_best is None else [] for _ in sentences]
        for max_length, indices in groups.items():
            texts = [sentences[i] for i in indices]
            options = {"max_length": max_length, **self.search}
            if self.n_best is None:
                translations = self.model.translate(texts, **options)
            else:
                translations = self.model.translate_n_best(
                    texts, self.n_best, **options
                )
            for i, translation in zip(indices, translations, strict=True):
                found[i] = translation
        return found
