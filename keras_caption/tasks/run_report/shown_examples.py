"""The examples that a report shows."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from keras_caption.errors import InputError
from keras_caption.results.examples import Example, Outcome
from keras_caption.results.run_page import attention_data
from keras_caption.tasks.run_report.finished_run import FinishedRun

SHOWN = 500  # examples
EXTREME = 6  # of them that are best, median or worst
APART = 12  # of them in which two runs differ most
LEGEND = (
    "A frame is what the word attends to, with its share of the word's attention: the "
    "greater, the thicker the frame."
)
LEGEND_OF_QUESTIONS = (
    "A frame is a region that attends to the word, with the share of the region's "
    "attention that the word gets: the greater, the thicker the frame."
)
LEGEND_OF_SOURCES = (
    "Above the words of the source stands how much of a word's attention they have, in "
    "percent: the greater, the stronger their colour."
)


def shown_examples(
    runs: Sequence[FinishedRun], outcomes: Sequence[Outcome], names: Sequence[str]
) -> dict[str, Any]:
    """The examples of one run, or those that two runs have in common.

    Args:
        runs: Sequence of `FinishedRun`, one or two.
        outcomes: Their outcomes.
        names: What they are called.

    Returns:
        dict of what `keras_caption.results.run_page` shows of them.

    Raises:
        InputError: If two runs have no example in common.
    """
    keys, scores = common_scores(runs, outcomes)
    apart = {key: abs(scores[0][key] - scores[-1][key]) for key in keys}
    groups = group(keys, scores[0], apart, outcomes[0].score)
    chosen = [key for _, of_group in groups for key in of_group]
    shown = merged_examples(runs, scores, chosen)
    labels = {
        key: [names[i % len(names)] for i, _ in enumerate(example.lines)]
        if len(names) > 1
        else [None] * len(example.lines)
        for key, example in shown.items()
    }
    places = {key: place for place, key in enumerate(keys)}
    items = {
        key: {
            "key": key,
            "place": places[key],
            "example": example,
            "labels": labels[key],
            "scores": [of_run[key] for of_run in scores],
            "apart": apart[key],
            "has_attention": any(line.attention for line in example.lines),
        }
        for key, example in shown.items()
    }
    legend = LEGEND
    if any(example.source is not None for example in shown.values()):
        legend = LEGEND_OF_SOURCES
    if any(line.answer is not None for x in shown.values() for line in x.lines):
        legend = LEGEND_OF_QUESTIONS
    return {
        "groups": [
            (head, [items[key] for key in of_group]) for head, of_group in groups
        ],
        "shown": f"{len(chosen):,} of {len(keys):,} of the test split, by "
        f"{outcomes[0].score}.",
        "score": outcomes[0].score,
        "attention": attention_data(shown),
        "has_attention": any(item["has_attention"] for item in items.values()),
        "has_frames": legend is not LEGEND_OF_SOURCES,
        "legend": legend,
    }


def common_scores(
    runs: Sequence[FinishedRun], outcomes: Sequence[Outcome]
) -> tuple[list[Any], list[dict[Any, float]]]:
    """Keys of the examples that runs have in common, and the scores of each run.

    Raises:
        InputError: If there is none.
    """
    scores = [outcome.scores for outcome in outcomes]
    keys = [key for key in scores[0] if all(key in other for other in scores)]
    if not keys:
        raise InputError(
            f"{runs[0].folder} and {runs[1].folder} have no test example in common: "
            "two runs are compared on the same test split."
        )
    return keys, scores


def merged_examples(
    runs: Sequence[FinishedRun], scores: Sequence[dict[Any, float]], keys: Sequence[Any]
) -> dict[Any, Example]:
    """Examples with the lines of all runs: the first line of each, then the second.

    Args:
        runs: Sequence of `FinishedRun`.
        scores: The scores of each.
        keys: Sequence of keys.
    """
    of_runs = [
        run.task.examples(run.model, run.folder, of_run, keys)
        for run, of_run in zip(runs, scores, strict=True)
    ]
    merged = {}
    for key in keys:
        parts = [of_run[key] for of_run in of_runs]
        images = (part.image for part in parts if part.image is not None)
        lines = zip(*(part.lines for part in parts), strict=True)
        merged[key] = dataclasses.replace(
            parts[0], image=next(images, None), lines=[*itertools.chain(*lines)]
        )
    return merged


def group(
    keys: Sequence[Any], scores: dict[Any, float], apart: dict[Any, float], score: str
) -> list[tuple[str, list[Any]]]:
    """The examples that are shown, under heads: extremes first.

    Args:
        keys: Keys of examples, in the order of the split.
        scores: dict from key to the first run's score.
        apart: dict from key to the difference of two runs' scores; of one run, zeros.
        score: str, what the scores are.

    Returns:
        List of a head and its keys.
    """
    ranked = sorted(keys, key=lambda key: -scores[key])
    middle = max(0, len(ranked) // 2 - EXTREME // 2)
    groups = {}
    if any(apart.values()):
        differing = sorted(keys, key=lambda key: -apart[key])[:APART]
        groups["Where the two differ most"] = [key for key in differing if apart[key]]
    groups[f"Best by {score}"] = ranked[:EXTREME]
    groups[f"Median by {score}"] = ranked[middle : middle + EXTREME]
    groups[f"Worst by {score}"] = ranked[-EXTREME:][::-1]
    groups["Others, as in the split"] = keys
    shown, listed = set(), []
    for head, of_group in groups.items():
        new = [key for key in of_group if key not in shown][: SHOWN - len(shown)]
        shown.update(new)
        if new:
            listed.append((head, new))
    return listed
