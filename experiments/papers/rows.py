"""The rows of the papers' tables, and the runs that belong to them."""

import dataclasses

from keras_caption.papers import CROSS_ENTROPY, SELF_CRITICAL
from keras_caption.papers import TABLES as PAPERS

from experiments.papers.effects import EFFECTS
from experiments.papers.finished import OBJECTIVES, distinctions
from keras_caption import tasks
from keras_caption.training.run_directory import settings

TABLES = {**PAPERS, **EFFECTS}
PHASES = {
    (): "",
    (CROSS_ENTROPY,): "All scores are after cross-entropy only, the paper's and ours.",
    (SELF_CRITICAL,): (
        "The paper's scores are after self-critical training. Of ours, rows with "
        "+ SCST are, all others are after cross-entropy only."
    ),
    (CROSS_ENTROPY, SELF_CRITICAL): (
        "Rows with + SCST are after self-critical training, all others after "
        "cross-entropy only, the paper's and ours."
    ),
}


@dataclasses.dataclass
class Row:
    """A row of a table.

    Attributes:
        label: What it is of.
        runs: List of dicts, what the files of its finished runs hold.
        published: dict from metric to str, the score as a paper prints it: times 100,
            except `log_perplexity`; `parameters` are in millions.
        objective: What its models were last trained with.
    """

    label: str
    runs: list
    published: dict = dataclasses.field(default_factory=dict)
    objective: str = ""


def cells_of(table):
    """The models that a table compares, a row for each, ensembles aside."""
    cells = {}
    for row in TABLES[table].rows:
        if row.model and row.members == 1:
            cells.setdefault((row.model, *row.overrides.items()), row)
    return [*cells.values()]


def name_of_cell(row):
    """A name for the runs of a cell, without their seed, for folders and files."""
    return "_".join(map(str, [row.model, *row.overrides.values()]))


def ensembles_of(table):
    """The rows of a table that are of ensembles."""
    return [row for row in TABLES[table].rows if row.model and row.members > 1]


def task_of_table(table):
    """The task of a table's models; `None` if none of them is ours."""
    cells = cells_of(table)
    return tasks.of_model(cells[0].model) if cells else None


def notes_of(table, dataset=None):
    """What a reader must know to compare ours with the paper's, str.

    Args:
        table: Name of the table.
        dataset: What the runs of ours are scored on, or `None` if there are none.
    """
    has_models, table = bool(cells_of(table)), TABLES[table]
    if not any(row.scores for row in table.rows):
        return table.notes
    data = f"The paper's are of {table.data}"
    if has_models:
        data += f"; ours of {dataset}" if dataset else "; there is no run of ours"
    parts = (PHASES[tuple(table.objectives)], f"{data}.", table.notes)
    return " ".join(part for part in parts if part)


def rows_of(table, runs):
    """The rows of a paper's table; those without runs of ours too."""
    table = TABLES[table]
    distinct, rows = list(distinctions(runs)), []
    for published in table.rows:
        if published.model and CROSS_ENTROPY not in table.objectives:
            # What the paper does not report: ours before self-critical training.
            before = dataclasses.replace(published, objective=CROSS_ENTROPY, scores={})
            row = row_of(table, before, distinct)
            rows += [row] if row.runs else []
        rows.append(row_of(table, published, distinct))
    return rows


def row_of(table, published, distinct):
    """A published row, with the runs that belong to it."""
    label = published.label
    is_papers = any(row.scores for row in table.rows)  # a label of ours says it all
    if published.model and is_papers:
        label += f" ({published.model})"
    for name, value in published.overrides.items():
        if name.startswith("model.") and is_papers:
            label += f", {name.removeprefix('model.')}={value}"
    runs = [run for run, changed in distinct if is_of(published, run, changed)]
    return Row(
        label + objective_of(table, published),
        runs,
        table.printed(published),
        published.objective,
    )


def objective_of(table, published):
    """What the label of a row says of its training.

    Of others' work, it says so only where a table has such work after both.
    """
    others = {row.objective for row in table.rows if not row.model}
    if published.model or published.objective == CROSS_ENTROPY:
        return OBJECTIVES[published.objective]
    return ", self-critical" if len(others) > 1 else ""


def is_of(published, run, changed):
    """Whether a run is of a published row's model, with its values and no others."""
    values = settings(run)
    return published.is_of(run, values) and (
        published.members > 1 or changed.keys() <= published.overrides.keys()
    )
