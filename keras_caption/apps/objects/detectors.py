import functools
from typing import Any

from keras_caption.apps.objects.coloured_objects import ColouredObjects
from keras_caption.apps.objects.engine_detector import EngineDetector
from keras_caption.apps.objects.hub_detector import HubDetector, load_hub_detector
from keras_caption.apps.objects.keras_yolox import convert_yolox
from keras_caption.apps.objects.nanodet import NanoDet
from keras_caption.apps.objects.object_detector import ObjectDetector
from keras_caption.apps.objects.photo_classifier import PhotoClassifier
from keras_caption.apps.objects.second_opinion import SecondOpinion, with_second_opinion
from keras_caption.apps.objects.yolox import Yolox
from keras_caption.apps.objects.yolox_download import YOLOX_NANO, download_yolox
from keras_caption.features.extractor import Extractor
from keras_caption.features.keras_defaults import keras_defaults
from keras_caption.formats.detector_files import SUFFIXES
from keras_caption.formats.keras_files import load_keras
from keras_caption.formats.suffixes import suffix_of

# End of a message about a preset that cannot be downloaded.
INSTEAD = ", as --detector; or use --detector yolox_nano, 3.7 MB from GitHub"


@keras_defaults()
def load_detector(
    name: str,
    confidence: float | None = None,
    coloured: bool = False,
    network: Extractor | None = None,
    second_opinion: bool = False,
) -> ObjectDetector | SecondOpinion:
    """Loads a detector of COCO's objects.

    Args:
        name: str, name of a KerasHub preset of an object detector, which is downloaded
            once, or its folder; `yolox_nano`, which is downloaded once too; the path
            of a `.keras` file of a network, see `Yolox` and `NanoDet`; or the path of
            an `.onnx` or `.tflite` file, see `EngineDetector`.
        confidence: float in [0, 1], least score of an object. Defaults to 0.3, and to
            0.15 with `coloured`: the model then reads the scores itself.
        coloured: bool, whether to describe colours too, see `ColouredObjects`.
        network: `Extractor` for features of pixels, see `ColouredObjects`. It implies
            `coloured`.
        second_opinion: bool, whether the detected objects are classified once more, see
            `SecondOpinion`. Without the package of its weights, a line says so, and
            the detector is returned alone. It is of categories alone: with `coloured`,
            it has no effect.

    Raises:
        InputError: If there is no such detector, it cannot be downloaded, it detects
            other objects, or the confidence is not in [0, 1].
    """
    coloured = coloured or network is not None
    if confidence is None:
        confidence = 0.15 if coloured else 0.3
    suffix = suffix_of(name)
    if name == YOLOX_NANO:
        detector = detector_of_network(convert_yolox(download_yolox()), confidence)
    elif suffix == ".keras":
        detector = detector_of_network(load_keras(name), confidence)
    elif suffix in SUFFIXES:
        detector = EngineDetector(name, confidence=confidence)
    else:
        hub = load_hub_detector(name, INSTEAD)
        detector = HubDetector(hub, confidence=confidence)
    if coloured:
        return ColouredObjects(detector, network)
    if second_opinion:
        return with_second_opinion(detector, photo_classifier)
    return detector


@functools.cache
def photo_classifier() -> PhotoClassifier:
    """The classifier of second opinions, which detectors share."""
    return PhotoClassifier()


def detector_of_network(network: Any, confidence: float) -> Yolox:
    """The detector of a network, of the size of its images and the values of its cells.

    Args:
        network: Object of Keras, which the detector checks.
        confidence: As in `load_detector`.
    """
    image, cells = (getattr(network, x, None) for x in ("input_shape", "output_shape"))
    is_nanodet = isinstance(cells, tuple) and cells[-1] == NanoDet.values
    kind = NanoDet if is_nanodet else Yolox
    if isinstance(image, tuple) and len(image) == 4 and image[1]:
        return kind(network, image[1], confidence)
    return kind(network, confidence=confidence)
