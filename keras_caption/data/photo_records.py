"""Photos with their captions and boxes, listed by the files of COCO and Karpathy."""

import collections
import dataclasses
import functools
import pathlib

import tensorflow_datasets as tfds

from keras_caption.data.coco import merge
from keras_caption.data.listing import list_images
from keras_caption.errors import InputError
from keras_caption.features import find_photos, read_photo
from keras_caption.formats.coco import read_instances, read_sizes
from keras_caption.formats.karpathy import SPLITS
from keras_caption.formats.listed_image import ListedImage


@dataclasses.dataclass(frozen=True)
class PhotoRecord:
    """A photo that features are to be made of.

    Attributes:
        image_id: int.
        name: What to call it in messages.
        read: Function that returns its pixels, uint8 `(height, width, 3)`.
        captions: List of str.
        boxes: List of boxes, x1, y1, x2, y2 divided by the image's width and height,
            or `None` where nobody has marked any.
        objects: What is in the boxes, where the data set tells: as of `Scenes`.
    """

    image_id: int
    name: str
    read: collections.abc.Callable
    captions: list
    boxes: list | None = None
    objects: list | None = None


def records_of_scenes(builder):
    """Records of a prepared `Scenes`, its pictures undecoded.

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


def records_of_photos(folder, captions=(), instances=()):
    """Records of a folder of photos.

    Args:
        folder: Holds the photos, at any depth.
        captions: Paths of caption files, see `list_images`. Without any, all photos
            are for the test split, and have no captions.
        instances: Paths of COCO's instances files, whose boxes become regions. They
            lie within the photo as `read_photo` turns it by its EXIF orientation.

    Returns:
        dict from split to a list of `PhotoRecord`. `read` of a record raises an
        `InputError` if its photo is missing, ambiguous or unreadable, or lies on its
        side in comparison with its boxes, or the image has no captions in the files.

    Raises:
        InputError: If a file is wrong, or two images have the same photo.
    """
    found = find_photos(folder)
    names = [str(path.relative_to(folder)) for path in found]
    objects, sizes = {}, {}
    for path in instances:
        merge(objects, read_instances(path)[1], path, "objects")
        sizes |= read_sizes(path)
    boxes = {
        image_id: [box for _, box in of_image] for image_id, of_image in objects.items()
    }
    if captions:
        listed = list_images(captions)
    else:
        listed = {"test": [ListedImage(i, name, []) for i, name in enumerate(names)]}
    photos = find_listed(folder, found, listed)

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


def find_listed(folder, found, listed):
    """Finds the photo of every listed image.

    It is at the path that the caption file gives, within the folder; or, if there is
    none, anywhere in the folder, as long as only one photo and only one listed image
    have its name.

    Args:
        folder: The folder of photos.
        found: Paths of all photos in it.
        listed: dict from split to a list of `ListedImage`.

    Returns:
        dict from image id to a path and what is wrong with it, a sentence or `None`.

    Raises:
        InputError: If two images have the same photo.
    """
    folder = pathlib.Path(folder)
    images = [image for of_split in listed.values() for image in of_split]
    by_name = collections.defaultdict(list)
    for path in found:
        by_name[path.name].append(path)
    known = set(found)
    uses = collections.Counter(pathlib.PurePath(i.file_name).name for i in images)
    photos, owners = {}, {}
    for image in images:
        path, problem = folder / image.file_name, None
        candidates = by_name[path.name]
        if path not in known and not path.is_file() and candidates:
            if len(candidates) == uses[path.name] == 1:
                [path] = candidates
            else:
                problem = (
                    f"{path} does not exist, and {path.name} is the name of "
                    f"{len(candidates):,} photos and {uses[path.name]:,} images."
                )
        owner = owners.setdefault(path, image.image_id)
        if not problem and owner != image.image_id:
            raise InputError(
                f"{path} is the photo of images {owner} and {image.image_id}."
            )
        photos[image.image_id] = path, problem
    return photos


def read_as_annotated(path, size):
    """Reads a photo whose boxes are of an image of a size, or of no known one.

    Raises:
        InputError: As `read_photo`, and if one is upright and the other is not: the
            boxes are of another photo, or of this one before its EXIF orientation
            turned it.
    """
    photo = read_photo(path)
    height, width = photo.shape[:2]
    if size and (width - height) * (size[0] - size[1]) < 0:
        raise InputError(
            f"{path} has {width} x {height} pixels, but its boxes are of an image of "
            f"{size[0]} x {size[1]}."
        )
    return photo


def refuse(problem):
    raise InputError(problem)
