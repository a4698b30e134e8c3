"""Tables of the scores of runs, beside the scores that the papers print."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_caption.apps.report.papers import TABLES, Published, Table
from keras_caption.apps.report.results.examples import Outcome
from keras_caption.apps.report.run_report.finished_run import OBJECTIVES, FinishedRun
from keras_caption.apps.scenes import GENERATED
from keras_caption.formats.runs import PARTS, UNSCALED


def score_table(runs: Sequence[FinishedRun], names: Sequence[str]) -> dict[str, Any]:
    """Scores of runs, followed by the papers' rows with the same settings.

    Args:
        runs: Sequence of `FinishedRun`.
        names: Names of the runs.

    Returns:
        dict of `metrics`, the names of columns; `scores`, the rows; and `notes` on the
        papers' scores.
    """
    tables = {}
    for run in runs:
        for table, row in published_rows(run):
            label = f"{table.title}: {row.label}{OBJECTIVES.get(row.objective, '')}"
            tables[label] = table.printed(row), table.notes
    known = [run.scores for run in runs] + [scores for scores, _ in tables.values()]
    metrics = [m for m in runs[0].task.metrics if any(m in x for x in known)]
    rows = [
        {"label": name, "paper": False, "values": cells(run.scores, metrics)}
        for name, run in zip(names, runs, strict=True)
    ]
    rows += [
        {"label": label, "paper": True, "values": [x.get(m, "") for m in metrics]}
        for label, (x, _) in tables.items()
    ]
    notes = []
    if tables:
        data = " and ".join(dict.fromkeys(run.dataset for run in runs))
        notes = [
            f"The papers' rows have the same model. Our rows are on {data}, with the "
            "sizes and schedule of their configuration. Rows with + SCST are after "
            "self-critical training, all others after cross-entropy only.",
            *dict.fromkeys(note for _, note in tables.values() if note),
        ]
    return {"metrics": metrics, "scores": rows, "notes": notes}


def published_rows(run: FinishedRun) -> list[tuple[Table, Published]]:
    """Rows of the papers' tables for a run's model, whatever the objective.

    Each table contributes the rows that name most settings of the run. No row is
    comparable with a run on generated data.

    Returns:
        List of pairs of a `keras_caption.papers.Table` and its `Published`.
    """
    if run.dataset in GENERATED:
        return []
    published = []
    for table in TABLES.values():
        rows = [x for x in table.rows if is_of_model(x, run)]
        most = max((len(row.overrides) for row in rows), default=0)
        published += [
            (table, row) for row in rows if len(row.overrides) == most and row.scores
        ]
    return published


def is_of_model(row: Published, run: FinishedRun) -> bool:
    """Whether a row has a run's model and settings, whatever the objective."""
    if row.members == 1:
        row = dataclasses.replace(row, objective=run.description["objective"])
    return row.is_of(run.description, run.settings)


def cells(scores: dict[str, float], metrics: Sequence[str]) -> list[str]:
    """Texts of a run's scores, in the order of the metrics."""
    return [
        ""
        if scores.get(name) is None
        else f"{scores[name]:.4f}"
        if name in UNSCALED
        else f"{100 * scores[name]:.1f}"
        for name in metrics
    ]


def part_tables(
    runs: Sequence[FinishedRun], outcomes: Sequence[Outcome | None]
) -> list[dict[str, Any]]:
    """Scores of parts of the test split, such as kinds of questions.

    Args:
        runs: Sequence of `FinishedRun`.
        outcomes: Outcomes of the runs.

    Returns:
        List of dicts: `title`; `counted`, whether the numbers of items are known; and
        `rows`, each of a name, the score of each run, and the number of items.
    """
    counts = next((x.counts for x in outcomes if x is not None), {})
    tables = []
    for part, title in PARTS.items():
        scores = [run.scores.get(part, {}) for run in runs]
        names = dict.fromkeys(name for run_scores in scores for name in run_scores)
        numbers = counts.get(part, {})
        rows = [
            (
                name,
                [run_scores.get(name) for run_scores in scores],
                f"{numbers[name]:,}" if name in numbers else "",
            )
            for name in sorted(names, key=lambda name: -numbers.get(name, 0))
            if numbers.get(name) != 0  # without items, a score means nothing
        ]
        if rows:
            tables.append({"title": title, "counted": bool(numbers), "rows": rows})
    return tables
