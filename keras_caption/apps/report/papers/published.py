"""Every number of the papers' tables, as the papers print them.

Scores are times 100; log perplexity is negative, the greater the better. NG-SAN and
Area Attention write CIDEr where AoANet writes CIDEr-D; all are under one name here. On
COCO's test server, c5 and c40 are the numbers of references of an image.
"""

import csv
import dataclasses
import importlib.resources
import json
from typing import Any

CROSS_ENTROPY, SELF_CRITICAL = "cross-entropy", "self-critical"


@dataclasses.dataclass(frozen=True)
class Published:
    """A row of a paper's table.

    Attributes:
        label: What the paper calls it.
        scores: dict from metric to float, as the paper prints it; `parameters` in
            millions.
        model: Name of the preset that it is of, or `None` for work that the project
            has no model of.
        overrides: dict from the names of settings, such as `model.num_layers`, to the
            values that the row is of.
        recipe: dict, settings that the row is trained with and that its table's
            `config` does not have.
        members: int, number of members of an ensemble; 1 for a single model.
        objective: What the model was last trained with.
    """

    label: str
    scores: dict
    model: str | None = None
    overrides: dict = dataclasses.field(default_factory=dict)
    recipe: dict = dataclasses.field(default_factory=dict)
    members: int = 1
    objective: str = SELF_CRITICAL

    def is_of(self, run: dict[str, Any], settings: dict[str, Any]) -> bool:
        """Whether a run is of the row's model, with its values.

        Args:
            run: dict, as `keras_caption.formats.runs.read_config` returns it.
            settings: The same as a flat dict from `group.name` to value.
        """
        if not self.model:
            return False
        if self.members > 1:
            return (
                run["objective"] == "ensemble"
                and run["model"].split(" + ") == [self.model] * self.members
                and run.get("member_objectives") == [self.objective] * self.members
            )
        if (run["model"], run["objective"]) != (self.model, self.objective):
            return False
        return self.overrides.items() <= settings.items()


@dataclasses.dataclass(frozen=True)
class Table:
    """A paper's table.

    Attributes:
        title: Its name.
        rows: Tuple of `Published`; empty if the paper has no numbers.
        notes: What a reader must know to compare with it.
        data: What the paper's scores are of.
        config: Name of the built-in experiment that trains its models as the paper
            does.
        settings: dict, settings that all its models are trained with.
        is_prose: bool, whether its numbers stand in sentences, each with its own
            decimals; those of a table's column have the same.
    """

    title: str
    rows: tuple
    notes: str = ""
    data: str = "Karpathy's test split of COCO"
    config: str = ""
    settings: dict = dataclasses.field(default_factory=dict)
    is_prose: bool = False

    @property
    def objectives(self):
        """What the project's models in it were last trained with, each once."""
        return list(dict.fromkeys(row.objective for row in self.rows if row.model))

    def printed(self, row: Published) -> dict[str, str]:
        """Scores of a row as the paper prints them, zeros at the end included."""
        return {name: self._printed(name, x) for name, x in row.scores.items()}

    def _printed(self, name, score):
        if self.is_prose:
            return str(score)
        column = [row.scores[name] for row in self.rows if name in row.scores]
        return f"{score:.{max(len(str(x).partition('.')[2]) for x in column)}f}"


def read_tables() -> dict[str, Table]:
    """Reads all tables of the papers, by name.

    `tables.json` has what belongs to a table, `tables/NAME.csv` its rows: scores as the
    paper prints them, empty where it has a dash; columns such as `model.num_layers` for
    overrides, and `recipe model.dropout` for what a row is trained with. The recipes
    are of released code: of AoANet's script for models that refine nothing, and of
    tensor2tensor.
    """
    folder = importlib.resources.files("keras_caption.apps.report.papers")
    heads = json.loads((folder / "tables.json").read_text(encoding="utf-8"))
    tables = {}
    for name, head in heads.items():
        path = folder / "tables" / f"{name}.csv"
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        tables[name] = Table(rows=tuple(map(_row, csv.DictReader(lines))), **head)
    return tables


def _row(cells):
    cells = {name: cell for name, cell in cells.items() if cell}
    label, objective = cells.pop("label"), cells.pop("objective")
    model, members = cells.pop("model", None), int(cells.pop("members", 1))
    row = Published(label, {}, model, {}, {}, members, objective)
    for name, cell in cells.items():
        if name.startswith("recipe "):
            row.recipe[name.removeprefix("recipe ")] = json.loads(cell)
        elif "." in name:
            row.overrides[name] = int(cell) if cell.isdecimal() else cell
        else:
            row.scores[name] = float(cell)
    return row
