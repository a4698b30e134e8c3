import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from keras_caption.errors import InputError, NoTextError
from keras_caption.features import CATEGORIES, MAX_PIXELS, EngineDetector
from keras_caption.formats.engine_files import (
    DETECTOR,
    open_engine,
    read_description,
)
from keras_caption.predict import Example, Prediction, RecordPredictor
from keras_caption.predict.captions import confidences_of, judge_by_objects
from keras_caption.serving.engine_cache import detector_of
from keras_caption.serving.records import photo_of
from keras_caption.settings.decoding import Decoding
from keras_caption.text.saved_tokenizer import tokenizer_of

INPUTS = {"regions", "boxes", "region_mask"}


class LitePredictor(RecordPredictor):
    """Captions photos by LiteRT alone, to the captions of `Predictor`.

    It imports neither Keras nor TensorFlow: the first caption takes a second. The
    model and the detector are in files of LiteRT, of a captioner of detected objects.

    Args:
        file: Path of the captioner's file, see `keras_caption.serving.export_engine`.
        detector: Path of the detector's, see `keras_caption.serving.export_detector`.
        confidence: float in [0, 1], least score of an object.

    Attributes:
        extractor: `keras_caption.features.EngineDetector`.
        categories: List of str, of the objects that the model reads.

    Raises:
        InputError: If a file is damaged or of another kind, or LiteRT is missing.
    """

    reads = ("photo",)

    def __init__(
        self, file: pathlib.Path, detector: pathlib.Path, confidence: float = 0.3
    ):
        super().__init__()
        described = read_description(file)
        if not captions_objects(described):
            raise InputError(f"{file.parent} is no captioner of detected objects.")
        try:
            self.name = str(described["name"])
            self.categories = list(described["categories"])
            self.threshold = float(described["threshold"])
            self.calibration = described["calibration"]
            self.decoding = Decoding(**described["decoding"])
            self.vocabulary = tokenizer_of(described["vocabulary"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file.parent} is damaged: {error!r:.200}.") from None
        self.extractor = EngineDetector(detector, confidence)
        self._run = open_engine(file)

    def read(
        self, record: Mapping[str, Any], place: int = 0, max_pixels: int = MAX_PIXELS
    ) -> Example:
        """Reads and checks one record, see `Predictor.read`."""
        if [*record] != ["photo"]:
            raise InputError(f"Record {place} should have a photo alone.")
        return self.example_of(
            {"photo": photo_of(record["photo"], place, max_pixels)}, place
        )

    def example_of(self, values: dict[str, Any], place: int) -> Example:
        """An example of a photo that was read, see `Predictor.example_of`."""
        return Example(place, {"photo": self.extractor.place(values["photo"])})

    def check_options(self, n: int | None, options: dict[str, Any]) -> None:
        self.decoding.fixed(self.name, n, options)

    def run(
        self,
        inputs: dict[str, Any],
        places: Int[np.ndarray, " size"],
        n: int | None,
        attention: bool,
        options: dict[str, Any],
    ) -> list[Prediction]:
        """Predictions of a batch, see `RecordPredictor.run`."""
        if attention:
            raise InputError(f"The file of '{self.name}' shows no attention.")
        values = self.extractor(inputs["photo"])
        outputs = self._run({name: values[name] for name in ("regions", "boxes")})
        tokens, scores = outputs["tokens"], outputs["scores"]
        sure = confidences_of(tokens, scores)
        found = []
        for i, place in enumerate(places):
            read = {name: x[i] for name, x in values.items()}
            objects = self.extractor.objects_of(values, i)
            if not objects:
                found.append(Prediction(inputs=read))
                continue
            if np.isneginf(scores[i]):
                raise NoTextError(
                    f"image {place}", "the options of the file leave none"
                )
            text, score = self.vocabulary.decode(tokens[i]), float(scores[i])
            unsure = bool(sure[i] < self.threshold)
            caption = Prediction(text, score, float(sure[i]), unsure, [(text, score)])
            caption.objects, caption.inputs, caption.tokens = objects, read, tokens[i]
            judge_by_objects(caption, self.calibration, self.threshold)
            found.append(caption)
        return found


def load_lite(
    file: pathlib.Path,
    detector: str | None,
    default_detector: str,
    confidence: float | None = None,
) -> LitePredictor | None:
    """Loads what captions photos by LiteRT, or `None` if the model does no such thing.

    Args:
        file: Path of the model's file for LiteRT.
        detector: str, of `keras_caption.serving.engine_cache.detector_of`, or `None`.
        default_detector: str, the same, where the file has none beside it.
        confidence: float in [0, 1], least score of an object, 0.3 if it is `None`.

    Raises:
        InputError: If a file is damaged, or there is no such detector for LiteRT.
    """
    if not captions_objects(read_description(file)):
        return None
    own = file.parent / DETECTOR
    name = detector or (str(own) if own.is_dir() else default_detector)
    confidence = 0.3 if confidence is None else confidence
    return LitePredictor(file, detector_of(name), confidence)


def captions_objects(described: Mapping[str, Any]) -> bool:
    """Whether a model of an engine's file captions detected objects, by their boxes.

    Args:
        described: What `keras_caption.formats.engine_files.read_description` returns.
    """
    return (
        described.get("generated") == "captions"
        and described.get("categories") == [*CATEGORIES]
        and {*described.get("inputs", ())} == INPUTS
        and "boxes" not in described.get("ignored_inputs", ())
    )
