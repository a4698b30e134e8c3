"""The report of a run, or of two runs compared, as one page."""

import base64
import pathlib
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from keras_caption.apps.report.results import plots, run_page
from keras_caption.apps.report.run_report.finished_run import (
    FinishedRun,
    RunRecord,
    tell_apart,
)
from keras_caption.apps.report.run_report.score_tables import part_tables, score_table
from keras_caption.apps.report.run_report.shown_examples import shown_examples
from keras_caption.apps.report.run_report.text_statistics import text_statistics
from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError

FILE = "report.html"
PICTURE = "attention.png"
PANELS = (  # of curves: names of logs, and a label
    (("loss", "val_loss"), "loss"),
    (("reward",), "reward"),
)
SECTIONS = {
    "scores": "Scores",
    "parts": "By kind",
    "curves": "Curves",
    "statistics": "Length and vocabulary",
    "configuration": "Configuration",
    "groups": "Examples",
}
ANCHORS = {"statistics": "words", "groups": "examples"}


def write_report(runs: Sequence[FinishedRun], path: pathlib.Path) -> None:
    """Writes the report of one run, or of two on the same test split.

    Args:
        runs: Sequence of `FinishedRun`, one or two.
        path: `pathlib.Path` of the page, which is replaced if it exists.

    Raises:
        InputError: If two runs have different tasks, or no example in common.
    """
    if len({type(run.task) for run in runs}) > 1:
        raise InputError(
            f"{runs[0].folder} and {runs[1].folder} have different tasks: two runs are "
            "compared on the same test split."
        )
    names = tell_apart(runs)
    outcomes = [run.task.outcome(run.model, run.folder) for run in runs]
    content = {
        "runs": names,
        "picture": picture_of(runs),
        **score_table(runs, names),
        "parts": part_tables(runs, outcomes),
        **curves_of(runs, names),
        "statistics": None,
        "configuration": configuration_of(runs, names),
        "groups": [],
    }
    if None not in outcomes:
        outcomes_by_name = dict(zip(names, outcomes, strict=True))
        content["statistics"] = text_statistics(outcomes_by_name)
        content |= shown_examples(runs, outcomes, names)
    sections = [(ANCHORS.get(x, x), name) for x, name in SECTIONS.items() if content[x]]
    datasets = " and ".join(dict.fromkeys(run.dataset for run in runs))
    page = run_page.render(
        title=f"{' and '.join(names)} on {datasets}",
        about=[about(*pair) for pair in zip(runs, names, strict=True)],
        sections=sections,
        **content,
    )
    with replacing(path) as partial:
        partial.write_text(page, encoding="utf-8")


def about(run: FinishedRun, name: str) -> str:
    """A line that describes a run."""
    parts = [f"{name}: {run.folder}"]
    parameters = run.description.get("parameters")
    if parameters:
        parts.append(f"{parameters / 1e6:.2f}M parameters")
    if run.history:
        count = len(run.history)
        parts.append(f"{count} epoch{'s' * (count > 1)}")
    if run.model is None:
        parts.append("without attention, since the file of its model is missing")
    return ", ".join(parts)


def picture_of(runs: Sequence[FinishedRun]) -> str | None:
    """The figure of a run's attention, as a data URL."""
    path = runs[0].folder / PICTURE
    if len(runs) > 1 or not path.exists():
        return None
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def curves_of(runs: Sequence[FinishedRun], names: Sequence[str]) -> dict[str, Any]:
    """Plots and tables of the epochs' logs."""
    histories = {
        name: run.history for name, run in zip(names, runs, strict=True) if run.history
    }
    monitor = runs[0].task.monitor
    panels = [*PANELS[:1], ((monitor,), monitor), *PANELS[1:]]
    curves = [plots.curves(histories, logs, label) for logs, label in panels]
    epochs = []
    for name, history in histories.items():
        logs = list(dict.fromkeys(log for epoch in history for log in epoch))
        logs.remove("scale")
        rows = [[number(epoch.get(log)) for log in logs] for epoch in history]
        epochs.append((name, logs, rows))
    return {"curves": [Markup(svg) for svg in curves if svg], "epochs": epochs}


def number(value: Any) -> str:
    """The text of a number in a table."""
    return f"{value:.4g}" if isinstance(value, float) else str(value or "")


def configuration_of(
    runs: Sequence[FinishedRun], names: Sequence[str]
) -> list[tuple[str, list[str], list[tuple[str, list[str]]]]]:
    """The settings of runs, with those that differ first.

    Returns:
        List of tables: a title, the heads of columns, and rows of a setting and its
        values.
    """
    settings = [run.settings for run in runs]
    # Empty lists: digests of a model to start from, or of the members of an ensemble.
    keys = dict.fromkeys(key for run in settings for key, x in run.items() if x != [])
    rows = {key: [str(run.get(key, "")) for run in settings] for key in keys}
    if len(runs) == 1:
        return [("All settings", [], [*rows.items()])]
    differing = [(key, values) for key, values in rows.items() if len({*values}) > 1]
    same = [(key, values[:1]) for key, values in rows.items() if len({*values}) == 1]
    return [
        ("Settings that differ", [*names], differing),
        ("Settings that are the same", [], same),
    ]


__all__ = ["FILE", "FinishedRun", "RunRecord", "write_report"]
