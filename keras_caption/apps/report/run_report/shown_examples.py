"""The examples that a report shows."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from keras_caption.apps.report.results.examples import Example, Outcome
from keras_caption.apps.report.results.run_page import attention_data
from keras_caption.apps.report.run_report.finished_run import FinishedRun
from keras_caption.base.errors import InputError

SHOWN = 500  # examples in a report
EXTREME = 6  # best examples, and as many median and worst ones
APART = 12  # examples in which two runs differ most
LEGEND = (
    "Frames mark what the word attends to, with the share of its attention. A thicker "
    "frame has a greater share."
)
LEGEND_OF_QUESTIONS = (
    "Frames mark regions that attend to the word, with the share of the region's "
    "attention that the word gets. A thicker frame has a greater share."
)
LEGEND_OF_SOURCES = (
    "The number above a word of the source is its share of the chosen word's "
    "attention, in percent. A stronger colour is a greater share."
)


def shown_examples(
    runs: Sequence[FinishedRun], outcomes: Sequence[Outcome], names: Sequence[str]
) -> dict[str, Any]:
    """The examples of one run, or those that two runs have in common.

    Args:
        runs: Sequence of `FinishedRun`, one or two.
        outcomes: Outcomes of the runs.
        names: Names of the runs.

    Returns:
        dict of values for the page, see `keras_caption.apps.report.results.run_page`.

    Raises:
        InputError: If two runs have no example in common.
    """
    keys, scores = common_scores(runs, outcomes)
    apart = {key: abs(scores[0][key] - scores[-1][key]) for key in keys}
    groups = group(keys, scores[0], apart, outcomes[0].score)
    chosen = [key for _, keys_of_group in groups for key in keys_of_group]
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
            "scores": [run_scores[key] for run_scores in scores],
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
        "groups": [(head, [items[key] for key in members]) for head, members in groups],
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
        InputError: If the runs have no example in common.
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
    """Merges the examples of runs: the first lines of all runs, then the second, ...

    Args:
        runs: Sequence of `FinishedRun`.
        scores: The scores of each run, by key.
        keys: Sequence of keys.
    """
    examples = [
        run.task.examples(run.model, run.folder, run_scores, keys)
        for run, run_scores in zip(runs, scores, strict=True)
    ]
    merged = {}
    for key in keys:
        parts = [run_examples[key] for run_examples in examples]
        images = (part.image for part in parts if part.image is not None)
        lines = zip(*(part.lines for part in parts), strict=True)
        merged[key] = dataclasses.replace(
            parts[0], image=next(images, None), lines=[*itertools.chain(*lines)]
        )
    return merged


def group(
    keys: Sequence[Any], scores: dict[Any, float], apart: dict[Any, float], score: str
) -> list[tuple[str, list[Any]]]:
    """Groups the shown examples under heads, with the extremes first.

    Args:
        keys: Keys of examples, in the order of the split.
        scores: dict from key to the first run's score.
        apart: dict from key to the difference of two runs' scores; zeros for one run.
        score: str, name of the scores.

    Returns:
        List of pairs of a head and its keys.
    """
    ranked = sorted(keys, key=lambda key: -scores[key])
    middle = max(0, len(ranked) // 2 - EXTREME // 2)
    groups: dict[str, Sequence[Any]] = {}
    if any(apart.values()):
        differing = sorted(keys, key=lambda key: -apart[key])[:APART]
        groups["Where the two differ most"] = [key for key in differing if apart[key]]
    groups[f"Best by {score}"] = ranked[:EXTREME]
    groups[f"Median by {score}"] = ranked[middle : middle + EXTREME]
    groups[f"Worst by {score}"] = ranked[-EXTREME:][::-1]
    groups["Others, as in the split"] = keys
    shown: set[Any] = set()
    listed = []
    for head, members in groups.items():
        new = [key for key in members if key not in shown][: SHOWN - len(shown)]
        shown.update(new)
        if new:
            listed.append((head, new))
    return listed
