import functools
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_caption.apps.objects.cells import DEVIATION, MEAN, cells_of
from keras_caption.apps.objects.nanodet import NanoDet, decode_nanodet
from keras_caption.apps.objects.object_detector import Detected, Images, ObjectDetector
from keras_caption.apps.objects.suppression import Suppression
from keras_caption.apps.objects.yolox import Yolox, decode_yolox
from keras_caption.base.errors import InputError
from keras_caption.formats.coco_categories import COCO_IDS
from keras_caption.formats.detector_files import open_detector

CLASSES = len(COCO_IDS)
DETR_CLASSES = COCO_IDS[-1] + 2  # COCO's ids from 0 on, and no object
FREE_SIZE = 640  # height and width of images where a file reads any


class Layout(NamedTuple):
    """What a file of a detector reads and returns.

    Attributes:
        decode: Function of the detector and the outputs of an image to boxes in pixels
            and scores of COCO's categories.
        keeps_proportions: Of `ObjectDetector`.
        blue_first: bool, whether colours are blue, green, red.
        mean, deviation: Of the pixels that the network reads, red, green and blue.
        strides: tuple of int, pixels of the cells of its grids.
        overlap: float, intersection over union of two objects of a category, at most;
            1 where the network itself removes them.
    """

    decode: Callable
    keeps_proportions: bool
    blue_first: bool
    mean: tuple[float, ...] | float
    deviation: tuple[float, ...] | float
    strides: tuple[int, ...] = ()
    overlap: float = 1.0


class EngineDetector(ObjectDetector):
    """Detects objects by a file of ONNX Runtime or LiteRT, in one of four formats.

    | format | output | pixels |
    |---|---|---|
    | YOLOX | `(1, cells, 85)` | BGR, 0 to 255, in the left upper corner of a square |
    | NanoDet-Plus | `(1, cells, 112)` | BGR of a filled square, normalized |
    | DETR | `(1, N, 92)` and `(1, N, 4)` | RGB of a filled square, normalized |
    | RT-DETR | `(1, N, 80)` and `(1, N, 4)` | RGB of a filled square, 0 to 1 |

    The first two are what the `export_onnx.py` of their code writes, the others are
    `logits` and `pred_boxes`. Classes are COCO's. The format follows from the output.

    The engine runs outside of graphs: a model is neither saved nor exported with such a
    detector.

    Args:
        path: Path of an `.onnx` or `.tflite` file.
        confidence, max_objects, name: Of `ObjectDetector`.

    Raises:
        InputError: If the file is damaged, or has another input or output.
    """

    in_graphs = False

    def __init__(
        self,
        path: str | os.PathLike,
        confidence: float = 0.3,
        max_objects: int = 36,
        name: str = "engine_detector",
        **kwargs: Any,
    ):
        path = pathlib.Path(path)
        file = open_detector(path)
        size = file.image_size or FREE_SIZE
        shape = (1, 3, size, size) if file.channels_first else (1, size, size, 3)
        layout = layout_of(path, file.run(np.zeros(shape, "float32")), size)
        super().__init__(
            size,
            layout.keeps_proportions,
            confidence,
            max_objects,
            name,
            **kwargs,
        )
        self.source, self.file, self.layout = path, file, layout
        self.cells = cells_of(size, layout.strides) if layout.strides else None
        self.suppression = Suppression(layout.overlap, by_category=True)
        self.trainable = False

    def detect(self, images: Images) -> Detected:
        found = [self._detect_one(image) for image in ops.convert_to_numpy(images)]
        return tuple(
            ops.convert_to_tensor(np.stack(x)) for x in zip(*found, strict=True)
        )

    def _detect_one(self, image):
        """The best boxes, scores and categories of an image, padded with zeros."""
        boxes, scores = self.layout.decode(self, self._run(image))
        categories = scores.argmax(axis=1)
        scores = scores.max(axis=1)
        good = scores >= self.confidence
        found = boxes[good] / self.image_size, scores[good], categories[good]
        best = self.suppression(*found, self.max_objects)
        padded = []
        for x, dtype in zip(found, ("float32", "float32", "int32"), strict=True):
            whole = np.zeros((self.max_objects, *x.shape[1:]), dtype)
            whole[: len(best)] = x[best]
            padded.append(whole)
        return padded

    def _run(self, image):
        """The outputs of the network for an image, RGB from 0 to 255."""
        image = (image - self.layout.mean) / self.layout.deviation
        if self.layout.blue_first:
            image = image[..., ::-1]
        if self.file.channels_first:
            image = image.transpose(2, 0, 1)
        return self.file.run(np.ascontiguousarray(image[None], "float32"))

    def get_config(self) -> dict[str, Any]:
        raise InputError(
            f"{self.source} is a file of another engine, which neither models nor "
            "datasets keep: a saved model takes it as --detector."
        )


