"""Tables of scores, printed as Markdown and written as CSV."""

import csv
import dataclasses
import statistics

from experiments.papers.rows import Row
from keras_caption.base.atomic import creating
from keras_caption.evaluation import (
    SCORES,
    markdown_table,
    paired_difference,
    ratio,
)
from keras_caption.formats.items import read_items
from keras_caption.formats.runs import PARTS, UNSCALED

SUMMED = ("BLEU", "log_perplexity")  # their items are pairs of a sum and its weight


@dataclasses.dataclass
class Section:
    """A table that is printed.

    Attributes:
        title: Its name, and that of the dataset.
        metrics: Names of its task's metrics.
        rows: List of `Row`.
        notes: What a reader must know to compare with it.
        dataset: What its runs were scored on.
    """

    title: str
    metrics: tuple
    rows: list
    notes: str = ""
    dataset: str = ""


def show(section, against=()):
    """Prints a table as Markdown, and how its rows differ.

    Args:
        section: `Section`.
        against: Of `differences`.
    """
    rows, published = section.rows, published_of(section)
    print(f"\n{section.title}\n")
    if section.notes:
        print(f"{section.notes}\n")
    columns = ["seeds", "parameters", *section.metrics]
    runs = [run for row in rows for run in row.runs]
    if not runs:
        columns = []
    elif not any(run["parameters"] for run in runs):
        columns.remove("parameters")
    if rows:
        print(
            markdown_table(
                ["", *columns, *(f"paper's {name}" for name in published)],
                [
                    [row.label]
                    + [cell(row, name) for name in columns]
                    + [row.published.get(name, "") for name in published]
                    for row in rows
                ],
            )
        )
    notes = {name: x for run in runs for name, x in run.get("notes", {}).items()}
    for name, note in notes.items():
        print(f"\n{name}: {note}")
    show_differences(rows, section.metrics, against)
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


def show_differences(rows, metrics, against):
    """Prints the differences of the rows of a table, with intervals and verdicts.

    Args:
        rows, metrics, against: See `differences`.
    """
    compared_rows = differences(rows, metrics, against)
    bases = dict.fromkeys(base.label for _, base, _ in compared_rows if base)
    for label in bases:
        lines = [
            [row.label, name, *difference_cells(compared, name)]
            for row, base, metric_differences in compared_rows
            if base and base.label == label
            for name, compared in metric_differences.items()
        ]
        if lines:
            print(f"\nDifferences from {label}, paired, with 95 % intervals\n")
            heads = ["", "of", "difference", "interval", "verdict", "over"]
            print(markdown_table(heads, lines, labels=2))


def differences(rows, metrics, against):
    """Compares the rows of a table with a base row above them.

    Args:
        rows: List of `Row`.
        metrics: Names of the metrics of the table.
        against: Texts. For each text, the first row whose label contains it is a base.
            A row is compared with the last base above it, or with the first base. An
            empty list makes the first row the only base.

    Returns:
        List of triples: a row with runs; the base that it is compared with, or `None`
        for a base; and a dict from metric to `keras_caption.evaluation.Difference`.
    """
    items = [(row, items_of(row.runs)) for row in rows if row.runs]
    bases = [
        next((x for x in items if text in x[0].label), None) for text in against or [""]
    ]
    bases = [x for x in bases if x is not None]
    compared, current = [], bases[0] if bases else (None, {})
    for row, row_items in items:
        if any(row is base for base, _ in bases):
            current = row, row_items
        base, reference = current
        if base is row or base is None:
            compared.append((row, None, {}))
            continue
        metric_differences = {
            name: paired_difference(
                row_items[name], reference[name], SCORES.get(name, ratio)
            )
            for name in (*metrics, "log_probability")
            if name in row_items
            and name in reference
            and set.intersection(*map(set, row_items[name] + reference[name]))
        }
        compared.append((row, base, metric_differences))
    return compared


def write_differences(path, sections, against):
    """Writes the differences of all tables to a new file, one line for each row.

    Args:
        path: Path of a CSV file.
        sections: List of `Section`.
        against: See `differences`.
    """
    lines = []
    for section in sections:
        compared_rows = differences(section.rows, section.metrics, against)
        for row, base, metric_differences in compared_rows:
            line = {"row": row.label, "against": base.label if base else ""}
            if len(sections) > 1:
                line = {"data": section.dataset, **line}
            line["seeds"] = len(row.runs)
            line |= scores_in_text(row, section.metrics)
            for name, compared in metric_differences.items():
                scale = 1 if name in UNSCALED else 100
                mean, interval, *_ = difference_cells(compared, name)
                line |= {
                    "items": compared.items,
                    f"of {name}": f"{mean} ({interval})",
                    f"{name} difference": scale * compared.mean,
                    f"{name} error": scale * compared.error,
                    f"{name} degrees": compared.degrees,
                }
            lines.append(line)
    with creating(path) as partial:
        write_lines(partial, lines)


def write_lines(path, lines, heads=()):
    """Writes a CSV file of dicts.

    Args:
        path: Path of the file.
        lines: List of dicts from column to str.
        heads: The first columns; all others that lines have follow.
    """
    heads = dict.fromkeys([*heads, *(name for line in lines for name in line)])
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*heads], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def scores_in_text(row, metrics):
    """The scores of a row that are known of all its runs, a dict of str."""
    return {name: cell(row, name) for name in metrics if scores_of(row, name)}


def difference_cells(compared, name):
    """Paired difference, its interval, the verdict, and how many pairs there are."""
    scale, digits = (1, 4) if name in UNSCALED else (100, 1)
    mean, low, high = (
        f"{scale * x:+.{digits}f}" for x in (compared.mean, compared.low, compared.high)
    )
    over = f"{compared.items:,} items"
    over += " and seeds" if compared.has_seeds else ", of one seed"
    return mean, f"{low} to {high}", compared.verdict, over


def items_of(runs):
    """The scores of test images by run, for each metric that all runs have.

    A score is a pair of a number and its weight, as `paired_difference` takes it. If an
    image has several numbers, such as one for each reference, their mean counts.
    Metrics without a meaning are skipped.
    """
    run_items = []
    for run in runs:
        path = run["folder"] / "test_items.json"
        if not path.exists():
            return {}
        run_items.append(read_items(path))
    return {
        name: [{i: numbers(name, x) for i, x in run[name].items()} for run in run_items]
        for name in run_items[0]
        if all(name in run for run in run_items)
        and not any(name in run.get("notes", {}) for run in runs)
    }


def numbers(name, value):
    """The number of an image and its weight, from an entry of `test_items.json`."""
    if name in SUMMED:
        return value
    return statistics.mean(value) if isinstance(value, list) else value, 1


def published_of(section):
    """Names of the values that the papers report for any of the rows."""
    published = [row.published for row in section.rows]
    names = dict.fromkeys(name for values in published for name in values)
    usual = [name for name in ("parameters", *section.metrics) if name in names]
    return [*usual, *(name for name in names if name not in usual)]


def cell(row, name):
    """Text of a cell: mean and standard deviation over runs."""
    if not row.runs:
        return ""
    if name == "seeds":
        return str(len(row.runs))
    if name == "parameters":
        count = row.runs[0]["parameters"]
        return f"{count / 1e6:.2f}M" if count else ""
    if any(name in run.get("notes", {}) for run in row.runs):
        return "n/a"  # it means nothing, as a note says
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
    metrics = dict.fromkeys(name for section in sections for name in section.metrics)
    printed = dict.fromkeys(x for section in sections for x in published_of(section))
    metrics = [name for name in metrics | printed if name != "parameters"]
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
