"""Photos with their captions and boxes, listed by the files of COCO and Karpathy."""

import collections
import dataclasses
import functools
import pathlib

import tensorflow_datasets as tfds

from keras_caption.data.coco import SPLITS, read_instances
from keras_caption.data.listing import ListedImage, list_images
from keras_caption.features import find_photos, read_photo


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
        instances: Paths of COCO's instances files, whose boxes become regions.

    Returns:
        dict from split to a list of `PhotoRecord`.

    Raises:
        InputError: If a file is wrong.
    """
    found = find_photos(folder)
    names = [str(path.relative_to(folder)) for path in found]
    paths = {path.name: path for path in found} | dict(zip(names, found, strict=True))
    boxes = {}
    for path in instances:
        for image_id, objects in read_instances(path)[1].items():
            boxes[image_id] = [box for _, box in objects]

    def record(image):
        path = paths.get(image.file_name, pathlib.Path(folder) / image.file_name)
        read = functools.partial(read_photo, path)
        of_image = boxes.get(image.image_id)
        return PhotoRecord(image.image_id, str(path), read, image.captions, of_image)

    if captions:
        listed = list_images(captions)
    else:
        listed = {"test": [ListedImage(i, name, []) for i, name in enumerate(names)]}
    return {split: list(map(record, images)) for split, images in listed.items()}
