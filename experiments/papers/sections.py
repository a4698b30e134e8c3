"""Tables of scores, printed as Markdown and written as CSV."""

import csv
import dataclasses
import statistics

from experiments.papers.rows import Row
from keras_caption.atomic import creating
from keras_caption.evaluation import markdown_table
from keras_caption.formats.runs import PARTS, UNSCALED


@dataclasses.dataclass
class Section:
    """A table that is printed.

    Attributes:
        title: Its name, and that of the dataset.
        metrics: Names of its task's metrics.
        rows: List of `Row`.
        notes: What a reader must know to compare with it.
    """

    title: str
    metrics: tuple
    rows: list
    notes: str = ""


def show(section):
    """Prints a table as Markdown."""
    rows, published = section.rows, published_of(section)
    print(f"\n{section.title}\n")
    if section.notes:
        print(f"{section.notes}\n")
    columns = ["seeds", "parameters", *section.metrics]
    if not any(run["parameters"] for row in rows for run in row.runs):
        columns.remove("parameters")
    print(
        markdown_table(
            ["", *columns, *(f"paper's {name}" for name in published)],
            [
                [row.label]
                + [cell(row, name) for name in columns]
                + [str(row.published.get(name, "")) for name in published]
                for row in rows
            ],
        )
    )
    for name, title in PARTS.items():
        parts = [
            Row(row.label, [run.get(name, {}) for run in row.runs])
            for row in rows
            if row.runs and row.runs[0].get(name)
        ]
        if parts:
            print(f"\n{title}\n")
            columns = list(dict.fromkeys(x for row in parts for x in row.runs[0]))
            cells = [[row.label, *(cell(row, x) for x in columns)] for row in parts]
            print(markdown_table(["", *columns], cells))


def published_of(section):
    """Names of the values that the papers report of any of the rows."""
    published = [row.published for row in section.rows]
    names = ["parameters", *section.metrics]
    return [name for name in names if any(name in values for values in published)]


def cell(row, name):
    """Text of a cell: mean and standard deviation over runs."""
    if not row.runs:
        return ""
    if name == "seeds":
        return str(len(row.runs))
    if name == "parameters":
        count = row.runs[0]["parameters"]
        return f"{count / 1e6:.2f}M" if count else ""
    values = scores_of(row, name)
    return text_of(values, digits=4 if name in UNSCALED else 1) if values else "n/a"


def scores_of(row, name):
    """A score of all runs of a row as shown, none where it is not known of all."""
    values = [run.get(name) for run in row.runs]
    scale = 1 if name in UNSCALED else 100
    return [] if None in values else [scale * value for value in values]


def text_of(values, digits=1):
    """Text of mean ± standard deviation."""
    known = [x for x in mean_and_spread(values) if x is not None]
    return " ± ".join(f"{x:.{digits}f}" for x in known)


def mean_and_spread(values):
    """Mean and standard deviation, `None` where there is none."""
    mean = statistics.mean(values) if values else None
    return mean, statistics.stdev(values) if len(values) > 1 else None


def write_csv(path, sections):
    """All tables in one new file: a line for each row."""
    metrics = list(
        dict.fromkeys(name for section in sections for name in section.metrics)
    )
    with (
        creating(path) as partial,
        open(partial, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        heads = ["table", "row", "objective", "seeds"]
        heads += ["parameters", "published parameters"]
        for name in metrics:
            heads += [name, f"{name} deviation", f"published {name}"]
        writer.writerow(heads)
        for section in sections:
            for row in section.rows:
                count = row.runs[0]["parameters"] if row.runs else None
                line = [section.title, row.label, row.objective, len(row.runs)]
                line += [count, row.published.get("parameters")]
                for name in metrics:
                    line += mean_and_spread(scores_of(row, name))
                    line.append(row.published.get(name))
                writer.writerow(line)
