r"""Translates sentences with a trained model.

    keras-caption translate saved_models/transformer_tiny_wmt "A dog runs."
    keras-caption translate MODEL --input news.en --output news.de
    cat news.en | keras-caption translate MODEL --n_best 5
    keras-caption translate MODEL --stream

Prints one line for each sentence. With --n_best, prints a line for each translation,
the best first: the number of the sentence, from 1, the log-probability and the
translation, between tabs. The folder of a run stands for the best.keras in it. Models
that are separated by commas form an ensemble. The translation of an empty line is
empty. So is the translation of a sentence of too many tokens, which is reported.
Sentences of unknown words only are translated, counted and reported.

With --stream, a terminal shows each translation while it grows, for the sentences of
the command line or for each line that you type. The best hypothesis of a beam may
change while it grows.
"""

import argparse
import contextlib
import functools
import pathlib
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from tqdm.utils import disp_len

import keras_caption as kc
from keras_caption.apps.serve.lite_predictors import load_lite
from keras_caption.base.progress import progress
from keras_caption.commands.command_line import (
    Parser,
    add_decoding,
    add_jit_compile,
    decoding_of,
    import_library,
    names,
    new_file,
    option,
    write_lines,
)
from keras_caption.commands.engines import add_engine_option, engine_for, files_for
from keras_caption.commands.skipped import Skipped
from keras_caption.text.tokenizer import MAX_TOKENS, check_texts


def make_parser() -> Parser:
    parser = Parser(
        "keras-caption translate",
        __doc__,
        imports=True,
        needs_library=False,  # for LiteRT
    )
    parser.add_argument(
        "model",
        type=names,
        help="saved model, run, preset or export, or several separated by commas",
    )
    parser.add_argument(
        "sentences", nargs="*", help="default to those of --input or standard input"
    )
    parser.add_argument(
        "--input", help="text file, a sentence in each line, or its .gz"
    )
    add_engine_option(parser)
    parser.add_argument("--output", type=new_file, help="new file for the translations")
    parser.add_argument(
        "--n_best",
        type=functools.partial(option, "beam_size"),
        metavar="N",
        help="print N translations of a sentence",
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="show translations in the terminal while they grow",
    )
    add_decoding(parser)
    add_jit_compile(parser)
    return parser


def main(arguments: Sequence[str]) -> int:
    parser = make_parser()
    options = parser.parse_intermixed_args(arguments)
    if options.sentences and options.input:
        parser.error("give sentences on the command line or by --input, not both")
    if options.stream:
        for name in ("input", "output", "n_best"):
            if getattr(options, name) is not None:
                parser.error(f"--stream cannot be combined with --{name}")
        if not sys.stdout.isatty():
            parser.error("--stream needs a terminal, and standard output is none")
    engine = engine_for(options.model, options)
    sentences, name = source_of(options)
    skipped = Skipped.beside(options.output)
    predictor = translator_of(options, engine)
    if predictor.source is None:
        raise kc.InputError(f"{','.join(options.model)} translates no sentences.")
    translator = LineTranslator(predictor, options, name, skipped)
    if options.stream:
        translator.stream(sentences)
    else:
        write_lines(translator(sentences), options.output)
    skipped.close()
    if translator.unknown:
        print(
            f"note: {len(translator.unknown):,} of the sentences have unknown words "
            f"only: {name} {translator.unknown[0]}, for instance.",
            file=sys.stderr,
        )
    return 1 if skipped.records else 0


def translator_of(options: argparse.Namespace, engine: str) -> Any:
    """What translates: a `Predictor`, or what `load_lite` returns.

    Args:
        options: Options of the command line.
        engine: str, what `engine_for` returned.
    """
    files = files_for(options.model, engine)
    # Engines run one model.
    if engine == "litert" and (lite := load_lite(files[0])):
        return lite
    import_library(options)
    return kc.serving.Predictor(kc.models.load_ensemble(files, kc.models.Ensemble))


