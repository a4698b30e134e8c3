"""Detectors in files of ONNX and LiteRT that other programs wrote."""

import pathlib
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_caption.errors import InputError, missing_extras
from keras_caption.formats.faults import check_file, reading
from keras_caption.formats.suffixes import suffix_of

SUFFIXES = (".onnx", ".tflite")


class DetectorFile(NamedTuple):
    """A network of one image.

    Attributes:
        run: Function from an image, float32 of the network's shape, to its outputs, a
            list of float32 arrays. Threads may share it.
        channels_first: bool, whether an image is `(1, 3, height, width)`, and not
            `(1, height, width, 3)`.
        image_size: int, height and width in pixels, or `None` if any size is read.
    """

    run: Callable[[np.ndarray], list[np.ndarray]]
    channels_first: bool
    image_size: int | None


def open_detector(path: pathlib.Path) -> DetectorFile:
    """Opens a file, by its suffix.

    Raises:
        InputError: If it is damaged, reads anything but one square image, or the
            package of its engine is missing.
    """
    check_file(path)
    opener = open_onnx if suffix_of(path) == ".onnx" else open_litert
    with missing_extras(), reading(path):
        run, shape = opener(str(path))
        sizes = [x if isinstance(x, int) and x > 0 else None for x in shape]
        channels = [i for i in (1, 3) if len(sizes) == 4 and sizes[i] == 3]
        if len(channels) != 1 or sizes[0] not in (None, 1):
            raise InputError(
                f"{path} should read one image, (1, 3, height, width) or (1, height, "
                f"width, 3). Received: {tuple(shape)}"
            )
        height, width = sizes[2:] if channels == [1] else sizes[1:3]
        if height != width:
            raise InputError(
                f"{path} reads images of {height} x {width} pixels; only squares are "
                "made."
            )
    lock = threading.Lock()

    def run_alone(image):
        with lock, reading(path):
            return [np.asarray(x, "float32") for x in run(image)]

    return DetectorFile(run_alone, channels == [1], height)


def open_onnx(path: str) -> tuple[Callable, list]:
    """Opens a file of ONNX; returns a function of an image, and the image's shape."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [image] = session.get_inputs()
    return lambda pixels: session.run(None, {image.name: pixels}), image.shape


def open_litert(path: str) -> tuple[Callable, list]:
    """Opens a file of LiteRT; returns a function of an image, and the image's shape."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    [image] = interpreter.get_input_details()
    outputs = interpreter.get_output_details()

    def run(pixels):
        interpreter.set_tensor(image["index"], pixels)
        interpreter.invoke()
        return [interpreter.get_tensor(output["index"]) for output in outputs]

    return run, list(image["shape"].tolist())
