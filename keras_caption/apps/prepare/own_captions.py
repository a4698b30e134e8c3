"""Photos and splits, listed by a user's own captions: rows, or text files."""

import collections
import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Iterable, Sequence

from keras_caption.apps.prepare.matching import join_listings
from keras_caption.base.errors import InputError
from keras_caption.formats.caption_rows import read_caption_rows
from keras_caption.formats.caption_texts import read_caption_texts
from keras_caption.formats.fields import nfc
from keras_caption.formats.folders import list_files
from keras_caption.formats.img2dataset import is_img2dataset, read_img2dataset
from keras_caption.formats.listings import CaptionedPhoto, ListedFile, ListedImage
from keras_caption.formats.splits import SPLITS, given_splits, splits_in, unclear
from keras_caption.formats.suffixes import suffix_of, unpacked_suffix

SUFFIXES = (".csv", ".tsv", ".txt", ".token", ".jsonl", ".parquet")  # of rows
METADATA = "metadata"  # name, before the suffix, of rows beside the photos


def is_own(path: pathlib.Path) -> bool:
    """Whether a path is that of a file with rows, or a folder of text files."""
    return path.is_dir() or unpacked_suffix(path) in SUFFIXES


def metadata_files(folder: str | os.PathLike) -> list[pathlib.Path]:
    """Lists the files of rows that stand beside photos, as in Hugging Face's folders.

    Args:
        folder: Path of the folder of photos.
    """
    names = [METADATA + suffix for suffix in SUFFIXES]
    files = list_files(pathlib.Path(folder), tuple(names), below=True)
    return [path for path in files if path.name.lower() in names]


def list_own_photos(
    paths: Sequence[str | os.PathLike],
    folder: pathlib.Path,
    photos: Sequence[pathlib.PurePath],
    strict: bool = False,
) -> dict[str, list[ListedImage]]:
    """Lists the photos of a user's own captions by split.

    A photo's split is the value of the column `split`; without that column, the split
    given for the file or folder; otherwise a word of its name, see `splits_in`, such as
    in `captions_val.csv`, or of the folder of `metadata.jsonl`. If no file has a split,
    existing photos are split by `split_by_hash`. Prints the use of each file.

    Args:
        paths: Sequence of paths of files with rows, see `read_caption_rows`, of
            img2dataset's Parquet files, see `read_img2dataset`, and of folders of text
            files, see `read_caption_texts`; with a split, `"train=PATH"`, `"val=PATH"`
            or `"test=PATH"`. Names in a file below the folder of photos may be relative
            to its own folder.
        folder: `pathlib.Path` of the folder of photos.
        photos: List of the paths of all photos, relative to their folder.
        strict: bool, whether to raise an error for a caption without words, or a row
            that is cut, instead of skipping it. Defaults to `False`.

    Returns:
        dict from split to a list of `ListedImage`, numbered in the order of the files.
        A text file that is blank, or that has no photo or several, has a `problem`.

    Raises:
        InputError: If a file does not follow its format, a photo is listed twice,
            a file has another format of captions, or the split of a file is unclear.
    """
    read, skipped = {}, {}
    for path, split in given_splits(paths).items():
        listed, skipped[path] = read_own(path, split, photos)
        read[path] = beside(path, listed, folder, photos)
    splits = {path: {photo.split for photo in listed} for path, listed in read.items()}
    for path, named in splits.items():
        for other in splits:
            if None in named and splits[other] - {None}:
                raise unclear(path, f"has no split, unlike {other}")
    existing = {nfc(photo.name) for photo in photos}
    hashed = split_by_hash(
        photo.file_name
        for listed in read.values()
        for photo in listed
        if photo.split is None
        and not photo.problem
        and nfc(pathlib.PurePath(photo.file_name).name) in existing
    )
    listings, number = {}, 0
    for path, listed in read.items():
        listings[path] = ListedFile({split: [] for split in SPLITS}, skipped[path])
        for photo in listed:
            split = photo.split or hashed.get(photo.file_name, "train")
            listings[path].splits[split].append(
                ListedImage(
                    number, photo.file_name, photo.captions, problem=photo.problem
                )
            )
            number += 1
    return join_listings(listings, "photo", lambda i: f"photo {i.file_name}", strict)


