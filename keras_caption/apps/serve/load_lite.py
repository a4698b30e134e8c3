import functools
import pathlib

from keras_caption.apps.serve.lite_captioner import LiteCaptioner
from keras_caption.apps.serve.lite_predictor import LitePredictor
from keras_caption.apps.serve.lite_translator import LiteTranslator
from keras_caption.export.engine_cache import classifier_of, detector_of
from keras_caption.formats.engine_files import CLASSIFIER, DETECTOR, read_description


def load_lite(
    file: str | pathlib.Path,
    detector: str | None = None,
    default_detector: str | None = None,
    confidence: float | None = None,
    second_opinion: bool = False,
) -> LitePredictor | None:
    """Loads a model that needs LiteRT only, or returns `None` if it needs Keras too.

    Args:
        file: Path of the model's file for LiteRT.
        detector: str, as in `keras_caption.export.engine_cache.detector_of`, or
            `None` for the detector in the folder of a captioner.
        default_detector: str, detector of a captioner whose folder has none. With
            `None`, such a captioner is not loaded.
        confidence: float in [0, 1], least score of an object. Defaults to 0.3.
        second_opinion: bool, whether detected objects are classified once more, see
            `keras_caption.objects.load_detector`.

    Raises:
        InputError: If a file is damaged, or there is no such detector for LiteRT.
    """
    file = pathlib.Path(file)
    described = read_description(file)
    if LiteTranslator.takes(described):
        return LiteTranslator(file)
    own = file.parent / DETECTOR
    name = detector or (str(own) if own.is_dir() else default_detector)
    if name is None or not LiteCaptioner.takes(described):
        return None
    confidence = 0.3 if confidence is None else confidence
    classifier = functools.partial(classifier_of, file.parent / CLASSIFIER)
    return LiteCaptioner(
        file, detector_of(name), confidence, classifier if second_opinion else None
    )
