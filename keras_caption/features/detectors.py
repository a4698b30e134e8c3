import pathlib

import keras_hub

from keras_caption.errors import InputError
from keras_caption.features.hub_detector import HubDetector
from keras_caption.features.object_detector import ObjectDetector
from keras_caption.features.yolox import Yolox
from keras_caption.formats.faults import reason_of
from keras_caption.formats.keras_files import load_keras


def load_detector(name: str, confidence: float = 0.3) -> ObjectDetector:
    """Loads a detector of COCO's objects.

    Args:
        name: str, a preset of a KerasHub object detector, by its name, which is
            downloaded once, or its folder; or the path of a `.keras` file of a YOLOX
            network, see `Yolox`.
        confidence: float, least score of an object.

    Raises:
        InputError: If there is none, it cannot be downloaded, or detects other objects.
    """
    if pathlib.Path(name).suffix == ".keras":
        return Yolox(load_keras(name), confidence=confidence)
    return HubDetector(load_hub_detector(name), confidence=confidence)


def load_hub_detector(preset: str) -> keras_hub.models.ObjectDetector:
    """Loads a KerasHub object detector, by name or from a folder.

    Raises:
        InputError: If there is none.
    """
    try:
        return keras_hub.models.ObjectDetector.from_preset(preset)
    except (ValueError, FileNotFoundError) as error:
        raise InputError(
            f"There is no object detector {preset!r}: {reason_of(error)}."
        ) from None
    except OSError:  # of a download
        raise InputError(
            f"The detector {preset} could not be downloaded: without a network, name a "
            "folder or a .keras file."
        ) from None