def read_own(
    path: pathlib.Path, split: str | None, photos: Sequence[pathlib.PurePath]
) -> tuple[list[CaptionedPhoto], list[str]]:
    """Reads a file or a folder of text files, see `list_own_photos`.

    Args:
        path: `pathlib.Path`.
        split: str, the split given for the file or folder, or `None`.
        photos: See `list_own_photos`.

    Returns:
        A list of `CaptionedPhoto`, and a list of sentences about captions that are
        skipped.
    """
    if not is_own(path):
        raise InputError(
            f"{path} cannot be combined with files of rows and folders of text files."
        )
    is_parquet = suffix_of(path) == ".parquet"
    if path.is_dir() or (is_parquet and is_img2dataset(path)):
        read = read_caption_texts if path.is_dir() else read_img2dataset
        texts, skipped = read(path)
        captioned = find_photos_of_texts(path, texts, photos)
    else:
        captioned, skipped = read_caption_rows(path)
    if any(photo.split for photo in captioned):
        if split:
            raise InputError(
                f"{path} cannot be for {split} only: it has a column split."
            )
        return captioned, skipped
    is_metadata = path.stem.lower() == METADATA
    name = path.resolve().parent.name if is_metadata else path.name
    named = [split] if split else splits_in(name)
    if len(named) > 1:
        raise unclear(path, f"has {' and '.join(named)} in its name")
    split = named[0] if named else None
    return [dataclasses.replace(photo, split=split) for photo in captioned], skipped


def beside(
    path: pathlib.Path,
    listed: list[CaptionedPhoto],
    folder: pathlib.Path,
    photos: Sequence[pathlib.PurePath],
) -> list[CaptionedPhoto]:
    """Makes names that are relative to a file of captions relative to the photos.

    Args:
        path: `pathlib.Path` of the file or folder of captions.
        listed: List of `CaptionedPhoto`.
        folder, photos: See `list_own_photos`.
    """
    inner = path.resolve().parent
    if path.is_dir() or not inner.is_relative_to(folder.resolve()):
        return listed
    inner = inner.relative_to(folder.resolve())
    known = {nfc(str(photo)) for photo in photos}

    def place(photo):
        name = str(inner / photo.file_name)
        is_beside = nfc(name) in known
        return dataclasses.replace(photo, file_name=name) if is_beside else photo

    return [place(photo) for photo in listed]


def find_photos_of_texts(
    folder: pathlib.Path,
    texts: list[CaptionedPhoto],
    photos: Sequence[pathlib.PurePath],
) -> list[CaptionedPhoto]:
    """Finds the photo of every text file.

    The photo has the path of the text file, except for the suffix; the text file
    `dog.jpg.txt` is that of `dog.jpg`. If there is none, it
    is the photo of the same name in any folder, provided that only one photo and only
    one text file have this name.

    Args:
        folder: `pathlib.Path` of the text files or of img2dataset's file, for messages.
        texts: List of `CaptionedPhoto`, as `read_caption_texts` returns it.
        photos: See `list_own_photos`.

    Returns:
        List of `CaptionedPhoto` with suffixes; those whose photo is missing or
        ambiguous have a `problem`.
    """
    whole, by_path, by_name = (collections.defaultdict(list) for _ in range(3))
    for photo in photos:
        whole[nfc(str(photo))].append(photo)
        by_path[nfc(str(photo.with_suffix("")))].append(photo)
        by_name[nfc(photo.stem)].append(photo)
    uses = collections.Counter(nfc(pathlib.PurePath(t.file_name).name) for t in texts)
    matched = []
    for text in texts:
        name = nfc(pathlib.PurePath(text.file_name).name)
        path = nfc(text.file_name)
        candidates = whole[path] or by_path[path]
        if not candidates and uses[name] == 1:
            candidates = by_name[name]
        if len(candidates) == 1:
            found = dataclasses.replace(text, file_name=str(candidates[0]))
        else:
            where = f"{folder}: {text.file_name}"
            if folder.is_dir():
                where = str(folder / f"{text.file_name}.txt")
            problem = f"{where} has {len(candidates)} photos."
            found = dataclasses.replace(text, problem=text.problem or problem)
        matched.append(found)
    return matched


def split_by_hash(names: Iterable[str]) -> dict[str, str]:
    """Splits photos by the order of the SHA-256 of their names.

    The first tenth is for test and the next for validation, each at least one photo;
    the rest is for training.

    Args:
        names: Iterable of str.

    Returns:
        dict from name to split.
    """
    order = sorted(
        {*names},
        key=lambda name: hashlib.sha256(name.encode(errors="surrogateescape")).digest(),
    )
    tenth = max(1, len(order) // 10)
    splits = ["test"] * tenth + ["val"] * tenth
    splits += ["train"] * (len(order) - len(splits))
    return dict(zip(order, splits, strict=False))
