"""Region features out of other people's files, as a dataset of ours."""

import dataclasses
import os
import pathlib

import numpy as np

from keras_caption.data.examples import (
    captions_and_words,
    in_half_precision,
    region_features,
)
from keras_caption.data.shards import write_shards
from keras_caption.errors import InputError

WORTH_A_PROCESS = 5000  # images


@dataclasses.dataclass(frozen=True)
class RegionRecord:
    """An image whose features are to be looked up.

    Attributes:
        name: What to call it in messages.
        image: `ListedImage`.
    """

    name: str
    image: object


def prepare_regions(
    listed, sources, folder, *, strict=False, processes=None, **options
):
    """Writes region features as a dataset for `keras_caption.data.load`.

    Features are kept in half precision. An image whose features are missing or
    damaged, or do not fit into half precision, is skipped and counted; so are features
    without captions, and records of no known image.

    Args:
        listed: What `list_images` returned.
        sources: List of what `open_regions` returned, of the same kind or not; an
            image's features are in one of them.
        folder: Where the dataset goes.
        strict: Whether to raise what would be skipped.
        processes: Number of processes that work on it. As many as the machine has
            cores if omitted, but one only for a few thousand images: a process
            takes some seconds to begin.
        **options: `shard_size` of `write_shards`.

    Returns:
        The manifest, see `write_shards`, with `features`: the numbers of records in
        each of the `sources`, of those `with_captions` and `without_captions`, and a
        list of what is `wrong` with the rest.

    Raises:
        InputError: As `write_shards`; and if no image has features.
    """
    where, wrong = {}, []
    for source in sources:
        wrong += source.problems
        for image_id in source.ids:
            if image_id in where:
                other = where[image_id].path
                wrong.append(f"{source.path}: image {image_id} is in {other} too.")
            else:
                where[image_id] = source
    images = [image for of_split in listed.values() for image in of_split]
    captioned = [image for image in images if not image.problem]
    known = [image for image in captioned if image.image_id in where]
    if not known:
        raise InputError("None of the images with captions has features.")
    without_captions = where.keys() - {image.image_id for image in captioned}
    if strict and wrong:
        raise InputError(wrong[0])
    if strict and without_captions:
        image_id = min(without_captions)
        raise InputError(
            f"{where[image_id].path}: image {image_id} has features, but no captions."
        )
    records = {
        split: [RegionRecord(f"image {image.image_id}", image) for image in of_split]
        for split, of_split in listed.items()
    }

    dim = _dim(known, where)
    counts = {str(s.path): len(s.ids) + len(s.problems) for s in sources}
    listing = {
        split: [dataclasses.astuple(image) for image in of_split]
        for split, of_split in listed.items()
    }
    return write_shards(
        records,
        RegionExamples(where, dim),
        region_features(dim, np.float16),
        pathlib.Path(folder),
        [counts, listing],
        strict=strict,
        processes=processes or min(os.cpu_count(), 1 + len(images) // WORTH_A_PROCESS),
        about={
            "features": {
                "sources": counts,
                "with_captions": len(known),
                "without_captions": len(without_captions),
                "wrong": wrong,
            }
        },
        **options,
    )


class RegionExamples:
    """Makes examples of `RegionRecord`s: for `write_shards`.

    Args:
        where: dict from image id to what `open_regions` returned.
        dim: Size of a feature vector.
    """

    def __init__(self, where, dim):
        self.where = where
        self.dim = dim

    def __call__(self, records):
        return map(self.example_of, records)

    def example_of(self, record):
        """An image's example; or what is wrong with it."""
        image = record.image
        try:
            if image.problem:
                raise InputError(image.problem)
            if image.image_id not in self.where:
                raise InputError(f"{record.name} has captions, but no features.")
            source = self.where[image.image_id]
            regions, boxes = source.read(image.image_id, image.size)
            if regions.shape[1] != self.dim:
                raise InputError(
                    f"{record.name} has {regions.shape[1]} features a region, not "
                    f"{self.dim} as the first image."
                )
            regions = in_half_precision(regions, f"{source.path}, {record.name}")
        except InputError as error:
            return error
        return {
            "image_id": image.image_id,
            "regions": regions,
            "boxes": boxes,
            **captions_and_words(image.captions),
        }


def _dim(images, where):
    """Size of a feature vector: that of the first image that can be read."""
    for image in images:
        try:
            return where[image.image_id].read(image.image_id, image.size)[0].shape[1]
        except InputError as error:
            last = error
    raise last
