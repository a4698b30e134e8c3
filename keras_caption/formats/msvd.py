"""MSVD's lists: descriptions of its videos, as text or as its corpus in CSV."""

import pathlib
from collections.abc import Iterator

from keras_caption.base.errors import InputError
from keras_caption.formats.csv_rows import csv_rows, delimiter_of
from keras_caption.formats.faults import check_file
from keras_caption.formats.fields import check_photo_name
from keras_caption.formats.listings import ListedFile, captions_of, listed_video
from keras_caption.formats.splits import splits_in, unclear
from keras_caption.formats.suffixes import unpacked_suffix
from keras_caption.formats.text_lines import lines, numbered_lines

COLUMNS = ("videoid", "start", "end", "language", "description")
LANGUAGE = "english"
# The official split of the 1,970 videos with English descriptions, in the order of ids.
VIDEOS = {"train": 1200, "val": 100, "test": 670}


def is_msvd(path: pathlib.Path) -> bool:
    """Returns whether a path is that of a list of text, as other videos' are not."""
    return unpacked_suffix(path) in (".txt", ".csv")


def list_msvd_videos(path: pathlib.Path, split: str | None = None) -> ListedFile:
    """Lists the videos of MSVD's `AllVideoDescriptions.txt` or `video_corpus.csv`.

    Args:
        path: `pathlib.Path` of the file. In `.txt`, a line is the name of a clip, a
            space and a description; lines that begin with `#` are comments. `.csv` has
            the columns VideoID, Start, End, Language and Description; descriptions in
            English are read, of the clip `VideoID_Start_End`.
        split: str, `"train"`, `"val"` or `"test"`. Defaults to the split in the name of
            the file, see `splits_in`, and to the official one if the file has all 1,970
            videos.

    Returns:
        `ListedFile`.

    Raises:
        InputError: If the file does not follow the format, or its split is unclear.
    """
    check_file(path)
    pairs = csv_pairs(path) if unpacked_suffix(path) == ".csv" else text_pairs(path)
    captions: dict[str, list[str]] = {}
    for where, name, text in pairs:
        try:
            captions.setdefault(check_photo_name(name), []).append(text)
        except ValueError as error:
            raise InputError(f"{where}: {error}: {name!r:.60}.") from None
    if not captions:
        raise InputError(f"{path} has no descriptions of videos.")
    skipped: list[str] = []
    names = sorted(captions)
    videos = [
        listed_video(path, name, captions_of(path, name, captions[name], skipped))
        for name in names
    ]
    named = [split] if split else splits_in(path.name)
    if len(named) == 1:
        return ListedFile({named[0]: videos}, skipped)
    if len(videos) != sum(VIDEOS.values()):
        raise unclear(path, f"has {len(videos):,} videos, not all 1,970, and no split")
    splits, start = {}, 0
    for name, count in VIDEOS.items():
        splits[name] = videos[start : start + count]
        start += count
    return ListedFile(splits, skipped)


def text_pairs(path: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Yields the position of each line, for messages, a name and a description."""
    for where, line in numbered_lines(path):
        if line.startswith("#"):
            continue
        name, space, text = line.strip().partition(" ")
        if not space:
            raise InputError(
                f"{where} should be the name of a clip, a space and a description, as "
                "in MSVD's AllVideoDescriptions.txt."
            )
        yield where, name, text


def csv_pairs(path: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """Yields the position of each row in English, a name and a description."""
    rows = csv_rows(path, delimiter_of(lines(path), COLUMNS))
    _, header = next(rows, (None, []))
    header = [name.lower() for name in header]
    if not {*COLUMNS} <= {*header}:
        raise InputError(
            f"{path} should have MSVD's columns VideoID, Start, End, Language and "
            f"Description, and has {', '.join(header)[:200]!r}."
        )
    for where, cells in rows:
        if len(cells) != len(header):
            raise InputError(
                f"{where} has {len(cells)} cells, and the header {len(header)}."
            )
        row = dict(zip(header, cells, strict=True))
        if row["language"].lower() == LANGUAGE:
            name = f"{row['videoid']}_{row['start']}_{row['end']}"
            yield where, name, row["description"]
