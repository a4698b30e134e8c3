from typing import Any

from keras_caption.errors import InputError
from keras_caption.features import CATEGORIES, ColouredObjects, load_detector


def reads_objects(model: Any) -> bool:
    """Whether a model reads COCO's objects, which a detector has to find in photos."""
    reads = tuple(model.categories or ())
    return model.extractor is None and reads in (CATEGORIES, ColouredObjects.dimensions)


def add_detector(
    model: Any,
    detector: str,
    confidence: float | None = None,
    name: str | None = None,
    instead: str = "",
) -> None:
    """Gives a model of objects the detector that it reads photos by.

    Args:
        model: Model, or ensemble, of `keras_caption.models`.
        detector, confidence: Of `keras_caption.features.load_detector`.
        name: str, what the model is called in messages. Defaults to its name.
        instead: str, what else a user can do, the end of a sentence.

    Raises:
        InputError: If the model extracts features otherwise, or not at all, or there
            is no such detector.
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
    model.extractor = load_detector(detector, confidence, coloured)
