"""Photos with captions and boxes, listed by caption files."""

import collections
import contextlib
import dataclasses
import functools
import os
import pathlib
from typing import Any, NoReturn

import numpy as np
import tensorflow_datasets as tfds

from keras_caption.apps.prepare.listing import list_images
from keras_caption.apps.prepare.matching import use_of
from keras_caption.apps.prepare.own_captions import (
    is_own,
    list_own_photos,
    metadata_files,
)
from keras_caption.base.errors import InputError
from keras_caption.datasets.coco import merge
from keras_caption.features import find_photos, read_photo
from keras_caption.formats.coco import read_instances, read_sizes
from keras_caption.formats.coco_qa import read_coco_qa
from keras_caption.formats.fields import image_id_of, nfc
from keras_caption.formats.folders import describe_passed_over, existing_path
from keras_caption.formats.listings import ListedImage
from keras_caption.formats.splits import SPLITS, given_split
from keras_caption.formats.vqa import find_vqa, read_vqa


@dataclasses.dataclass(frozen=True)
class PhotoRecord:
    """A photo to extract features from.

    Attributes:
        image_id: int or str.
        name: str, name of the photo in messages.
        read: Function that returns the pixels, uint8 `(height, width, 3)`.
        captions: List of str.
        boxes: List of boxes, x1, y1, x2, y2 divided by the image's width and height,
            or `None` if objects are not annotated.
        objects: List of a dict for each box, with `kind` and `colour` as in `Scenes`,
            or `None` if unknown.
    """

    image_id: int | str
    name: str
    read: collections.abc.Callable
    captions: list[str]
    boxes: list | None = None
    objects: list[dict[str, str]] | None = None


def records_of_scenes(builder: Any) -> dict[str, list[PhotoRecord]]:
    """Lists the records of a prepared `Scenes`; images are decoded when read.

    Args:
        builder: Prepared TFDS builder.

    Returns:
        dict from split to a list of `PhotoRecord`.
    """
    skip = {"image": tfds.decode.SkipDecoding()}
    names = builder.info.features["objects"]
    return {
        split: [
            PhotoRecord(
                int(example["image_id"]),
                f"scene {example['image_id']}",
                functools.partial(read_photo, example["image"]),
                [text.decode() for text in example["captions"]],
                example["boxes"].tolist(),
                [
                    {
                        "kind": names["kind"].int2str(kind),
                        "colour": names["colour"].int2str(colour),
                    }
                    for kind, colour in zip(
                        example["objects"]["kind"],
                        example["objects"]["colour"],
                        strict=True,
                    )
                ],
            )
            for example in builder.as_dataset(
                split=split, decoders=skip, shuffle_files=False
            ).as_numpy_iterator()
        ]
        for split in SPLITS
    }


