"""Translations of a test split, with the attention of each word."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import keras_caption as kc
from keras_caption.apps.report.results.examples import Attention, Example, Line, Outcome
from keras_caption.base.errors import InputError
from keras_caption.formats.text_lines import lines
from keras_caption.models.sentence_reader import pad
from keras_caption.tasks.translation import Translation
from keras_caption.text import EOS
from keras_caption.text.tokenizer import SPECIAL_TOKENS
from keras_caption.training.task import EXAMPLES_AT_ONCE


def outcome(task: Translation, model: Any, folder: pathlib.Path) -> Outcome:
    """The translations of a run's test split, with the score of each."""
    from sacrebleu.metrics import CHRF

    _, references = decoded_test(task, model)
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


def decoded_test(task: Translation, model: Any) -> tuple[list[str], list[str]]:
    """The sentences of the test split, and references in the form of decoded outputs.

    Decoding may change spaces or letters: a right translation should be equal to its
    reference.
    """
    sources, references = task.sentences("test")
    if model is not None:
        references = [model.vocabulary.as_decoded(text) for text in references]
    return sources, references


def examples(
    task: Translation,
    model: Any,
    folder: pathlib.Path,
    scores: dict[int, float],
    keys: Sequence[int],
) -> dict[int, Example]:
    """Some translations, with their sources.

    Args:
        task: `keras_caption.tasks.Translation`.
        model: The run's translator, or `None`: then examples have no attention.
        folder: `pathlib.Path` of the run.
        scores: dict from the number of a sentence to float.
        keys: Sequence of numbers.
    """
    sources, references = decoded_test(task, model)
    translations = translations_of(folder, references)
    shown = {
        i: Example(
            [Line(translations[i].split(), score=scores[i])],
            [references[i]],
            sources[i],
        )
        for i in keys
    }
    if model is not None:
        translated = [i for i in keys if translations[i]]
        for start in range(0, len(translated), EXAMPLES_AT_ONCE):
            batch = translated[start : start + EXAMPLES_AT_ONCE]
            texts = [translations[i] for i in batch]
            results = attended(model, [sources[i] for i in batch], texts)
            for i, (words, gap, attention) in zip(batch, results, strict=True):
                [line] = shown[i].lines
                line.words, line.gap, line.attention = words, gap, attention
    return shown


def attended(
    model: Any, sources: list[str], translations: list[str]
) -> list[tuple[list[str], str, Attention]]:
    """Computes the attention of the words of known translations.

    The attention of a word is the mean over its tokens. A word of the source gets the
    sum over its tokens. In texts without spaces, each token counts as a word.

    Args:
        model: A translator, or an ensemble.
        sources: List of str.
        translations: List of str.

    Returns:
        List of triples: the words of a translation, the text between words, and
        `Attention` to the words and the end of the source.
    """
    source_ids = model.source_tokens(sources)
    target_ids = [[*model.vocabulary.to_ids(x), EOS] for x in translations]
    inputs = model.read({"source": pad(source_ids)})
    tokens = pad(target_ids)[:, None]
    results = []
    for source, ids, read, [weights] in zip(
        sources,
        target_ids,
        source_ids,
        model.attended(inputs, tokens),
        strict=True,
    ):
        words, places, gap = words_of(model.vocabulary, ids[:-1])
        names, parts, between = words_of(model.source, read[:-1])
        if len(source.split()) == len(names):
            names = source.split()  # as the user wrote the words
        to_words = membership(places, len(words))
        to_words /= np.maximum(to_words.sum(axis=0), 1)  # means over the tokens
        to_names = membership([*parts, len(names)], len(names) + 1)
        weights = weights[: len(places), : len(parts) + 1]  # (tokens, source tokens)
        shares = to_words.T @ weights @ to_names  # (words, source words)
        names = [*names, SPECIAL_TOKENS[EOS]]
        results.append((words, gap, Attention(None, shares, names, between)))
    return results


def words_of(
    tokenizer: "kc.text.Tokenizer", ids: list[int]
) -> tuple[list[str], list[int], str]:
    """Words of a text, the index of each token's word, and the text between words.

    Args:
        tokenizer: `keras_caption.text.Tokenizer`.
        ids: List of int, the tokens of the text.
    """
    beginnings = [tokenizer.to_text(ids[: i + 1]) for i in range(len(ids))]
    words = beginnings[-1].split() if ids else []
    if len(words) > 1:
        return words, [max(len(x.split()) - 1, 0) for x in beginnings], " "
    return [tokenizer.to_text([i]) for i in ids], [*range(len(ids))], ""


def membership(places: Sequence[int], count: int) -> np.ndarray:
    """Membership of tokens in `count` words, float `(tokens, count)`."""
    return np.eye(count)[np.array(places, int)]


def translations_of(folder, references):
    """Reads the translations of a run, as many as there are references."""
    path = folder / "test_translations.txt"
    translations = [*lines(path)]
    if len(translations) != len(references):
        raise InputError(
            f"{path} has {len(translations):,} lines, but the test split has "
            f"{len(references):,} sentences: the file belongs to other data."
        )
    return translations
