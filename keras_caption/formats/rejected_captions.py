"""Captions that a dataset marks as ones that do not count."""

import collections
import os
from collections.abc import Mapping
from typing import Any

# Fields of a caption, by what they call it. VizWiz has the first two: a caption that a
# reviewer rejected, and the fixed sentence of its interface for images of poor quality.
MARKS = {
    "is_rejected": "rejected",
    "is_precanned": "precanned",
    "is_spam": "spam",
}


class RejectedCaptions:
    """Counts the captions of a file, and those that it marks as ones not to count.

    Args:
        path: Path of the file, for the message.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = path
        self.total = 0
        self.rejected: collections.Counter[str] = collections.Counter()

    def counts(self, caption: Mapping[str, Any]) -> bool:
        """Whether a caption counts.

        Args:
            caption: dict of its fields. In CSV, values are texts.
        """
        self.total += 1
        for name, word in MARKS.items():
            if str(caption.get(name)).lower() in ("true", "1"):
                self.rejected[word] += 1
                return False
        return True

    def report(self) -> None:
        """Prints how many captions do not count, if there are any."""
        if self.rejected:
            kinds = [f"{n:,} {word}" for word, n in self.rejected.items()]
            kept = self.total - self.rejected.total()
            print(
                f"{self.path}: {kept:,} of {self.total:,} captions; {', '.join(kinds)}"
            )
