import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_caption.errors import InputError
from keras_caption.features import MAX_PIXELS
from keras_caption.objects import (
    CATEGORIES,
    LiteClassifier,
    LiteDetector,
    SecondOpinion,
)
from keras_caption.objects.second_opinion import with_second_opinion
from keras_caption.predict import Example, Prediction
from keras_caption.predict.details import add_details
from keras_caption.predict.judged_captions import judge_by_objects
from keras_caption.serving.lite_predictor import LitePredictor
from keras_caption.serving.records import photo_of

INPUTS = {"regions", "boxes", "region_mask"}


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
        self.extractor = LiteDetector(detector, confidence)
        if classifier is not None:
            self.extractor = with_second_opinion(
                self.extractor, lambda: LiteClassifier(classifier())
            )

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

    def features_of(self, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
        return self.extractor(inputs["photo"])

    def served(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: values[name] for name in self.extractor.made}

    def has_text(self, values: dict[str, np.ndarray], i: int) -> bool:
        return bool(values["scores"][i].any())

    def complete(self, made: Prediction, values: dict[str, np.ndarray], i: int) -> None:
        made.objects = self.extractor.objects_of(values, i)
        if isinstance(self.extractor, SecondOpinion):
            made.things = self.extractor.things_of(values, i)
        if made.objects:
            judge_by_objects(made, self.calibration, self.threshold)

    def judge(self, prediction: Prediction, example: Example) -> None:
        if self.details:
            add_details(prediction, example.values["photo"])
