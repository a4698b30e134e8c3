"""Joins the listings of caption files, and matches them with features."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.feature_records import FeatureRecords
from keras_caption.formats.fields import nfc
from keras_caption.formats.listings import ListedFile
from keras_caption.formats.skipped import report
from keras_caption.formats.splits import SPLITS


def join_listings(
    listings: dict[Any, ListedFile],
    noun: str,
    describe: Callable[[Any], str],
    strict: bool = False,
) -> dict[str, list]:
    """Joins the listings of several caption files, and prints the use of each.

    Args:
        listings: dict from the path of a file to its `ListedFile`.
        noun: str, name of the listed items, such as `"image"`.
        describe: Function from an item to its name in messages.
        strict: bool, whether to raise an error for a caption that is skipped. Defaults
            to `False`.

    Returns:
        dict from split to a list.

    Raises:
        InputError: If two files list the same item; see also `strict`.
    """
    joined: dict[str, list[Any]] = {split: [] for split in SPLITS}
    path_of: dict[str, Hashable] = {}
    for path, listing in listings.items():
        for split, listed in listing.splits.items():
            joined[split] += listed
            for name in map(describe, listed):
                if path_of.setdefault(name, path) != path:
                    raise InputError(
                        f"{path}: {name} is listed in {path_of[name]} too."
                    )
        print(f"{path}: {use_of(listing.splits, noun)}")
        report(listing.skipped, strict)
    return joined


def use_of(splits: Mapping[str, Sequence], noun: str) -> str:
    """Describes how many items of a file are for each split."""
    uses = [f"{len(x):,} for {split}" for split, x in splits.items() if x]
    return f"{noun}s: {', '.join(uses) or 'none'}"


def dim_of(reads: Iterable[Callable[[], np.ndarray]]) -> int:
    """The size of a feature vector, from the first record that can be read."""
    for read in reads:
        try:
            return read().shape[1]
        except InputError as error:
            last = error
    raise last


def match(
    captioned: Mapping[Any, tuple],
    sources: Sequence[FeatureRecords],
    noun: str,
    strict: bool,
) -> tuple[dict, dict[str, Any]]:
    """Finds the features of images or videos in several sources.

    If an image or video has several records, in one source or in several, the first
    readable one counts.

    Args:
        captioned: dict from id to the further arguments of `FeatureRecords.read`, a
            tuple, for images or videos with captions.
        sources: Sequence of `FeatureRecords`.
        noun: str, `"image"` or `"video"`, for messages.
        strict: bool, whether to raise an error for features without captions, for
            repeated records, and for records without a valid id.

    Returns:
        dict from id to source; and the entry `features` of a manifest: `sources`, the
        number of records in each; `with_captions` and `without_captions`, numbers of
        items; and `wrong`, a list of the problems of other records.

    Raises:
        InputError: If no item has features; see also `strict`.
    """
    problems = [problem for source in sources for problem in source.problems]
    sources_of: dict[Hashable, list[FeatureRecords]] = {}
    spelling = {nfc(id_): id_ for id_ in captioned}
    for source in sources:
        for id_ in source.ids:
            sources_of.setdefault(spelling.get(id_, id_), []).append(source)
    complete = sources_of.keys() & captioned.keys()
    if not complete:
        paths = ", ".join(str(source.path) for source in sources)
        if not captioned:
            why = "there are no captions"
        elif sources_of:
            why = (
                f"captions are of {next(iter(captioned))!r:.60} and so on, features of "
                f"{next(iter(sources_of))!r:.60} and so on"
            )
        else:
            why = problems[0].rstrip(".") if problems else "it is empty"
        raise InputError(f"None of the {noun}s with captions is in {paths}: {why}.")
    source_by_id = {}
    for id_, candidates in sources_of.items():
        source_by_id[id_], passed = choose(candidates, id_, captioned.get(id_), noun)
        problems += passed
    without_captions = sources_of.keys() - complete
    if strict and problems:
        raise InputError(problems[0])
    if strict and without_captions:
        id_ = min(without_captions, key=str)
        raise InputError(f"{source_by_id[id_].path}: {noun} {id_} has no captions.")
    return source_by_id, {
        "sources": {str(source.path): len(source) for source in sources},
        "with_captions": len(complete),
        "without_captions": len(without_captions),
        "wrong": problems,
    }


def choose(
    sources: list[FeatureRecords], id_: Hashable, arguments: tuple | None, noun: str
) -> tuple[FeatureRecords, list[str]]:
    """Chooses the source of the first readable record of an image or video.

    Args:
        sources: List of the `FeatureRecords` with records of the image or video.
        id_: int or str.
        arguments: Further arguments of `FeatureRecords.read`, or `None` for an image
            or video without captions, whose records are not read.
        noun: str, for messages.

    Returns:
        The source, and a list of sentences about the other records.
    """
    records = [
        (source, *record) for source in sources for record in source.records[nfc(id_)]
    ]
    if len(records) == 1:
        return sources[0], []
    faults = []
    for number, (source, place, where) in enumerate(records):
        try:
            if arguments is not None:
                source.read_checked(place, where, *arguments)
        except InputError as error:
            faults.append(str(error))
            continue
        return source, faults + [
            f"{other}: {noun} {id_} comes twice, and is read from {where}."
            for _, _, other in records[number + 1 :]
        ]
    # The fault of the first record is reported when the image or video is read.
    return sources[0], faults[1:]
