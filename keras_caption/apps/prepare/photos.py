"""Preparation of photos: features, extracted once and stored."""

import concurrent.futures
import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from keras import tree

from keras_caption.apps.objects import ObjectDetector
from keras_caption.apps.prepare.photo_records import PhotoRecord
from keras_caption.apps.prepare.shards import Content, or_error, write_shards
from keras_caption.apps.scenes.scenes.builder import Scenes
from keras_caption.base.errors import InputError
from keras_caption.batches.examples import (
    captions_and_words,
    in_half_precision,
    region_features,
)
from keras_caption.datasets.extractors import EXTRACTOR
from keras_caption.datasets.image_ids import number_images
from keras_caption.features import ClipExtractor, Extractor, windows
from keras_caption.features.photos import resize

THUMBNAIL = 160  # pixels, the longer side of the images stored for display


def prepare_photos(
    records: dict[str, list[PhotoRecord]],
    extractor: Extractor | ObjectDetector,
    folder: str | os.PathLike,
    *,
    batch_size: int = 16,
    **options: Any,
) -> dict[str, Any]:
    """Writes the features of photos as a dataset for `keras_caption.datasets.load`.

    An example has a `grid` of features, and `regions`: the annotated objects of the
    photo; the whole photo if it has none; or, if its objects are not annotated,
    windows. With an `ObjectDetector`, `regions` are the detected objects, and there is
    no grid.

    Args:
        records: dict from split to a list of `PhotoRecord`.
        extractor: `keras_caption.features.Extractor` or `ObjectDetector`.
        folder: Path of the folder of the dataset, where the extractor is saved too.
        batch_size: int, number of photos whose features are extracted together.
            Defaults to 16.
        **options: `shard_size`, `strict` and `execute` of `write_shards`.

    Returns:
        The manifest, see `write_shards`.

    Raises:
        InputError: See `write_shards`: if the folder was begun with other photos or
            another extractor, or, with `strict`, if a photo cannot be read. Also if
            boxes are annotated and the extractor is a detector.
    """
    detects = isinstance(extractor, ObjectDetector)
    # A detector replaces annotated boxes; using both would mix two kinds of regions.
    if detects and any(r.boxes is not None for rs in records.values() for r in rs):
        raise InputError("Objects are annotated, or found by a detector, not both.")
    with_objects = any(
        record.objects for split_records in records.values() for record in split_records
    )
    numbers, files = number_images(
        [r.image_id for split_records in records.values() for r in split_records]
    )
    numbered = {
        split: [dataclasses.replace(r, image_id=numbers[r.image_id]) for r in rs]
        for split, rs in records.items()
    }
    content = Content(
        numbered,
        (ObjectExamples if detects else PhotoExamples)(extractor, batch_size),
        features_of(extractor, with_objects),
        source_of(records, extractor),
        files={EXTRACTOR: extractor.save, **files},
    )
    return write_shards(content, folder, **options)


def features_of(extractor: Extractor | ObjectDetector, with_objects: bool) -> Any:
    """Makes the TFDS features of the examples."""
    image = tfds.features.Image(shape=(None, None, 3), encoding_format="jpeg")
    if isinstance(extractor, ObjectDetector):
        return region_features(len(extractor.dimensions), np.float16, image=image)
    height, width, dim = extractor.grid_shape
    further = {}
    if with_objects:
        further["objects"] = Scenes(data_dir="").info.features["objects"]
    return region_features(
        dim,
        np.float16,
        grid=tfds.features.Tensor(
            shape=(height, width, dim), dtype=np.float16, encoding="bytes"
        ),
        image=image,
        **further,
    )


def source_of(
    records: dict[str, list[PhotoRecord]], extractor: Extractor | ObjectDetector
) -> list:
    """Identifies photos, captions, boxes and extractor, as JSON."""
    listed = {
        split: [
            (r.image_id, r.name, r.captions, r.boxes and np.array(r.boxes).tolist())
            for r in split_records
        ]
        for split, split_records in records.items()
    }
    return [*identity_of(extractor), listed]


def identity_of(extractor: Extractor | ClipExtractor | ObjectDetector) -> list:
    """Identifies an extractor, as JSON: its configuration and a hash of weights."""
    weights = hashlib.sha256()
    for weight in extractor.get_weights():
        weights.update(weight.tobytes())
    return [extractor.get_config(), weights.hexdigest()]


