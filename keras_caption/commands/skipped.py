import collections
import csv
import itertools
import os
import pathlib
from typing import Self

from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError
from keras_caption.base.progress import report
from keras_caption.formats.faults import kind_of

EXAMPLES = 3  # printed examples of a kind
KINDS = 10  # kinds with printed examples
HEADER = ["skipped", "reason"]


class Skipped:
    """Records that a command skips: prints examples, counts all, and lists all.

    The first records of each kind are printed at once. If there are more, `close`
    prints the number of each kind, and writes the list.

    Attributes:
        records: list of pairs of a name and a reason.

    Args:
        path: Path of the list, a CSV file, or `None` for no list.

    Raises:
        InputError: If the path is another file.
    """

    def __init__(self, path: str | os.PathLike | None = None):
        self.path = None if path is None else pathlib.Path(path)
        self.records: list[tuple[str, str]] = []
        self._first: dict[str, str] = {}  # by kind
        self._counts: collections.Counter[str] = collections.Counter()
        self._printed = 0
        if self.path:
            self._is_ours()

    @classmethod
    def beside(cls, output: str | os.PathLike | None) -> Self:
        """Lists records in `OUTPUT.skipped.csv`, if the command writes an output."""
        return cls(output and f"{output}.skipped.csv")

    def add(self, name: str, reason: str) -> None:
        """Adds a skipped record.

        Args:
            name: str, name of the file or record.
            reason: str, a sentence, which may contain the name.
        """
        self.records.append((name, reason))
        kind = kind_of(reason, name)
        text = reason if name in reason else f"{name}: {reason}"
        self._counts[kind] += 1
        self._first.setdefault(kind, text)
        if self._counts[kind] <= EXAMPLES and kind in self._shown():
            report(f"skipped: {text}")
            self._printed += 1

    def close(self) -> None:
        """Prints the counts and writes the list, unless all has been printed."""
        total = len(self.records)
        is_printed = total == self._printed
        if not is_printed:
            report(f"skipped: {total:,} in all")
            for kind in self._shown():
                report(f"{self._counts[kind]:10,} as: {self._first[kind]}")
                total -= self._counts[kind]
            if total:
                report(f"{total:10,} for other reasons")
        if self.path and not is_printed:
            self._write()
        elif self.path and self._is_ours():
            self.path.unlink()  # the list of an earlier command

    def _shown(self):
        return itertools.islice(self._first, KINDS)

    def _write(self):
        from keras_caption.apps.report.results import to_text

        with (
            replacing(self.path) as partial,
            open(partial, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(HEADER)
            writer.writerows([to_text(x) for x in row] for row in self.records)
        report(f"All are listed in {self.path}")

    def _is_ours(self):
        """Whether the list exists; raises `InputError` if the path is another file."""
        if not os.path.lexists(self.path):
            return False
        if self.path.is_file():
            with open(self.path, "rb") as file:
                if file.readline().rstrip() == ",".join(HEADER).encode():
                    return True
        raise InputError(
            f"{self.path} is needed for the list of skipped records, but is another "
            "file: move it."
        )