def source_of(options: argparse.Namespace) -> tuple[Iterable[str], str]:
    """The sentences, an iterable, and the name of their source, for messages."""
    from keras_caption.formats.text_lines import lines, lines_of

    if options.sentences:
        return options.sentences, "Sentence"
    if not options.input:
        stdin = contextlib.nullcontext(sys.stdin.buffer)
        name = "Standard input"
        return lines_of(lambda: stdin, name), f"{name}, line"
    path = pathlib.Path(options.input)
    total = sum(1 for _ in lines(path))  # finds faults before anything is written
    return progress(lines(path), total=total, unit="lines"), f"{path}, line"


class LineTranslator:
    """Translates a stream of sentences, in memory of constant size.

    Args:
        predictor: What `translator_of` returned.
        options: Options of the command line.
        name: str, noun for a sentence in messages, before its number.
        skipped: `Skipped` that collects sentences of too many tokens.

    Attributes:
        unknown: List of int, numbers of sentences of unknown words only.
    """

    def __init__(
        self, predictor: Any, options: argparse.Namespace, name: str, skipped: Skipped
    ):
        self.predictor = predictor
        self.name = name
        self.n_best = options.n_best
        self.options = decoding_of(options)
        self.skipped = skipped
        self.unknown: list[int] = []

    def __call__(self, sentences: Iterable[str]) -> Iterator[str]:
        """Yields the lines to print."""
        predictions = self.predictor.stream(
            sentences, read=self._read, n=self.n_best, **self.options
        )
        for number, prediction in enumerate(predictions, start=1):
            if isinstance(prediction, kc.predict.Fault):
                self._skip(number, prediction.error)
                prediction = kc.predict.Prediction()
            if self.n_best is None:
                yield kc.text.one_line(prediction.text)
                continue
            for text, score in prediction.best:
                yield f"{number}\t{score:.4f}\t{kc.text.one_line(text)}"

    def stream(self, sentences: Iterable[str]) -> None:
        """Shows the translations in a terminal while they grow."""
        for number, sentence in enumerate(sentences, start=1):
            show(self._growing(sentence, number))

    def _growing(self, sentence, number):
        """Yields the texts of a growing translation; none for a skipped sentence."""
        try:
            example = self._read(sentence, number - 1)
        except kc.InputError as error:
            self._skip(number, error)
            return
        if not example.has_words:
            return
        model = self.predictor.model
        generated = model.generate([sentence], stream=True, **self.options)
        try:
            yield from (text for [text] in generated)
        except kc.errors.NoTextError as error:
            self._skip(number, error)

    def _read(self, sentence, place):
        """Makes an example of a sentence; remembers sentences of unknown words only."""
        check_texts([sentence], "Sentence")
        tokens = self.predictor.source.encode(sentence)[1:]
        words = tokens[:-1]  # the last is EOS
        if len(tokens) > MAX_TOKENS:
            raise kc.InputError(
                f"has more than {MAX_TOKENS:,} tokens and is not translated"
            )
        if words and not any(map(self.predictor.source.is_known, words)):
            self.unknown.append(place + 1)
        values = {"source": np.array(tokens, "int32")}
        return kc.predict.Example(place, values, has_words=bool(words))

    def _skip(self, number, error):
        which, problem = f"{self.name} {number}", str(error)
        if isinstance(error, kc.errors.NoTextError):
            problem = f"has no translation: {error.reason}"
        self.skipped.add(which, f"{which} {problem}.")


def show(texts: Iterable[str]) -> None:
    """Prints a text in a terminal while it grows or changes, and ends the line."""
    shown = ""
    for text in map(kc.text.one_line, texts):
        if not text.startswith(shown):
            # Control sequences: moves up to the first row, and erases all below.
            rows = (disp_len(shown) - 1) // shutil.get_terminal_size().columns
            up = f"\x1b[{rows}A" if rows else ""
            print(f"\r{up}\x1b[J", end="")
            shown = ""
        print(text.removeprefix(shown), end="", flush=True)
        shown = text
    print()
