from typing import Any

from keras_caption.apps.objects import CATEGORIES, ColouredObjects, load_detector
from keras_caption.base.errors import InputError


def reads_objects(model: Any) -> bool:
    """Whether a model reads COCO's objects, and needs a detector to read photos."""
    reads = tuple(model.categories or ())
    return model.extractor is None and reads in (CATEGORIES, ColouredObjects.dimensions)


def add_detector(
    model: Any,
    detector: str,
    confidence: float | None = None,
    name: str | None = None,
    instead: str = "",
    second_opinion: bool = False,
) -> None:
    """Sets the detector by which a model of objects reads photos.

    Args:
        model: Model, or ensemble, of `keras_caption.models`.
        detector, confidence: As in `keras_caption.objects.load_detector`.
        name: str, name of the model in messages. Defaults to the model's name.
        instead: str, end of a message that says what else a user can do.
        second_opinion: As in `keras_caption.objects.load_detector`.

    Raises:
        InputError: If the model has another extractor or does not read objects, or
            there is no such detector.
    """
    name = name or model.name
    if model.extractor is not None:
        raise InputError(
            f"{name} extracts features of photos by itself: it takes no detector."
        )
    if not reads_objects(model):
        raise InputError(
            f"{name} has no extractor: it was not trained on photos or clips{instead}."
        )
    coloured = tuple(model.categories) == ColouredObjects.dimensions
    model.extractor = load_detector(
        detector, confidence, coloured, second_opinion=second_opinion
    )
