import collections
import csv
import os
import pathlib
import re
import sys

from keras_caption.atomic import replacing
from keras_caption.commands.file_names import to_text
from keras_caption.errors import InputError

EXAMPLES = 3  # printed of a kind
KINDS = 10  # of which examples are printed
HEADER = ["skipped", "reason"]
# Words that differ within a kind: numbers, paths, file names, quoted names.
SPECIFIC = re.compile(r"\S*[\d/\\'\"]\S*|\S+\.\w\S*")


class Skipped:
    """What a command skips: prints some of it, and counts and lists all.

    The first of each kind are printed as they come. If there are more, `close` prints
    how many there are of each kind, and lists all in a file, `FILE.skipped.csv` beside
    the command's file, or `skipped.csv` in its folder.

    Attributes:
        records: list of pairs of a name and a reason.

    Args:
        output: Path of the file or folder that the command writes, or `None` for no
            list.

    Raises:
        InputError: If something else stands where the list goes.
    """

    def __init__(self, output: str | os.PathLike | None = None):
        self.records = []
        self.kinds = collections.defaultdict(list)  # of texts, by kind
        self.path = None
        if output is not None:
            folder = pathlib.Path(output)
            beside = folder.with_name(f"{folder.name}.skipped.csv")
            self.path = folder / "skipped.csv" if folder.is_dir() else beside
            self._is_ours()

    def add(self, name: str, reason: str) -> None:
        """Adds what is skipped.

        Args:
            name: str, of a file or a record.
            reason: str, a sentence, which may have the name.
        """
        self.records.append((name, reason))
        kind = SPECIFIC.sub("", reason.replace(name, "") if name else reason)
        texts = self.kinds[kind]
        texts.append(reason if name in reason else f"{name}: {reason}")
        if len(texts) <= EXAMPLES and kind in list(self.kinds)[:KINDS]:
            _report(f"skipped: {texts[-1]}")

    def close(self) -> None:
        """Prints the counts and writes the list, unless all has been printed."""
        groups = list(self.kinds.values())
        hidden = len(self.records) - sum(len(g[:EXAMPLES]) for g in groups[:KINDS])
        if hidden:
            _report(f"skipped: {len(self.records):,} in all")
            for texts in groups[:KINDS]:
                _report(f"{len(texts):10,} as: {texts[0]}")
            if rest := sum(map(len, groups[KINDS:])):
                _report(f"{rest:10,} for other reasons")
        if self.path is None:
            return
        if hidden:
            with (
                replacing(self.path) as partial,
                open(partial, "w", newline="", encoding="utf-8") as file,
            ):
                writer = csv.writer(file)
                writer.writerow(HEADER)
                writer.writerows([to_text(x) for x in row] for row in self.records)
            _report(f"All are listed in {self.path}")
        elif self._is_ours():
            self.path.unlink()  # of the command before

    def _is_ours(self):
        """Whether there is a list; raises `InputError` if there is something else."""
        if not os.path.lexists(self.path):
            return False
        if self.path.is_file():
            with open(self.path, "rb") as file:
                if file.readline().rstrip() == ",".join(HEADER).encode():
                    return True
        raise InputError(
            f"{self.path}, which would list what is skipped, is another file: name "
            "another --output."
        )


def _report(text):
    """Prints on standard error, above a progress bar."""
    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)
