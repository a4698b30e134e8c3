import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class ListedFile:
    """The images or videos that a caption file lists.

    Attributes:
        splits: dict from split to a list of `ListedImage` or `ListedVideo`.
        skipped: List of str, a sentence for each skipped caption.
    """

    splits: dict[str, list[Any]]
    skipped: list[str] = dataclasses.field(default_factory=list)