class PhotoExamples:
    """Makes examples of photos in batches, for `write_shards`.

    Args:
        extractor: `keras_caption.features.Extractor`.
        batch_size: int, number of photos in a batch.
    """

    def __init__(self, extractor: Extractor, batch_size: int):
        self.extractor = extractor
        self.batch_size = batch_size

    @functools.cached_property
    def extract(self) -> Any:
        """The extractor as a graph."""
        return tf.function(self.extractor, reduce_retracing=True, autograph=False)

    def __getstate__(self):  # a graph cannot be pickled
        return {name: x for name, x in vars(self).items() if name != "extract"}

    def __call__(self, records: list[PhotoRecord]) -> Iterator[dict | InputError]:
        """Yields the example, or the error, of each record."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for start in range(0, len(records), self.batch_size):
                batch = records[start : start + self.batch_size]
                read = functools.partial(or_error, self.read)
                yield from self.examples_of(batch, list(pool.map(read, batch)))

    def read(self, record: PhotoRecord) -> dict[str, Any]:
        """Makes an example with the `photo`, without features; or raises an error."""
        photo = record.read()
        example = {
            "image_id": record.image_id,
            "image": shrink(photo, THUMBNAIL),
            "photo": tree.map_structure(np.array, self.extractor.place(photo)),
            "boxes": record.boxes,
            **captions_and_words(record.captions),
        }
        return {**example, "objects": record.objects} if record.objects else example

    def examples_of(
        self, records: list[PhotoRecord], examples: list[dict | InputError]
    ) -> list[dict | InputError]:
        """Adds features to the examples of a batch in place; errors stay."""
        numbered = [
            (i, e) for i, e in enumerate(examples) if not isinstance(e, InputError)
        ]
        valid = [example for _, example in numbered]
        if not valid:
            return examples
        photos = np.stack([example.pop("photo") for example in valid])
        for example in valid:
            boxes = example["boxes"]
            if boxes is None:
                boxes = windows(self.extractor.levels)
            elif not len(boxes):
                boxes = [[0, 0, 1, 1]]
            example["boxes"] = np.array(boxes, "float32")
        # Padded to a multiple of 8, so that few shapes are compiled.
        count = max(len(example["boxes"]) for example in valid)
        boxes = np.zeros((len(valid), -(-count // 8) * 8, 4), "float32")
        for row, example in zip(boxes, valid, strict=True):
            row[: len(example["boxes"])] = example["boxes"]
        features = self.extract(photos, boxes)
        grids, vectors = features["grid"].numpy(), features["regions"].numpy()
        for (i, example), grid, regions in zip(numbered, grids, vectors, strict=True):
            regions = regions[: len(example["boxes"])]
            try:
                example["grid"] = in_half_precision(grid, records[i].name)
                example["regions"] = in_half_precision(regions, records[i].name)
            except InputError as error:
                examples[i] = error
        return examples


class ObjectExamples(PhotoExamples):
    """Makes examples of the objects that an `ObjectDetector` detects in photos."""

    def examples_of(self, records, examples):
        valid = [e for e in examples if not isinstance(e, InputError)]
        if not valid:
            return examples
        photos = [example.pop("photo") for example in valid]
        photos = tree.map_structure(lambda *parts: np.stack(parts), *photos)
        detected = self.extract(photos)
        self.extractor.refuse_nan(detected)
        regions, boxes = (detected[name].numpy() for name in ("regions", "boxes"))
        for example, features, corners in zip(valid, regions, boxes, strict=True):
            is_object = corners.any(axis=-1)  # padding has a box of zeros
            example["regions"] = features[is_object].astype("float16")
            example["boxes"] = corners[is_object]
        return examples


def shrink(photo: np.ndarray, side: int) -> np.ndarray:
    """Reduces a photo so that its longer side has at most `side` pixels."""
    scale = min(1.0, side / max(photo.shape[:2]))
    size = [max(1, round(scale * pixels)) for pixels in photo.shape[:2]]
    return np.clip(np.round(resize(photo, *size)), 0, 255).astype("uint8")
