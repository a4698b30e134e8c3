import dataclasses
import hashlib
import os
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import tensorflow_datasets as tfds

from keras_caption.batches.examples import captions_and_words, region_features
from keras_caption.datasets.building import build
from keras_caption.datasets.coco import CocoFiles, read_annotations
from keras_caption.errors import InputError
from keras_caption.formats.coco import FLAT_OFFICIAL_BOXES
from keras_caption.formats.splits import SPLITS
from keras_caption.objects.categories import CATEGORIES

NUM_CATEGORIES = len(CATEGORIES)


@dataclasses.dataclass(kw_only=True)
class CocoObjectsConfig(tfds.core.BuilderConfig):
    """Source of the annotations: `files`, or TFDS if `files` is `None`."""

    files: CocoFiles | None = None


class CocoObjects(tfds.core.GeneratorBasedBuilder):
    """COCO captions of annotated objects, without images or features to download.

    Each annotated object (crowds are skipped) is a region. Its feature is the one-hot
    vector of its category; its position and size are only in `boxes`. An image without
    objects has one null region, a vector of zeros whose box is the whole image; the
    metadata of the dataset counts these images.
    """

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = [CocoObjectsConfig(name="tfds")]

    @classmethod
    def from_folder(cls, folder: str | os.PathLike, **kwargs: Any) -> Self:
        """Makes the builder of a folder of annotation files.

        Args:
            folder: Path of the folder, see `CocoFiles.find`.
            **kwargs: Further arguments of the builder, such as `data_dir`.

        Raises:
            InputError: If files are missing.
        """
        files = CocoFiles.find(folder)
        stamp = hashlib.sha256()
        for path in (*files.captions, *files.instances, files.split):
            status = path.stat()
            stamp.update(
                f"{path.resolve()} {status.st_size} {status.st_mtime_ns}".encode()
            )
        name = f"files_{stamp.hexdigest()[:16]}"
        return cls(config=CocoObjectsConfig(name=name, files=files), **kwargs)

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            description="COCO captions of annotated objects.",
            features=region_features(NUM_CATEGORIES),
            metadata=tfds.core.MetadataDict(images_without_objects=0),
        )

    def _split_generators(self, dl_manager):
        files = self.builder_config.files
        records = records_of_tfds() if files is None else _records_of_files(files)
        return {split: self._generate_examples(records[split]) for split in SPLITS}

    def _generate_examples(self, records):
        for image_id, captions, objects in records:
            if not objects:
                self.info.metadata["images_without_objects"] += 1
            yield image_id, object_example(image_id, captions, objects)


def object_example(
    image_id: int, captions: list[str], objects: list[tuple[int, tuple]]
) -> dict[str, Any]:
    """Makes an example of `CocoObjects`.

    Args:
        image_id: int.
        captions: List of str.
        objects: List of (category number, box), the category from 0 to 79 in the
            order of COCO's category ids, the box as x1, y1, x2, y2 divided by the
            image's width and height.

    Returns:
        dict of the features of `CocoObjects`, in NumPy.
    """
    numbers = [number for number, _ in objects]
    regions = np.eye(NUM_CATEGORIES, dtype="float32")[numbers]
    boxes = np.array([box for _, box in objects], "float32")
    if not objects:
        regions = np.zeros((1, NUM_CATEGORIES), "float32")
        boxes = np.array([[0, 0, 1, 1]], "float32")
    return {
        "image_id": image_id,
        "regions": regions,
        "boxes": boxes,
        **captions_and_words(captions),
    }


def _records_of_files(files):
    categories, records = read_annotations(files)
    if len(categories) > NUM_CATEGORIES:
        raise InputError(
            f"{files.instances[0]} has {len(categories)} categories; at most "
            f"{NUM_CATEGORIES} are expected, as COCO has."
        )
    number = {category: i for i, category in enumerate(categories)}
    return {
        split: [
            (image_id, captions, [(number[category], box) for category, box in objects])
            for image_id, captions, objects in split_records
        ]
        for split, split_records in records.items()
    }


def read_tfds() -> dict[str, Iterator[dict]]:
    """Reads TFDS's `coco_captions` lazily, without decoding the images.

    Returns:
        dict from split to an iterator over examples; `restval` is part of `train`.
    """
    builder = build(lambda: tfds.builder("coco_captions"))
    skip = {"image": tfds.decode.SkipDecoding()}
    names = {"train": "train+restval", "val": "val", "test": "test"}
    return {
        split: builder.as_dataset(split=name, decoders=skip).as_numpy_iterator()
        for split, name in names.items()
    }


def records_of_tfds() -> dict[str, Iterator[tuple[int, list, list]]]:
    """Reads the records of `read_annotations` from TFDS."""
    return {
        split: map(_tfds_record, examples) for split, examples in read_tfds().items()
    }


def captions_of_tfds(example: dict) -> list[str]:
    """Returns the captions of an example of `read_tfds`."""
    return [text.decode().strip() for text in example["captions"]["text"]]


def _tfds_record(example):
    annotated = example["objects"]
    objects = []
    for number, crowd, id_, (y1, x1, y2, x2) in zip(
        annotated["label"],
        annotated["is_crowd"],
        annotated["id"],
        annotated["bbox"],
        strict=True,
    ):
        if not crowd and id_ not in FLAT_OFFICIAL_BOXES:
            objects.append((int(number), (x1, y1, x2, y2)))
    return int(example["image/id"]), captions_of_tfds(example), objects
