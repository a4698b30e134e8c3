"""Which images or videos caption files list, and which of them have features."""

from collections.abc import Callable, Collection
from typing import Any

from keras_caption.errors import InputError
from keras_caption.formats.karpathy import SPLITS


def join_listings(
    listings: dict[Any, dict[str, list]], describe: Callable[[Any], str]
) -> dict[str, list]:
    """Joins what several caption files list.

    Args:
        listings: dict from the path of a file to a dict from split to a list of
            images or videos.
        describe: Function of one of them, which returns what messages call it.

    Returns:
        dict from split to a list.

    Raises:
        InputError: If two files list the same.
    """
    joined, path_of = {split: [] for split in SPLITS}, {}
    for path, listing in listings.items():
        for split, listed in listing.items():
            joined[split] += listed
            for name in map(describe, listed):
                if path_of.setdefault(name, path) != path:
                    raise InputError(
                        f"{path}: {name} is listed in {path_of[name]} too."
                    )
    return joined


def match(
    captioned: Collection, sources: list[Any], noun: str, strict: bool
) -> tuple[dict, dict[str, Any]]:
    """Finds the features of images or videos in several sources.

    Args:
        captioned: Collection of the ids of those that have captions.
        sources: List of readers of features, each with a `path`; `ids`, a list; and
            `problems`, a list of sentences about records that have no id.
        noun: str, `"image"` or `"video"`, for messages.
        strict: bool, whether to raise an error for features without captions, and for
            problems.

    Returns:
        dict from id to source; and the entry `features` of a manifest: the numbers of
        records in each of the `sources`, of records `with_captions` and
        `without_captions`, and a list of the problems of the other records, `wrong`.

    Raises:
        InputError: If none has features; or see `strict`.
    """
    source_by_id, problems = {}, []
    for source in sources:
        problems += source.problems
        for id_ in source.ids:
            first = source_by_id.setdefault(id_, source)
            if first is not source:
                problems.append(f"{source.path}: {noun} {id_} is in {first.path} too.")
    complete = source_by_id.keys() & captioned
    if not complete:
        raise InputError(
            f"None of the {noun}s with captions is in "
            f"{', '.join(str(source.path) for source in sources)}."
        )
    without_captions = source_by_id.keys() - complete
    if strict and problems:
        raise InputError(problems[0])
    if strict and without_captions:
        id_ = min(without_captions)
        raise InputError(f"{source_by_id[id_].path}: {noun} {id_} has no captions.")
    return source_by_id, {
        "sources": {str(s.path): len(s.ids) + len(s.problems) for s in sources},
        "with_captions": len(complete),
        "without_captions": len(without_captions),
        "wrong": problems,
    }
