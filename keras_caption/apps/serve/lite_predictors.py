import abc
import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from keras_caption.apps.objects import CATEGORIES, LiteClassifier, LiteDetector
from keras_caption.apps.objects.second_opinion import with_second_opinion
from keras_caption.apps.serve.model_predictor import ModelPredictor
from keras_caption.apps.serve.records import photo_of
from keras_caption.base.errors import InputError, NoTextError
from keras_caption.export.engine_cache import classifier_of, detector_of
from keras_caption.features import MAX_PIXELS
from keras_caption.formats.engine_files import CLASSIFIER, DETECTOR, read_description
from keras_caption.predict import Example, Prediction
from keras_caption.predict.captions import captions_of
from keras_caption.predict.engine import Engine
from keras_caption.settings.decoding import Decoding
from keras_caption.text.tokenizer import MAX_TOKENS, check_texts

INPUTS = {"regions", "boxes", "region_mask"}  # of a captioner


class LitePredictor(ModelPredictor):
    """Base of predictors that need LiteRT, but neither Keras nor TensorFlow.

    The texts equal those of `Predictor`; the first takes less than a second.

    Args:
        file: Path of the model's file, see `keras_caption.serving.export_engine`.

    Attributes:
        model: `keras_caption.predict.engine.Engine`.

    Raises:
        InputError: If a file is damaged or of another kind, or LiteRT is missing.
    """

    noun = "example"

    def __init__(self, file: pathlib.Path):
        super().__init__()
        if not self.takes(read_description(file)):
            raise InputError(f"{file.parent} is no model of a {type(self).__name__}.")
        self.model: Engine = Engine(file)
        reads_text = "source" in self.model.inputs
        if self.model.vocabulary is None or (reads_text and self.source is None):
            raise InputError(f"{file.parent} is damaged: it has no tokenizer.")

    @staticmethod
    @abc.abstractmethod
    def takes(described: dict[str, Any]) -> bool:
        """Tells whether this class can run a model.

        Args:
            described: dict, description of the model, a result of
                `keras_caption.formats.engine_files.read_description`.
        """

    def check_options(self, n: int | None, options: dict[str, Any]) -> Decoding:
        assert self.model.decoding is not None  # it generates, as `takes` says
        return self.model.decoding.fixed(self.model.name, n, options)

    def run(
        self,
        inputs: dict[str, Any],
        places: Int[np.ndarray, " size"],
        n: int | None,
        attention: bool,
        options: Decoding,
    ) -> list[Prediction]:
        """Answers a batch, see `RecordPredictor.run`."""
        if attention:
            raise InputError(f"The file of '{self.model.name}' shows no attention.")
        values = self.extractor(inputs["photo"]) if "photo" in inputs else inputs
        served = {name: x for name, x in values.items() if name in self.model.inputs}
        outputs = self.model.run(served)
        tokens, scores = outputs["tokens"], outputs["scores"]
        if "photo" in inputs:  # without objects there is no text
            scores = np.where(values["scores"].any(axis=1), scores, 0.0)
        if len(missing := np.flatnonzero(np.isneginf(scores))):
            reason = "the options of the file leave none"
            raise NoTextError(f"{self.noun} {places[missing[0]]}", reason)
        assert self.model.vocabulary is not None
        texts = map(self.model.vocabulary.decode, tokens)
        best = [[pair] for pair in zip(texts, map(float, scores), strict=True)]
        return self.with_objects(captions_of(best, tokens, scores, self.model), values)


class LiteCaptioner(LitePredictor):
    """Captions photos with a captioner and a detector in files of LiteRT.

    Args:
        file: As in `LitePredictor`; the model captions objects and reads their boxes.
        detector: Path of the file of a detector, see
            `keras_caption.serving.export_detector`.
        confidence: float in [0, 1], least score of an object.
        classifier: Function that returns the path of the file of a classifier, for a
            second opinion on objects, or `None`, see
            `keras_caption.objects.SecondOpinion`.

    Attributes:
        extractor: `keras_caption.objects.LiteDetector` or `SecondOpinion`.

    Raises:
        InputError: As in `LitePredictor`.
    """

    noun = "image"
    reads = ("photo",)

    def __init__(
        self,
        file: pathlib.Path,
        detector: pathlib.Path,
        confidence: float = 0.3,
        classifier: Callable[[], pathlib.Path] | None = None,
    ):
        super().__init__(file)
        found = LiteDetector(detector, confidence)
        if classifier is not None:
            found = with_second_opinion(found, lambda: LiteClassifier(classifier()))
        self.model.extractor = found

    @staticmethod
    def takes(described: dict[str, Any]) -> bool:
        return (
            described.get("generated") == "captions"
            and described.get("categories") == [*CATEGORIES]
            and {*described.get("inputs", ())} == INPUTS
            and "boxes" not in described.get("ignored_inputs", ())
        )

    def read(
        self, record: Mapping[str, Any], place: int = 0, max_pixels: int = MAX_PIXELS
    ) -> Example:
        """Reads and checks one record, see `Predictor.read`."""
        if [*record] != ["photo"]:
            raise InputError(f"Record {place} should have a photo alone.")
        photo = photo_of(record["photo"], place, max_pixels)
        return self.example_of({"photo": photo}, place)

    def example_of(self, values: dict[str, Any], place: int) -> Example:
        """Makes an example of the pixels of a photo, see `Predictor.example_of`."""
        return Example(place, {"photo": self.extractor.place(values["photo"])})


class LiteTranslator(LitePredictor):
    """Translates sentences with a file of LiteRT, see `LitePredictor`."""

    noun = "sentence"
    reads = ("source",)

    @staticmethod
    def takes(described: dict[str, Any]) -> bool:
        return {*described.get("inputs", ())} == {"source"}

    def read(self, record: Mapping[str, Any], place: int = 0) -> Example:
        """Reads and checks one record, see `Predictor.read`."""
        if [*record] != ["source"]:
            raise InputError(f"Record {place} should have a source alone.")
        check_texts([record["source"]], "Sentence")
        assert self.source is not None  # as it is an input
        tokens = self.source.encode(record["source"])[1:]
        if len(tokens) > MAX_TOKENS:
            raise InputError(f"Sentence {place} has more than {MAX_TOKENS:,} tokens.")
        values = {"source": np.array(tokens, "int32")}
        return Example(place, values, has_words=len(tokens) > 1)  # the last is EOS


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
