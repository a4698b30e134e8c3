import pathlib

import keras_hub

from keras_caption.errors import InputError, hint
from keras_caption.features.coloured_objects import ColouredObjects
from keras_caption.features.hub_detector import HubDetector
from keras_caption.features.hub_presets import is_preset, loading_preset
from keras_caption.features.object_detector import ObjectDetector
from keras_caption.features.yolox import Yolox
from keras_caption.formats.keras_files import load_keras


def load_detector(
    name: str, confidence: float | None = None, coloured: bool = False
) -> ObjectDetector:
    """Loads a detector of COCO's objects.

    Args:
        name: str, a preset of a KerasHub object detector, by its name, which is
            downloaded once, or its folder; or the path of a `.keras` file of a YOLOX
            network, see `Yolox`.
        confidence: float in [0, 1], least score of an object. Defaults to 0.3; with
            `coloured`, which tells the model the scores, to 0.15.
        coloured: bool, whether to describe colours too, see `ColouredObjects`.

    Raises:
        InputError: If there is none, it cannot be downloaded, or detects other objects,
            or the confidence is no share.
    """
    if confidence is None:
        confidence = 0.15 if coloured else 0.3
    if pathlib.Path(name).suffix == ".keras":
        detector = Yolox(load_keras(name), confidence=confidence)
    else:
        network = load_hub_detector(name, "; or name a YOLOX network, a .keras file")
        detector = HubDetector(network, confidence=confidence)
    return ColouredObjects(detector) if coloured else detector


def load_hub_detector(
    preset: str, instead: str = ""
) -> keras_hub.models.ObjectDetector:
    """Loads a KerasHub object detector, by name or from a folder.

    Args:
        preset: str, name, address or folder.
        instead: Of `loading_preset`.

    Raises:
        InputError: If there is none, or it cannot be loaded.
    """
    presets = keras_hub.models.ObjectDetector.presets
    if not is_preset(preset, presets):
        raise InputError(
            f"There is no object detector {preset!r}: no preset of KerasHub, no "
            f"address, no folder. {hint(preset, presets)}"
        )
    with loading_preset(preset, presets, instead):
        return keras_hub.models.ObjectDetector.from_preset(preset)
