"""Statistics of texts: their lengths and their words."""

import collections
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from keras_caption.apps.report.results import plots
from keras_caption.apps.report.results.examples import Outcome
from keras_caption.evaluation import lacks_spaces
from keras_caption.evaluation.captions import normalize

LISTED = 24  # words in a list
PERSONS = "references"


def text_statistics(outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Compares the outputs of runs with references.

    Args:
        outcomes: dict from the name of a run to its `Outcome`.

    Returns:
        dict of `who`, the columns; `rows` of a name and texts; `plot`, the lengths; and
        `lists`, pairs of a title and pairs of a text and its count.
    """
    [first, *_] = outcomes.values()
    references = [text for texts in first.references for text in texts]
    characters = lacks_spaces(references)
    lines_of = {name: outcome.outputs for name, outcome in outcomes.items()}
    lines_of[PERSONS] = references
    texts = {
        name: [normalize(text, characters).split() for text in lines]
        for name, lines in lines_of.items()
    }
    counts = {name: [len(words) for words in x] for name, x in texts.items()}
    words = {
        name: collections.Counter(word for words in x for word in words)
        for name, x in texts.items()
    }
    rows = {
        "texts": [f"{len(x):,}" for x in texts.values()],
        "different texts": [f"{len({*map(tuple, x)}):,}" for x in texts.values()],
        "words per text, mean": [f"{statistics.mean(x):.1f}" for x in counts.values()],
        "words per text, least and most": [
            f"{min(x)} to {max(x)}" for x in counts.values()
        ],
        "different words": [f"{len(x):,}" for x in words.values()],
    }
    # More texts have more different words: as many texts of each are compared.
    sample = min(map(len, texts.values()))
    rows[f"different words in {sample:,} texts"] = [
        f"{len({word for words in evenly(x, sample) for word in words}):,}"
        for x in texts.values()
    ]
    lists = []
    for name, outcome in outcomes.items():
        suffix = f" of {name}" if len(outcomes) > 1 else ""
        most = collections.Counter(outcome.outputs).most_common(5)
        lists.append((f"Most frequent{suffix}", [x for x in most if x[1] > 1]))
        unsaid = words[PERSONS].copy()
        for word in words[name]:
            unsaid.pop(word, None)
        lists.append(
            (f"Words of references only, not{suffix}", unsaid.most_common(LISTED))
            if suffix
            else ("Words of references only", unsaid.most_common(LISTED))
        )
    return {
        "who": [*texts],
        "rows": [*rows.items()],
        "plot": Markup(plots.lengths(counts)),
        "lists": [(title, items) for title, items in lists if items],
    }


def evenly(texts: Sequence[Any], count: int) -> list[Any]:
    """Chooses `count` texts at even distances."""
    return [texts[i * len(texts) // count] for i in range(count)]
