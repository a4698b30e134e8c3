"""Converts third-party region features to a prepared dataset."""

import dataclasses
import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_caption.apps.prepare.matching import dim_of, match
from keras_caption.apps.prepare.shards import Content, or_error, write_shards
from keras_caption.base.errors import InputError
from keras_caption.batches.examples import (
    captions_and_words,
    in_half_precision,
    region_features,
)
from keras_caption.datasets.image_ids import number_images
from keras_caption.formats.listings import ListedImage
from keras_caption.formats.regions import RegionRecords

IMAGES_PER_PROCESS = 5000


def prepare_regions(
    listed: dict[str, list[ListedImage]],
    sources: list[RegionRecords],
    folder: str | os.PathLike,
    *,
    strict: bool = False,
    processes: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Writes region features as a dataset for `keras_caption.datasets.load`.

    Features are stored in half precision. Images are skipped and counted if their
    features are missing, damaged or not finite in half precision. So are features
    without captions, and records without a valid image id. Where a source has no boxes,
    or they are in pixels of images whose sizes are unknown, the dataset has none.

    Args:
        listed: dict from split to a list of `ListedImage`, from `list_images`.
        sources: List of readers from `open_regions`, of any formats, with the features
            of an image in one of them.
        folder: Path of the folder of the dataset.
        strict: bool, whether to raise an error instead of skipping. Defaults to
            `False`.
        processes: int, number of processes, each of which takes seconds to start.
            Defaults to one for every 5,000 images, at most the number of cores.
        **options: `shard_size` and `execute` of `write_shards`.

    Returns:
        The manifest, see `write_shards`, with an entry `features`, see `match`.

    Raises:
        InputError: See `write_shards`; also if no image has features.
    """
    images = [image for split_images in listed.values() for image in split_images]
    captioned = [image for image in images if not image.problem]
    sizes = {image.image_id: (image.size,) for image in captioned}
    has_boxes = all(source.has_boxes for source in sources)
    unsized = sum(image.size is None for image in captioned)
    if unsized and any(source.needs_sizes for source in sources):
        has_boxes = False
        print(
            f"The boxes are in pixels, and the sizes of {unsized:,} images unknown, "
            "which COCO's captions JSON has."
        )
    if not has_boxes:
        print("The dataset has no boxes: it is for models that read none, such as san.")
        for source in sources:
            source.keeps_boxes = False
    source_by_id, features = match(sizes, sources, "image", strict)
    complete = [image for image in captioned if image.image_id in source_by_id]
    dim = dim_of(
        functools.partial(features_of, image, source_by_id) for image in complete
    )
    listing = {
        split: [dataclasses.astuple(image) for image in split_images]
        for split, split_images in listed.items()
    }
    numbers, files = number_images([image.image_id for image in images])
    content = Content(
        listed,
        functools.partial(region_examples, source_by_id, dim, numbers),
        region_features(dim, np.float16, has_boxes),
        [features["sources"], listing],
        manifest={"features": features},
        files=files,
    )
    if not processes:
        enough = 1 + len(images) // IMAGES_PER_PROCESS
        processes = min(os.cpu_count() or 1, enough)
    return write_shards(content, folder, strict=strict, processes=processes, **options)


def region_examples(
    source_by_id: dict[int | str, RegionRecords],
    dim: int,
    numbers: dict[int | str, int],
    images: list[ListedImage],
) -> Iterator[dict[str, Any] | InputError]:
    """Yields the example, or the error, of each image, for `write_shards`.

    Args:
        source_by_id: dict from image id to its reader, from `open_regions`.
        dim: int, size of a feature vector.
        numbers: dict from image id to its number, see `number_images`.
        images: List of `ListedImage`.
    """
    for image in images:
        yield or_error(region_example, image, source_by_id, dim, numbers)


def region_example(
    image: ListedImage,
    source_by_id: dict[int | str, RegionRecords],
    dim: int,
    numbers: dict[int | str, int],
) -> dict[str, Any]:
    """Makes the example of an image; raises `InputError` if it has none."""
    if image.problem:
        raise InputError(image.problem)
    if image.image_id not in source_by_id:
        raise InputError(f"{image.name} has captions, but no features.")
    source = source_by_id[image.image_id]
    regions, boxes = source.read(image.image_id, image.size)
    if regions.shape[1] != dim:
        raise InputError(
            f"{image.name} has {regions.shape[1]} features a region, not "
            f"{dim} as the first image."
        )
    if boxes is None and source.keeps_boxes:
        raise InputError(f"{image.name} has no boxes, unlike the first image.")
    regions = in_half_precision(regions, f"{source.path}, {image.name}")
    return {
        "image_id": numbers[image.image_id],
        "regions": regions,
        **({} if boxes is None else {"boxes": boxes}),
        **captions_and_words(image.captions),
    }


def features_of(image: ListedImage, source_by_id: dict) -> np.ndarray:
    """Reads the features of an image, `(N, D)`."""
    return source_by_id[image.image_id].read(image.image_id, image.size)[0]
