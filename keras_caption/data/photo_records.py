"""Photos with their captions and boxes, listed by the files of COCO and Karpathy."""

import collections
import dataclasses
import functools
import pathlib

import tensorflow_datasets as tfds

from keras_caption.data.coco import SPLITS, read_captions, read_instances, read_json
from keras_caption.errors import InputError
from keras_caption.features import find_photos, read_photo
from keras_caption.text import split_words


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
        captions: Paths of JSON files: one in Karpathy's schema, which has the split;
            or COCO's, of which those with `val` in their name are for validation
            (every other image) and test, the rest for training. Without any, all
            photos are for the test split, and have no captions.
        instances: Paths of COCO's instances files, whose boxes become regions.

    Returns:
        dict from split to a list of `PhotoRecord`.

    Raises:
        InputError: If a file is wrong.
    """
    paths = {path.name: path for path in find_photos(folder)}
    boxes = {}
    for path in instances:
        for image_id, objects in read_instances(path)[1].items():
            boxes[image_id] = [box for _, box in objects]

    def record(image_id, file_name, texts):
        path = paths.get(file_name, pathlib.Path(folder) / file_name)
        read = functools.partial(read_photo, path)
        return PhotoRecord(image_id, str(path), read, texts, boxes.get(image_id))

    records = {split: [] for split in SPLITS}
    if not captions:
        for number, name in enumerate(paths):
            records["test"].append(record(number, name, []))
    for path in captions:
        content = read_json(path, "images")
        if content["images"] and "sentences" in content["images"][0]:
            for image_id, split, name, texts in _read_karpathy(path, content):
                records[split].append(record(image_id, name, texts))
            continue
        of_file = read_captions(path)[0]
        for number, image in enumerate(content["images"]):
            split = "train"
            if "val" in pathlib.Path(path).name:
                split = ("val", "test")[number % 2]
            texts = of_file[image["id"]]
            records[split].append(record(image["id"], image["file_name"], texts))
    return records


def _read_karpathy(path, content):
    """Image id, split, file name and captions of every image of Karpathy's JSON."""
    for number, image in enumerate(content["images"]):
        split = {"restval": "train"}.get(image.get("split"), image.get("split"))
        image_id = image.get("cocoid", image.get("imgid"))
        texts = [s.get("raw", "").strip() for s in image.get("sentences", ())]
        problems = {
            "an `imgid` or a `cocoid`": image_id is not None,
            "a `split` of train, restval, val or test": split in SPLITS,
            "a `filename`": "filename" in image,
            "`sentences`, none of them empty": texts and all(map(split_words, texts)),
        }
        for needed, there in problems.items():
            if not there:
                raise InputError(f"{path}: image number {number} needs {needed}.")
        yield image_id, split, image["filename"], texts
