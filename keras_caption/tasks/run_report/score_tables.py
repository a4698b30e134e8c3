"""The scores of runs as tables, beside those that the papers print."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_caption.formats.runs import PARTS, UNSCALED
from keras_caption.papers import TABLES, Published, Table
from keras_caption.results.examples import Outcome
from keras_caption.synthetic import GENERATED
from keras_caption.tasks.run_report.finished_run import OBJECTIVES, FinishedRun


def score_table(runs: Sequence[FinishedRun], names: Sequence[str]) -> dict[str, Any]:
    """Scores of runs, then those of the papers' rows that have their settings.

    Args:
        runs: Sequence of `FinishedRun`.
        names: What they are called.

    Returns:
        dict of `metrics`, the names of columns; `scores`, the rows; and `notes`, what
        to know of the papers' scores.
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
            f"The papers' rows are of the same model; ours are on {data}, with the "
            "sizes and schedule of their configuration. Rows with + SCST are after "
            "self-critical training, all others after cross-entropy only.",
            *dict.fromkeys(note for _, note in tables.values() if note),
        ]
    return {"metrics": metrics, "scores": rows, "notes": notes}


def published_rows(run: FinishedRun) -> list[tuple[Table, Published]]:
    """Rows of the papers' tables that are of a run's model, whatever the objective.

    Of the rows of one table, those count that say the most of its settings. None is
    comparable with a run on generated data.

    Returns:
        List of pairs of a `keras_caption.papers.Table` and its `Published`.
    """
    if run.dataset in GENERATED:
        return []
    found = []
    for table in TABLES.values():
        rows = [x for x in table.rows if is_of_model(x, run)]
        most = max((len(row.overrides) for row in rows), default=0)
        found += [
            (table, row) for row in rows if len(row.overrides) == most and row.scores
        ]
    return found


def is_of_model(row: Published, run: FinishedRun) -> bool:
    """Whether a row is of a run's model and settings, whatever it was trained with."""
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
        outcomes: Their outcomes.

    Returns:
        List of dicts of `title`, `counted`, whether it is known how many items the
        scores are of, and `rows` of a name, the share of each run and that number.
    """
    counts = next((x.counts for x in outcomes if x is not None), {})
    tables = []
    for part, title in PARTS.items():
        of_runs = [run.scores.get(part, {}) for run in runs]
        names = dict.fromkeys(name for of_run in of_runs for name in of_run)
        of_part = counts.get(part, {})
        rows = [
            (
                name,
                [of_run.get(name) for of_run in of_runs],
                f"{of_part[name]:,}" if name in of_part else "",
            )
            for name in sorted(names, key=lambda name: -of_part.get(name, 0))
            if of_part.get(name) != 0  # there is none that could be right
        ]
        if rows:
            tables.append({"title": title, "counted": bool(of_part), "rows": rows})
    return tables
