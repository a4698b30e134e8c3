r"""Writes the tables in docs/results from the CSV files beside them.

    python experiments/results.py

replaces the text between `<!-- table FILE.csv -->` and `<!-- end of table -->`. A
marker may name the columns to show, as `<!-- table FILE.csv: row, CIDEr-D -->`; a link
to the file with all columns then follows the table.
"""

import argparse
import csv
import pathlib
import re

from keras_caption.evaluation import markdown_table

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "results"
TABLE = re.compile(
    r"(<!-- table (?P<file>[\w.]+)(?:: (?P<columns>.*?))? -->\n)"
    r".*?(?=<!-- end of table -->)",
    re.DOTALL,
)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    for path in sorted(FOLDER.glob("*.md")):
        path.write_text(with_tables(path.read_text()))


def with_tables(text):
    """The text of a page, with tables made from their CSV files."""
    return TABLE.sub(lambda match: match[1] + table_of(match), text)


def table_of(match):
    """The table after a marker, without empty rows.

    Raises:
        ValueError: If the CSV file has no such column.
    """
    with open(FOLDER / match["file"], newline="") as file:
        header, *rows = csv.reader(file)
    columns = header
    if match["columns"]:  # a table of all columns may repeat a name
        columns = match["columns"].split(", ")
        rows = [[row[header.index(name)] for name in columns] for row in rows]
    table = markdown_table(
        ["" if name == "row" else name for name in columns],
        [row for row in rows if any(row[1:])],
    )
    if columns != header:
        table += f"\n\n[All columns]({match['file']})"
    return f"\n{table}\n\n"


if __name__ == "__main__":
    main()
