"""Features of photos, found once and kept."""

import concurrent.futures
import hashlib
import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from keras import ops

from keras_caption.data.examples import (
    captions_and_words,
    in_half_precision,
    region_features,
)
from keras_caption.data.scenes.builder import Scenes
from keras_caption.data.shards import write_shards
from keras_caption.errors import InputError
from keras_caption.features import Extractor, resize_photo
from keras_caption.formats.keras_files import load_keras

EXTRACTOR = "extractor.keras"
THUMBNAIL = 160  # pixels, of the longer side of the pictures kept to look at


def prepare(records, extractor, folder, *, batch_size=16, **options):
    """Writes the features of photos as a dataset for `keras_caption.data.load`.

    An example has a `grid` of features, and `regions`: a photo's objects, the whole
    photo where there are none in it, or, where nobody has looked for objects, what
    the extractor proposes.

    Args:
        records: dict from split to a list of `PhotoRecord`.
        extractor: `keras_caption.features.Extractor`.
        folder: Where the dataset goes, the extractor with it.
        batch_size: Number of photos whose features are found at once.
        **options: `shard_size` and `strict` of `write_shards`.

    Returns:
        The manifest, see `write_shards`.

    Raises:
        InputError: As `write_shards`, if a photo cannot be read, or the folder was
            begun with other photos or another extractor.
    """
    with_objects = any(r.objects for of_split in records.values() for r in of_split)
    examples = PhotoExamples(extractor, batch_size)
    return write_shards(
        records,
        examples,
        features_of(extractor, with_objects),
        folder,
        source_of(records, extractor),
        more={EXTRACTOR: extractor.save},
        **options,
    )


def load_extractor(folder):
    """Loads what made the features of a prepared dataset of photos.

    Args:
        folder: Of the dataset.

    Returns:
        `keras_caption.features.Extractor`, or `None` if the dataset has none.

    Raises:
        InputError: If its file is damaged.
    """
    path = pathlib.Path(folder) / EXTRACTOR
    if not path.exists():
        return None
    extractor = load_keras(path)
    if not isinstance(extractor, Extractor):
        raise InputError(f"{path} is a {type(extractor).__name__}, not an extractor.")
    return extractor


def features_of(extractor, with_objects):
    """TFDS features of the examples."""
    height, width, dim = extractor.grid_shape
    more = {}
    if with_objects:
        more["objects"] = Scenes(data_dir="").info.features["objects"]
    return region_features(
        dim,
        np.float16,
        grid=tfds.features.Tensor(
            shape=(height, width, dim), dtype=np.float16, encoding="bytes"
        ),
        image=tfds.features.Image(shape=(None, None, 3), encoding_format="jpeg"),
        **more,
    )


def source_of(records, extractor):
    """What differs where photos, captions, boxes or the extractor do, for JSON."""
    weights = hashlib.sha256()
    for weight in extractor.get_weights():
        weights.update(np.ascontiguousarray(weight))
    listed = {
        split: [
            (r.image_id, r.name, r.captions, r.boxes and np.array(r.boxes).tolist())
            for r in of_split
        ]
        for split, of_split in records.items()
    }
    return [extractor.get_config(), weights.hexdigest(), listed]


class PhotoExamples:
    """Makes examples of photos, a batch at a time: for `write_shards`."""

    def __init__(self, extractor, batch_size):
        self.extractor = extractor
        self.batch_size = batch_size
        self.extract, self.propose = (
            tf.function(function, reduce_retracing=True, autograph=False)
            for function in (extractor, extractor.propose)
        )

    def __call__(self, records):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for start in range(0, len(records), self.batch_size):
                batch = records[start : start + self.batch_size]
                yield from self.examples_of(batch, list(pool.map(self.read, batch)))

    def read(self, record):
        """A photo's example so far, with the photo itself; or what is wrong with it."""
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

    def examples_of(self, records, found):
        """Examples of records that have been read, or what is wrong with them."""
        read = [i for i, e in enumerate(found) if not isinstance(e, InputError)]
        good = [found[i] for i in read]
        if not good:
            return found
        photos = np.stack([example.pop("photo") for example in good])
        if any(example["boxes"] is None for example in good):
            proposed = [x.numpy() for x in self.propose(photos)]
            for example, boxes, mask in zip(good, *proposed, strict=True):
                if example["boxes"] is None:
                    example["boxes"] = boxes[mask]
        for example in good:
            boxes = example["boxes"] if len(example["boxes"]) else [[0, 0, 1, 1]]
            example["boxes"] = np.array(boxes, "float32")
        # In batches of one size, of few numbers of boxes: for as few graphs.
        most = max(len(example["boxes"]) for example in good)
        boxes = np.zeros((len(good), -(-most // 8) * 8, 4), "float32")
        for row, example in zip(boxes, good, strict=True):
            row[: len(example["boxes"])] = example["boxes"]
        made = self.extract(photos, boxes)
        for i, grid, regions in zip(
            read, made["grid"].numpy(), made["regions"].numpy(), strict=True
        ):
            regions = regions[: len(found[i]["boxes"])]
            try:
                found[i]["grid"] = in_half_precision(grid, records[i].name)
                found[i]["regions"] = in_half_precision(regions, records[i].name)
            except InputError as error:
                found[i] = error
        return found


def shrink(photo, side):
    """A photo whose longer side is `side` pixels at most."""
    scale = min(1.0, side / max(photo.shape[:2]))
    size = [max(1, round(scale * pixels)) for pixels in photo.shape[:2]]
    small = ops.image.resize(ops.cast(photo, "float32"), size, antialias=True)
    return np.clip(np.round(small), 0, 255).astype("uint8")
