"""Progress of long loops: a bar on a terminal, elsewhere a line every 30 s."""

import contextlib
import datetime
import operator
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

EVERY = 30.0  # seconds from one line to the next


def progress(
    iterable: Iterable | None = None,
    desc: str = "",
    total: int | None = None,
    unit: str = "items",
    leave: bool = True,
    **options: Any,
) -> Any:
    """Shows on standard error how far a loop is.

    Args:
        iterable: Iterable whose items are passed on. If omitted, what is returned is a
            context manager, whose `update` is called after each item.
        desc: str, what is done.
        total: int, number of items. Defaults to the length of the iterable, if any.
        unit: str, what the items are called, in the plural.
        leave: bool, whether the end of the loop is shown too, however short it was.
        **options: Further options of tqdm, for the bar.

    Returns:
        `tqdm.tqdm` on a terminal, or else `ProgressLines`.
    """
    if total is None:
        total = operator.length_hint(iterable, 0) or None
    if not sys.stderr.isatty():
        done = options.get("initial", 0)
        return ProgressLines(iterable, desc, total, unit, leave, done, sys.stderr)
    from tqdm import tqdm

    return tqdm(iterable, desc or None, total, leave, unit=f" {unit}", **options)


def report(text: str) -> None:
    """Prints a line on standard error, above a progress bar if there is one."""
    from tqdm import tqdm

    tqdm.write(text, file=sys.stderr)


class ProgressLines:
    """Prints a line every 30 s: the share done and the time left.

    The time left is that of the items after the first one, in which functions are
    compiled.

    Args:
        iterable, desc, total, unit, leave: Of `progress`.
        done: int, number of items done before.
        file: Where to print to.
    """

    def __init__(
        self,
        iterable: Iterable | None,
        desc: str,
        total: int | None,
        unit: str,
        leave: bool = False,
        done: int = 0,
        file: TextIO | None = None,
    ):
        self.iterable = () if iterable is None else iterable
        self.desc = f"{desc}: " if desc else ""
        self.total = total
        self.unit = unit
        self.leave = leave
        self.done = done
        # The number of items done at first, and when.
        self.first: tuple[int, float] | None = None
        self.file = file
        self.begun = self.printed = time.monotonic()

    def __iter__(self) -> Iterator[Any]:
        for item in self.iterable:
            yield item
            self.update()
        self.close()

    def __enter__(self) -> "ProgressLines":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, count: int = 1) -> None:
        """Counts items as done, and prints a line if the last is 30 s ago."""
        self.done += count
        if self.first is None and count:
            self.first = self.done, time.monotonic()
        if time.monotonic() - self.printed >= EVERY:
            self._print()

    def close(self) -> None:
        """Prints the last line, if it is to be left."""
        if self.leave:
            self._print()

    def _print(self):
        self.printed = time.monotonic()
        print(f"{self.desc}{self._line()}", file=self.file, flush=True)

    def _line(self):
        seconds = self.printed - self.begun
        passed = f"after {datetime.timedelta(seconds=round(seconds))}"
        if not self.total:
            return f"{self.done:,} {self.unit}, {passed}"
        share = self.done / self.total
        line = f"{self.done:,}/{self.total:,} {self.unit} ({share:.0%}), {passed}"
        if not self.first or not self.first[0] < self.done < self.total:
            return line
        done, begun = self.first
        seconds = self.printed - begun
        seconds *= (self.total - self.done) / (self.done - done)
        return f"{line}, {datetime.timedelta(seconds=round(seconds))} left"


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Drops what a block prints on standard error, C++ code included."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