def records_of_photos(
    folder: str | os.PathLike,
    captions: collections.abc.Sequence[str | os.PathLike] = (),
    instances: collections.abc.Sequence[str | os.PathLike] = (),
    strict: bool = False,
) -> dict[str, list[PhotoRecord]]:
    """Lists the records of a folder of photos by split.

    Args:
        folder: Path of a folder with photos, at any depth.
        captions: Sequence of paths of caption files, see `list_images`, or of files
            of rows and folders of text files, see `list_own_photos`. With the latter,
            photos without captions are listed for training, to be skipped and counted.
            Defaults to none: all photos are for test, without captions.
        instances: Sequence of paths of COCO's instances files, whose boxes become
            regions. Defaults to none. Boxes are relative to the photo as `read_photo`
            returns it, rotated by its EXIF orientation.
        strict: bool, whether to raise an error for a caption without words, or a row
            that is cut, instead of skipping it. Defaults to `False`.

    Returns:
        dict from split to a list of `PhotoRecord`. `read` of a record raises an
        `InputError` if the photo is missing, ambiguous, unreadable or rotated relative
        to its boxes, or if the files have no captions of the image.

    Raises:
        InputError: If a file does not follow its format, two images have the same
            photo, no photo of a user's own captions is in the folder, or such captions
            are combined with instances, which name images by ids.
    """
    folder = existing_path(folder)
    paths = list_photos(folder)
    names = [path.relative_to(folder) for path in paths]
    has_own = any(is_own(given_split(path)[0]) for path in captions)
    if has_own and instances:
        raise InputError(
            f"{instances[0]} names images by ids, which {captions[0]} does not have."
        )
    objects: dict[int | str, list[Any]] = {}
    sizes: dict[int | str, tuple[int, int] | None] = {}
    for path in instances:
        merge(objects, read_instances(path)[1], path, "objects")
        sizes |= read_sizes(path)
    boxes = {
        image_id: [box for _, box in image_objects]
        for image_id, image_objects in objects.items()
    }
    if has_own:
        listed = list_own_photos(captions, pathlib.Path(folder), names, strict)
    elif captions:
        listed = list_images(captions, strict)
    else:
        listed = {
            "test": [ListedImage(i, str(name), []) for i, name in enumerate(names)]
        }
        print(f"{folder}: {use_of(listed, 'photo')}")
        for path in metadata_files(folder):
            print(f"{path} may hold captions: --captions {path} reads them")
    photos = find_listed(folder, paths, listed)
    if has_own:
        add_uncaptioned(listed, photos, paths)

    def record(image):
        path, problem = photos[image.image_id]
        read = functools.partial(read_as_annotated, path, sizes.get(image.image_id))
        if problem or image.problem:
            read = functools.partial(refuse, problem or image.problem)
        return PhotoRecord(
            image.image_id,
            str(path),
            read,
            image.captions,
            boxes.get(image.image_id),
        )

    return {split: list(map(record, images)) for split, images in listed.items()}


def records_of_questions(
    folder: str | os.PathLike,
    questions: collections.abc.Sequence[str | os.PathLike],
) -> dict[str, list[PhotoRecord]]:
    """Lists the records of the photos that questions are about, without captions.

    The photo of an image is the one whose name is the image's id: `42.jpg`,
    `000000000042.jpg` or `COCO_val2014_000000000042.jpg`, anywhere in the folder.

    Args:
        folder: Path of a folder with photos, at any depth.
        questions: Sequence of paths of folders with the files of VQA, see
            `keras_caption.formats.vqa.find_vqa`, and of JSON files of COCO-QA, in which
            each question has a split.

    Returns:
        dict from split to a list of `PhotoRecord`, as `records_of_photos`.

    Raises:
        InputError: If a file does not follow its format, a question has no split, or
            the questions about an image have several splits.
    """
    paths = collections.defaultdict(list)
    for path in list_photos(folder):
        with contextlib.suppress(ValueError):
            paths[nfc(image_id_of(path.stem))].append(path)
    splits: dict[int | str, str] = {}
    records: dict[str, list[PhotoRecord]] = {split: [] for split in SPLITS}
    for source, split, image_id in _asked(questions):
        if image_id not in splits:
            splits[image_id] = split
            photos = paths[nfc(image_id)]
            records[split].append(_question_record(folder, image_id, photos))
        elif splits[image_id] != split:
            raise InputError(
                f"{source}: image {image_id} is for {split}, and for "
                f"{splits[image_id]} by another question."
            )
    print(f"{folder}: {use_of(records, 'photo')}")
    return records


def list_photos(folder: str | os.PathLike) -> list[pathlib.Path]:
    """Lists the photos in a folder, and prints which other files it has."""
    passed_over: collections.Counter[str] = collections.Counter()
    paths = find_photos(folder, passed_over)
    if passed_over:
        print(f"{folder}: passed over: {describe_passed_over(passed_over)}")
    return paths


def _asked(questions):
    """Yields path, split and image id of every question."""
    for source in map(pathlib.Path, questions):
        if source.is_dir():
            for split, files in find_vqa(source).items():
                for question in read_vqa(*files):
                    yield files[0], split, question.image_id
        else:
            for question in read_coco_qa(source):
                if question.split is None:
                    raise InputError(
                        f"{source}: question {question.question_id} says no split."
                    )
                yield source, question.split, question.image_id


def _question_record(folder, image_id, paths):
    if len(paths) == 1:
        return PhotoRecord(
            image_id, str(paths[0]), functools.partial(read_photo, paths[0]), []
        )
    problem = f"{folder} has {len(paths)} photos that are called {image_id}."
    return PhotoRecord(
        image_id, f"image {image_id}", functools.partial(refuse, problem), []
    )


