import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from keras_caption.apps.objects import (
    CATEGORIES,
    LiteClassifier,
    LiteDetector,
)
from keras_caption.apps.objects.second_opinion import with_second_opinion
from keras_caption.apps.serve.lite_predictor import LitePredictor
from keras_caption.apps.serve.records import photo_of
from keras_caption.base.errors import InputError
from keras_caption.features import MAX_PIXELS
from keras_caption.predict import Example

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
