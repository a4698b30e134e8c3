from collections.abc import Iterable, Mapping, Sequence

from keras_caption.errors import missing_extras


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], labels: int = 1
) -> str:
    """Formats a table as Markdown.

    Args:
        columns: Sequence of str, heads of the columns.
        rows: Iterable of sequences of str, the cells.
        labels: int, number of columns at the left that are text; the others are
            numbers, and aligned to the right.

    Returns:
        str, without an end of the last line.
    """
    with missing_extras():
        import tabulate

    numbers = len(columns) - labels
    return tabulate.tabulate(
        [list(row) for row in rows],
        list(columns),
        tablefmt="pipe",
        colalign=["left"] * labels + ["right"] * numbers,
        disable_numparse=True,
    )


def text_of_shares(shares: Mapping[str, float]) -> str:
    """Formats shares in %, on one line: `"precision 85.2 %, recall 58.1 %"`."""
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())