def add_uncaptioned(
    listed: dict[str, list[ListedImage]],
    photos: dict[int | str, tuple[pathlib.Path, str | None]],
    paths: list[pathlib.Path],
) -> None:
    """Adds photos that no caption file lists to the training split, to be skipped.

    Args:
        listed: dict from split to a list of `ListedImage`, changed in place.
        photos: dict from image id to path and problem, see `find_listed`, changed in
            place.
        paths: List of the paths of all photos.

    Raises:
        InputError: If no photo has captions.
    """
    existing, used = {*paths}, {path for path, _ in photos.values()}
    problems = {
        image.problem or (None if path in existing else f"there is no file {path}")
        for images in listed.values()
        for image in images
        for path in [photos[image.image_id][0]]
    }
    if None not in problems:
        problem = min(filter(None, problems))
        raise InputError(f"No photo has captions: {problem.rstrip('.')}.")
    for number, path in enumerate((p for p in paths if p not in used), len(photos)):
        problem = f"{path} has no captions."
        listed["train"].append(ListedImage(number, str(path), [], problem=problem))
        photos[number] = path, None


def find_listed(
    folder: str | os.PathLike,
    paths: list[pathlib.Path],
    listed: dict[str, list[ListedImage]],
) -> dict[int | str, tuple[pathlib.Path, str | None]]:
    """Finds the photo of every listed image.

    The photo is at the path in the caption file, relative to the folder. If there is
    none, it is the photo of the same name anywhere in the folder, provided that only
    one photo and only one listed image have this name.

    Args:
        folder: Path of the folder of photos.
        paths: List of the paths of all photos in it.
        listed: dict from split to a list of `ListedImage`.

    Returns:
        dict from image id to a path and a problem, a sentence or `None`.

    Raises:
        InputError: If two images have the same photo.
    """
    folder = pathlib.Path(folder)
    images = [image for split_images in listed.values() for image in split_images]
    by_name = collections.defaultdict(list)
    for path in paths:
        by_name[nfc(path.name)].append(path)
    known, spelling = {*paths}, {nfc(str(path)): path for path in paths}
    uses = collections.Counter(nfc(pathlib.PurePath(i.file_name).name) for i in images)
    photos: dict[int | str, tuple[pathlib.Path, str | None]] = {}
    owners: dict[pathlib.Path, int | str] = {}
    for image in images:
        path, problem = folder / image.file_name, None
        if path not in known:
            path = spelling.get(nfc(str(path)), path)
        name = nfc(path.name)
        candidates = by_name[name]
        if path not in known and not path.is_file() and candidates:
            if len(candidates) == uses[name] == 1:
                [path] = candidates
            else:
                problem = (
                    f"{path} does not exist, and {name} is the name of "
                    f"{len(candidates):,} photos and {uses[name]:,} images."
                )
        owner = owners.setdefault(path, image.image_id)
        if not problem and owner != image.image_id:
            raise InputError(
                f"{path} is the photo of images {owner} and {image.image_id}."
            )
        photos[image.image_id] = path, problem
    return photos


def read_as_annotated(
    path: str | os.PathLike, size: tuple[int, int] | None
) -> np.ndarray:
    """Reads a photo and compares its orientation with that of its annotations.

    Args:
        path: Path of the photo.
        size: Width and height in pixels of the annotated image, or `None` if unknown.

    Returns:
        uint8 `(height, width, 3)`.

    Raises:
        InputError: See `read_photo`; also if the photo is portrait and the annotated
            image landscape, or the reverse: the boxes then belong to another photo, or
            to this photo before its EXIF rotation.
    """
    photo = read_photo(path)
    height, width = photo.shape[:2]
    if size and (width - height) * (size[0] - size[1]) < 0:
        raise InputError(
            f"{path} has {width} x {height} pixels, but its boxes are of an image of "
            f"{size[0]} x {size[1]}."
        )
    return photo


def refuse(problem: str) -> NoReturn:
    """Raises an `InputError`; the `read` of a record with a problem."""
    raise InputError(problem)
