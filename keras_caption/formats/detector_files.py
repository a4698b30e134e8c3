"""Detectors in files of ONNX and LiteRT that other programs wrote."""

import pathlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.apart import Apart
from keras_caption.formats.faults import check_file
from keras_caption.formats.suffixes import suffix_of

SUFFIXES = (".onnx", ".tflite")
MAX_SIZE = 4096  # greatest height and width in pixels


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
    """Opens a file, by its suffix, in a process of its own, see `Apart`.

    Raises:
        InputError: If it is damaged, reads anything but one square image of a bounded
            size, or the package of its engine is missing. `run` raises it if a network
            returns no numbers, or takes too much time or memory.
    """
    check_file(path)
    opener = open_onnx if suffix_of(path) == ".onnx" else open_litert
    network = Apart(opener, path)
    shape = network(None)
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
            f"{path} reads images of {height} x {width} pixels; only squares are made."
        )
    if height is not None and height > MAX_SIZE:
        raise InputError(
            f"{path} reads images of {height:,} x {width:,} pixels; at most "
            f"{MAX_SIZE:,} x {MAX_SIZE:,} are made."
        )

    def run(image):
        outputs = network(image)
        if any(np.isnan(x).any() for x in outputs):
            raise InputError(
                f"{path} returns values that are no numbers (NaN), as a network does "
                "whose weights are damaged, or too great for its type."
            )
        return outputs

    return DetectorFile(run, channels == [1], height)


Network = Callable[[np.ndarray | None], list]


def open_onnx(path: str) -> Network:
    """Opens a file of ONNX.

    Returns:
        Function from an image to float32 arrays; from `None` to the image's shape.
    """
    with missing_extras():
        import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [image] = session.get_inputs()

    def run(pixels):
        if pixels is None:
            return image.shape
        return in_float32(session.run(None, {image.name: pixels}))

    return run


def open_litert(path: str) -> Network:
    """Opens a file of LiteRT, as `open_onnx` does one of ONNX."""
    with missing_extras():
        from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(path)
    interpreter.allocate_tensors()
    [image] = interpreter.get_input_details()
    outputs = interpreter.get_output_details()

    def run(pixels):
        if pixels is None:
            return image["shape"].tolist()
        interpreter.set_tensor(image["index"], pixels)
        interpreter.invoke()
        return in_float32(interpreter.get_tensor(x["index"]) for x in outputs)

    return run


def in_float32(outputs: Iterable[Any]) -> list[np.ndarray]:
    return [np.asarray(x, "float32") for x in outputs]
