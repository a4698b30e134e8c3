import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from keras_caption.apps.objects.suppression import Suppression
from keras_caption.base.arguments import Share, check
from keras_caption.base.errors import InputError
from keras_caption.features.photos import check_photos, pixels_of, read_photo
from keras_caption.formats.coco_categories import CATEGORIES, GREY, objects_of
from keras_caption.formats.engine_files import (
    DESCRIPTION,
    open_engine,
    read_description,
)


class LiteDetector:
    """Detects COCO's objects in photos with a network in a file of LiteRT.

    The objects equal those of the `ObjectDetector` that was exported by
    `keras_caption.serving.export_detector`. Only LiteRT and NumPy are needed: neither
    Keras nor TensorFlow is imported.

    Args:
        file: Path of the file, beside its description.
        confidence: float in [0, 1], the least score of an object.

    Raises:
        InputError: If a file is damaged or holds no detector, the package of the engine
            is missing, or the confidence is not in [0, 1].
    """

    made = ("regions", "boxes")
    dimensions = CATEGORIES
    objects_of = staticmethod(objects_of)

    def __init__(self, file: pathlib.Path, confidence: float = 0.3):
        check(Share, confidence=confidence)
        described = read_description(file)
        try:
            self.image_size = int(described["image_size"])
            self.keeps_proportions = bool(described["keeps_proportions"])
            self.max_objects = int(described["max_objects"])
            self.suppression = Suppression(**described["suppression"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{file.parent} is no detector.") from None
        self.confidence = confidence
        self.source = file
        self._run = open_engine(file)

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Finds objects in photos.

        Args:
            inputs: dict, a result of `to_pixels`.

        Returns:
            dict as of `ObjectDetector`; N is the greatest number of objects in a photo.
        """
        photos = zip(inputs["images"], inputs["extents"], strict=True)
        found = [self.find(image, extent) for image, extent in photos]
        size = max(1, *(len(own) for own, _, _ in found))
        regions = np.zeros((len(found), size, len(CATEGORIES)), "float32")
        boxes = np.zeros((len(found), size, 4), "float32")
        scores = np.zeros((len(found), size), "float32")
        boxes[:, 0] = 0, 0, 1, 1  # where there is no object
        for i, (own, of_own, categories) in enumerate(found):
            count = len(own)
            boxes[i, :count], scores[i, :count] = own, of_own
            regions[i, np.arange(count), categories] = 1
        return {"regions": regions, "boxes": boxes, "scores": scores}

    def find(
        self,
        image: Float32[np.ndarray, "image_size image_size 3"],
        extent: Float32[np.ndarray, "2"],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Finds the objects in one photo, the best first.

        Returns:
            Boxes, float32 `(N, 4)`, x1, y1, x2, y2 divided by the photo's width and
            height; scores, float32 `(N,)`; and categories, int `(N,)`.
        """
        outputs = self._run({"images": image[None]})
        boxes, scores, categories = (
            outputs[name][0] for name in ("boxes", "scores", "categories")
        )
        if np.isnan(scores).any() or np.isnan(boxes).any():
            raise InputError(f"{self.source} returns values that are no numbers (NaN).")
        good = (scores >= np.float32(self.confidence)) & (categories >= 0)
        boxes, scores, categories = boxes[good], scores[good], categories[good]
        best = self.suppression(boxes, scores, categories, self.max_objects)
        boxes, scores, categories = boxes[best], scores[best], categories[best]
        boxes = np.clip(boxes / self.image_size / np.tile(extent, 2), 0, 1)
        good = np.all(boxes[:, 2:] > boxes[:, :2], axis=1)
        return boxes[good], scores[good], categories[good]

    def read(self, path: str | os.PathLike) -> np.ndarray:
        """Reads a file, see `read_photo`."""
        return read_photo(path)

    def to_pixels(
        self, photos: Sequence[str | os.PathLike | np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Makes a batch of photos, see `ObjectDetector.to_pixels`."""
        placed = [self.place(pixels_of(photo)) for photo in check_photos(photos)]
        return {name: np.stack([x[name] for x in placed]) for name in placed[0]}

    def place(self, pixels: UInt8[np.ndarray, "height width 3"]) -> dict[str, Any]:
        """Resizes a photo into the square, as `ObjectDetector.place` does."""
        size = self.image_size
        height, width = pixels.shape[:2]
        if self.keeps_proportions:
            longest = max(height, width)
            height, width = (max(x * size // longest, 1) for x in (height, width))
        else:
            height, width = size, size
        image = np.full((size, size, 3), GREY, "float32")
        image[:height, :width] = resized(pixels, height, width)
        extents = np.array([width, height], "float32") / np.float32(size)
        return {"images": image, "extents": extents}


def write_description(
    folder: pathlib.Path,
    name: str,
    image_size: int,
    keeps_proportions: bool,
    max_objects: int,
    suppression: Suppression,
) -> None:
    """Writes what `LiteDetector` reads beside the file of a network.

    Args:
        folder: Path of the folder.
        name, image_size, keeps_proportions, max_objects, suppression: As in
            `ObjectDetector`.
    """
    described = {
        "name": name,
        "image_size": image_size,
        "keeps_proportions": keeps_proportions,
        "max_objects": max_objects,
        "suppression": dataclasses.asdict(suppression),
    }
    (folder / DESCRIPTION).write_text(json.dumps(described), encoding="utf-8")


def resized(
    pixels: UInt8[np.ndarray, "height width 3"], height: int, width: int
) -> Float32[np.ndarray, "height width 3"]:
    """Resizes a photo by bilinear interpolation without antialiasing.

    Bit for bit, the result is that of `tf.image.resize`.
    """
    top, bottom, down = between(pixels.shape[0], height)
    left, right, across = between(pixels.shape[1], width)
    rows = []
    for places in (top, bottom):
        row = pixels[places]
        first, second = row[:, left].astype("float32"), row[:, right].astype("float32")
        rows.append(first + (second - first) * across[None, :, None])
    return rows[0] + (rows[1] - rows[0]) * down[:, None, None]


def between(size: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computes where the centres of `count` pixels lie among `size` pixels.

    Returns:
        The indices of the pixels before and behind each, int `(count,)`, and the
        distance from the one before, float32 `(count,)`.
    """
    half, scale = np.float32(0.5), np.float32(size) / np.float32(count)
    places = (np.arange(count, dtype="float32") + half) * scale - half
    before = np.floor(places)
    after = np.minimum(np.ceil(places), size - 1).astype(int)
    return np.maximum(before, 0).astype(int), after, places - before