def decode_cells(decode: Callable, detector: EngineDetector, outputs: list[np.ndarray]):
    """Boxes in pixels, and scores of categories, of the cells of grids."""
    assert detector.cells is not None  # the layout has strides
    decoded = decode(ops.convert_to_tensor(outputs[0]), *detector.cells)
    return tuple(ops.convert_to_numpy(x[0]) for x in decoded)


def decode_detr(detector: EngineDetector, outputs: list[np.ndarray]):
    """Boxes in pixels, and scores of categories, of DETR's queries."""
    logits, boxes = logits_and_boxes(outputs)
    centres, halves = boxes[:, :2], boxes[:, 2:] / 2
    corners = np.concatenate([centres - halves, centres + halves], axis=1)
    if logits.shape[-1] == CLASSES:
        scores = ops.convert_to_numpy(ops.sigmoid(logits))
    else:
        scores = ops.convert_to_numpy(ops.softmax(logits))[:, list(COCO_IDS)]
    return corners * detector.image_size, scores


def logits_and_boxes(outputs: list[np.ndarray]):
    """The logits `(N, C)` and boxes `(N, 4)` of DETR, or `None` of other networks."""
    logits, boxes = (
        next((x[0] for x in outputs if x.ndim == 3 and x.shape[-1] in sizes), None)
        for sizes in ((CLASSES, DETR_CLASSES), (4,))
    )
    if logits is None or boxes is None or len(logits) != len(boxes):
        return None
    return logits, boxes


YOLOX = Layout(
    *(functools.partial(decode_cells, decode_yolox), True, True, 0.0, 1.0),
    *(Yolox.strides_of_grids, Yolox.overlap),
)
NANODET = Layout(
    *(functools.partial(decode_cells, decode_nanodet), False, True, MEAN, DEVIATION),
    *(NanoDet.strides_of_grids, NanoDet.overlap),
)
DETR = Layout(decode_detr, False, False, MEAN, DEVIATION)
RT_DETR = Layout(decode_detr, False, False, 0.0, 255.0)
GRIDS = {Yolox.values: YOLOX, NanoDet.values: NANODET}  # by the values of a cell


def layout_of(path: pathlib.Path, outputs: list[np.ndarray], size: int) -> Layout:
    """The layout of a detector, by its outputs for one image.

    Args:
        path: `pathlib.Path` of the file, for messages.
        outputs: List of arrays.
        size: int, height and width of the image.

    Raises:
        InputError: If no layout has such outputs.
    """
    for values, layout in GRIDS.items():
        cells = len(cells_of(size, layout.strides)[0])
        if [x.shape for x in outputs] == [(1, cells, values)]:
            return layout
    if found := logits_and_boxes(outputs):
        return RT_DETR if found[0].shape[-1] == CLASSES else DETR
    received = " and ".join(str(x.shape) for x in outputs)
    raise InputError(
        f"{path} returns {received} of {size} x {size} pixels, which is no output of "
        "YOLOX, NanoDet-Plus, DETR or RT-DETR of COCO's classes."
    )
