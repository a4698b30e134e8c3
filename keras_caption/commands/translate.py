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
import functools
import itertools
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras_caption as kc
from keras_caption.commands.command_line import (
    Parser,
    add_decoding,
    decoding_of,
    names,
    new_file,
    option,
    write_lines,
)
from keras_caption.commands.skipped import Skipped
from keras_caption.progress import progress

AT_ONCE = 1024  # lines in memory


def make_parser() -> Parser:
    parser = Parser("keras-caption translate", __doc__, imports=True)
    parser.add_argument(
        "model",
        type=names,
        help="saved model, run, preset or export, or several separated by commas",
    )
    parser.add_argument(
        "sentences", nargs="*", help="if omitted, those of --input or standard input"
    )
    parser.add_argument("--input", help="text file, a sentence in a line, or its .gz")
    parser.add_argument("--output", type=new_file, help="new file for the translations")
    parser.add_argument(
        "--n_best",
        type=functools.partial(option, "beam_size"),
        metavar="N",
        help="print N translations of a sentence",
    )
    add_decoding(parser)
    return parser


def main(arguments: Sequence[str]) -> int:
    parser = make_parser()
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
    from keras_caption.formats.text_lines import lines, lines_of

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
        self.options = decoding_of(options)
        self.skipped = skipped
        self.unknown = []

    def __call__(self, sentences: Iterable[str]) -> Iterator[str]:
        """Yields the lines to print."""
        first, sentences = 1, iter(sentences)
        while chunk := list(itertools.islice(sentences, AT_ONCE)):
            for number, result in enumerate(self._translate(chunk, first), start=first):
                if self.n_best is None:
                    yield kc.text.one_line(result)
                    continue
                for text, score in result:
                    yield f"{number}\t{score:.4f}\t{kc.text.one_line(text)}"
            first += len(chunk)

    def _translate(self, sentences, first):
        """Translations of some sentences, the first of which has the number `first`."""

        def report(place, problem, translated):
            number = first + place
            if translated:
                self.unknown.append(number)
            else:
                which = f"{self.name} {number}"
                self.skipped.add(which, f"{which} {problem}.")

        options = {"report": report, "n": self.n_best, **self.options}
        return self.model.translate(sentences, **options)
