"""The rows of the papers' tables, and the runs that belong to them."""

import dataclasses

from finished import OBJECTIVES, distinctions, label_of

from keras_caption.models.presets import PRESETS

PAPERS = {
    "ngsan": "NG-SAN",
    "aoanet": "AoANet",
    "area": "Area Attention",
    "spatial": "Spatial self-attention",
}
TABLES = sorted({table for preset in PRESETS.values() for table in preset.tables})

# NG-SAN's Table 1: numbers of layers, and the millions of parameters they come to.
DEPTHS = {1: 18.1, 2: 25.5, 4: 40.2, 6: 54.9}
PUBLISHED_DEPTH = 4  # of all its other tables

# AoANet's Table 1 ends with an ensemble.
WITH_ENSEMBLE = "aoanet_1"


@dataclasses.dataclass
class Row:
    """A line of a table.

    Attributes:
        label: What it is of.
        runs: What is in the files of its finished runs, a list of dicts.
        published: Scores times 100, a dict from metric; `parameters` are in millions.
    """

    label: str
    runs: list
    published: dict = dataclasses.field(default_factory=dict)


def cells_of(table):
    """Models and overrides of their arguments, those of a paper's table."""
    names = [name for name, preset in PRESETS.items() if table in preset.tables]
    if table == "ngsan_1":
        return [(name, {"model.num_layers": n}) for name in names for n in DEPTHS]
    return [(name, {}) for name in names]


def title_of(table):
    """The name of a table, as people know it."""
    paper, number = table.split("_")
    return f"{PAPERS[paper]}, Table {number}"


def rows_of(table, runs):
    """The rows of a paper's table, those without runs too."""
    rows, distinct = [], list(distinctions(runs))
    for name, overrides in cells_of(table):
        published, parameters = PRESETS[name].published, {}
        label = name
        if overrides:
            depth = overrides["model.num_layers"]
            label += f", L = {depth}"
            parameters = {"parameters": DEPTHS[depth]}
            if depth != PUBLISHED_DEPTH:
                published = {}
        of_cell = [
            Row(
                label + suffix,
                [
                    run
                    for run, changed in distinct
                    if (run["model"], run["objective"]) == (name, objective)
                    and is_of_cell(run, changed, overrides)
                ],
                {**parameters, **published.get(objective, {})},
            )
            for objective, suffix in OBJECTIVES.items()
        ]
        known = [
            row for row in of_cell if row.runs or row.published.keys() - parameters
        ]
        rows += known or of_cell[:1]
    if table == WITH_ENSEMBLE:
        published = PRESETS["aoanet"].published["ensemble"]
        ensembles = [
            Row(label_of(run, {}), [run], published)
            for run in runs
            if run["objective"] == "ensemble"
            and set(run["model"].split(" + ")) == {"aoanet"}
        ]
        rows += ensembles or [Row("ensemble", [], published)]
    return rows


def is_of_cell(run, changed, overrides):
    """Whether a run's model has these values, and its preset's in all else."""
    changed = {name for name in changed if name.startswith("model.")}
    return changed <= overrides.keys() and all(
        run["config"]["model"][name.removeprefix("model.")] == value
        for name, value in overrides.items()
    )
