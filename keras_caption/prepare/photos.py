"""Features of photos, extracted once and stored."""

import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from keras import ops

from keras_caption.batches.examples import (
    captions_and_words,
    in_half_precision,
    region_features,
)
from keras_caption.datasets.image_ids import number_images
from keras_caption.errors import InputError
from keras_caption.features import ClipExtractor, Extractor, resize_photo
from keras_caption.formats.keras_files import load_keras
from keras_caption.prepare.photo_records import PhotoRecord
from keras_caption.prepare.shards import Content, write_shards
from keras_caption.synthetic.scenes.builder import Scenes

EXTRACTOR = "extractor.keras"
THUMBNAIL = 160  # pixels, the longer side of the images stored for display


def prepare_photos(
    records: dict[str, list[PhotoRecord]],
    extractor: Extractor,
    folder: str | os.PathLike,
    *,
    batch_size: int = 16,
    **options: Any,
) -> dict[str, Any]:
    """Writes the features of photos as a dataset for `keras_caption.datasets.load`.

    An example has a `grid` of features, and `regions`: the annotated objects of the
    photo; the whole photo if it has none; or, if its objects are not annotated, the
    regions proposed by the extractor.

    Args:
        records: dict from split to a list of `PhotoRecord`.
        extractor: `keras_caption.features.Extractor`.
        folder: Path of the folder of the dataset, where the extractor is saved too.
        batch_size: int, number of photos whose features are extracted together.
            Defaults to 16.
        **options: `shard_size` and `strict` of `write_shards`.

    Returns:
        The manifest, see `write_shards`.

    Raises:
        InputError: As `write_shards`: if the folder was begun with other photos or
            another extractor; with `strict`, if a photo cannot be read.
    """
    with_objects = any(
        record.objects for split_records in records.values() for record in split_records
    )
    numbers, files = number_images(
        [r.image_id for split_records in records.values() for r in split_records]
    )
    numbered = {
        split: [dataclasses.replace(r, image_id=numbers[r.image_id]) for r in of_split]
        for split, of_split in records.items()
    }
    content = Content(
        numbered,
        PhotoExamples(extractor, batch_size),
        features_of(extractor, with_objects),
        source_of(records, extractor),
        files={EXTRACTOR: extractor.save, **files},
    )
    return write_shards(content, folder, **options)


def load_extractor(folder: str | os.PathLike) -> Extractor | ClipExtractor | None:
    """Loads the extractor of a prepared dataset of photos or clips.

    Args:
        folder: Path of the folder of the dataset.

    Returns:
        `keras_caption.features.Extractor` or `ClipExtractor`, or `None` if the dataset
        has none.

    Raises:
        InputError: If the file of the extractor is damaged.
    """
    path = pathlib.Path(folder) / EXTRACTOR
    if not path.exists():
        return None
    extractor = load_keras(path)
    if not isinstance(extractor, Extractor | ClipExtractor):
        raise InputError(f"{path} is a {type(extractor).__name__}, not an extractor.")
    return extractor


def features_of(extractor: Extractor, with_objects: bool) -> Any:
    """Makes the TFDS features of the examples."""
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
        image=tfds.features.Image(shape=(None, None, 3), encoding_format="jpeg"),
        **further,
    )


def source_of(records: dict[str, list[PhotoRecord]], extractor: Extractor) -> list:
    """Identifies photos, captions, boxes and extractor, as JSON."""
    listed = {
        split: [
            (r.image_id, r.name, r.captions, r.boxes and np.array(r.boxes).tolist())
            for r in split_records
        ]
        for split, split_records in records.items()
    }
    return [*identity_of(extractor), listed]


def identity_of(extractor: Extractor | ClipExtractor) -> list:
    """Identifies an extractor, as JSON: configuration, and a hash of its weights."""
    weights = hashlib.sha256()
    for weight in extractor.get_weights():
        weights.update(np.ascontiguousarray(weight))
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
        self.extract, self.propose = (
            tf.function(function, reduce_retracing=True, autograph=False)
            for function in (extractor, extractor.propose)
        )

    def __call__(self, records: list[PhotoRecord]) -> Iterator[dict | InputError]:
        """Yields the example, or the error, of each record."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for start in range(0, len(records), self.batch_size):
                batch = records[start : start + self.batch_size]
                yield from self.examples_of(batch, list(pool.map(self.read, batch)))

    def read(self, record: PhotoRecord) -> dict | InputError:
        """Makes an example without features, with the `photo` itself; or an error."""
        try:
            photo = record.read()
        except InputError as error:
            return error
        example = {
            "image_id": record.image_id,
            "image": shrink(photo, THUMBNAIL),
            "photo": np.array(resize_photo(photo, self.extractor.image_size)),
            "boxes": record.boxes,
            **captions_and_words(record.captions),
        }
        return {**example, "objects": record.objects} if record.objects else example

    def examples_of(
        self, records: list[PhotoRecord], examples: list[dict | InputError]
    ) -> list[dict | InputError]:
        """Adds features to the examples of a batch, changed in place; errors stay."""
        indices = [i for i, e in enumerate(examples) if not isinstance(e, InputError)]
        valid = [examples[i] for i in indices]
        if not valid:
            return examples
        photos = np.stack([example.pop("photo") for example in valid])
        if any(example["boxes"] is None for example in valid):
            proposed = [x.numpy() for x in self.propose(photos)]
            for example, boxes, mask in zip(valid, *proposed, strict=True):
                if example["boxes"] is None:
                    example["boxes"] = boxes[mask]
        for example in valid:
            boxes = example["boxes"] if len(example["boxes"]) else [[0, 0, 1, 1]]
            example["boxes"] = np.array(boxes, "float32")
        # Padded to a multiple of 8, so that few shapes are compiled.
        count = max(len(example["boxes"]) for example in valid)
        boxes = np.zeros((len(valid), -(-count // 8) * 8, 4), "float32")
        for row, example in zip(boxes, valid, strict=True):
            row[: len(example["boxes"])] = example["boxes"]
        features = self.extract(photos, boxes)
        for i, grid, regions in zip(
            indices, features["grid"].numpy(), features["regions"].numpy(), strict=True
        ):
            regions = regions[: len(examples[i]["boxes"])]
            try:
                examples[i]["grid"] = in_half_precision(grid, records[i].name)
                examples[i]["regions"] = in_half_precision(regions, records[i].name)
            except InputError as error:
                examples[i] = error
        return examples


def shrink(photo: np.ndarray, side: int) -> np.ndarray:
    """Reduces a photo so that its longer side has at most `side` pixels."""
    scale = min(1.0, side / max(photo.shape[:2]))
    size = [max(1, round(scale * pixels)) for pixels in photo.shape[:2]]
    small = ops.image.resize(ops.cast(photo, "float32"), size, antialias=True)
    return np.clip(np.round(small), 0, 255).astype("uint8")
