"""Translations of a test split, scored one by one."""

import pathlib
from collections.abc import Sequence

from keras_caption.errors import InputError
from keras_caption.formats.text_lines import lines
from keras_caption.results.examples import Example, Line, Outcome


def outcome(folder: pathlib.Path, sentences: tuple[list[str], list[str]]) -> Outcome:
    """The translations of a run's test split.

    Args:
        folder: `pathlib.Path` of the run.
        sentences: Source sentences and their translations, lists of str.
    """
    from sacrebleu.metrics import CHRF

    _, references = sentences
    translations = translations_of(folder, references)
    chrf = CHRF()
    scores = [
        chrf.sentence_score(text, [reference]).score / 100
        for text, reference in zip(translations, references, strict=True)
    ]
    return Outcome(
        translations,
        [[reference] for reference in references],
        dict(enumerate(scores)),
        "chrF",
    )


def examples(
    folder: pathlib.Path,
    sentences: tuple[list[str], list[str]],
    scores: dict[int, float],
    keys: Sequence[int],
) -> dict[int, Example]:
    """Some translations, with their sources.

    Args:
        folder: `pathlib.Path` of the run.
        sentences: Of `outcome`.
        scores: dict from the number of a sentence to float.
        keys: Sequence of numbers.
    """
    sources, references = sentences
    translations = translations_of(folder, references)
    return {
        i: Example(
            [Line([translations[i]], score=scores[i])], [references[i]], sources[i]
        )
        for i in keys
    }


def translations_of(folder, references):
    """Reads the translations of a run, as many as there are references."""
    path = folder / "test_translations.txt"
    translations = [*lines(path)]
    if len(translations) != len(references):
        raise InputError(
            f"{path} has {len(translations):,} lines, and the test split "
            f"{len(references):,} sentences: it is that of other data."
        )
    return translations
