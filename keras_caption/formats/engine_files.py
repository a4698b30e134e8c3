"""Files of LiteRT, ONNX Runtime and OpenVINO, and what a folder says of one."""

import functools
import json
import os
import pathlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.progress import silent
from keras_caption.formats.faults import reason_of
from keras_caption.formats.suffixes import suffix_of

DESCRIPTION = "model.json"
DETECTOR = "detector"  # folder of a captioner's detector, within its own
CLASSIFIER = "classifier"  # and that of the classifier of its objects
DETECTOR_FILES = (DESCRIPTION, "model.*")  # in it
FORMAT = 2  # of exports; files that are kept of another are made anew
ENGINE_FILES = {"openvino": "model.xml", "onnx": "model.onnx", "litert": "model.tflite"}
NAMES = {"openvino": "OpenVINO", "onnx": "ONNX Runtime", "litert": "LiteRT"}
SUFFIXES = {name.removeprefix("model"): engine for engine, name in ENGINE_FILES.items()}

Run = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]


def engine_file(path: str | os.PathLike) -> pathlib.Path | None:
    """The file of an engine that a path names: it itself, or that of its folder."""
    path = pathlib.Path(path)
    if suffix_of(path) in SUFFIXES and path.is_file():
        return path
    if (path / DESCRIPTION).is_file():
        return next(
            (path / x for x in ENGINE_FILES.values() if (path / x).is_file()), None
        )
    return None


def read_description(file: pathlib.Path) -> dict[str, Any]:
    """What `keras_caption.serving.export_engine` wrote of a model beside its file.

    Raises:
        InputError: If there is nothing, or it is damaged.
    """
    path = file.with_name(DESCRIPTION)
    try:
        description = json.loads(path.read_bytes())
    except OSError:
        raise InputError(
            f"{file} has no {DESCRIPTION} beside it: export the model again."
        ) from None
    except ValueError as error:
        raise InputError(f"{path} is damaged: {reason_of(error)}.") from None
    if not isinstance(description, dict):
        raise InputError(f"{path} is damaged: it should be an object.")
    return description


def open_engine(file: pathlib.Path) -> Run:
    """Loads a file of an engine, on all cores of the CPU.

    Returns:
        Function of a dict of arrays to a dict of arrays, which threads may share.

    Raises:
        InputError: If the file is damaged, or the package of the engine is missing.
    """
    engine = SUFFIXES[suffix_of(file)]
    with missing_extras():
        try:
            run = OPENERS[engine](str(file))
        except ModuleNotFoundError:
            raise
        except Exception as error:  # of an engine, of any class
            raise InputError(f"{file} cannot be read: {reason_of(error)}.") from None
    lock = threading.Lock()

    def run_alone(inputs):
        with lock:
            return run(inputs)

    return run_alone


def open_litert(path: str) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    with silent():  # it says what it computes with
        interpreter = Interpreter(path, num_threads=os.cpu_count())
        interpreter.allocate_tensors()
        run = interpreter.get_signature_runner()
    return lambda inputs: run(**inputs)


def open_onnx(path: str) -> Run:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def open_openvino(path: str) -> Run:
    precision = {"INFERENCE_PRECISION_HINT": "f32"}  # CPUs may take less otherwise
    model = openvino_core().compile_model(path, "CPU", precision)
    names = [output.get_any_name() for output in model.outputs]

    def run(inputs):
        outputs = model(inputs)
        return {name: outputs[name] for name in names}

    return run


@functools.cache
def openvino_core() -> Any:
    """The one `openvino.Core` of this process, which lives as long as it does.

    Each core gives its thread a stack for signals, and takes it away at its end. When
    two cores end in the order in which they began, the thread keeps the first one's,
    which is freed: the next signal ends the process.
    """
    import openvino

    return openvino.Core()


OPENERS = {"openvino": open_openvino, "onnx": open_onnx, "litert": open_litert}
