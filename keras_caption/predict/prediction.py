import dataclasses
from typing import Any

import numpy as np

from keras_caption.errors import InputError, NoTextError
from keras_caption.formats.faults import reason_of


@dataclasses.dataclass(frozen=True)
class Example:
    """A record that was read and checked.

    Attributes:
        place: int, of the record among all that are read together. The random numbers
            of its samples follow from it.
        values: dict of what a model or its extractor reads, without batch dimension.
        has_words: bool, `False` of a sentence without words, whose text is empty.
    """

    place: int
    values: dict[str, Any]
    has_words: bool = True


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is in place of a prediction where there is none.

    Attributes:
        place: int, of the record among all.
        error: Exception, why: `keras_caption.InputError` of a record that cannot be
            read, or that the options leave no text.
    """

    place: int
    error: Exception

    @property
    def reason(self) -> str:
        """Why, a sentence that does not say which record."""
        if isinstance(self.error, NoTextError):
            return f"There is no text: {self.error.reason}."
        if isinstance(self.error, InputError):
            return str(self.error)
        return f"{type(self.error).__name__}: {reason_of(self.error)}."


@dataclasses.dataclass
class Prediction:
    """What a model makes of one record.

    Attributes:
        text: str, the caption, translation or answer; empty if there is none, as of a
            photo without objects that the model knows, or a sentence without words.
        score: float, log-probability of the text; of an answer, its probability.
        confidence: float in [0, 1], the geometric mean of the tokens' probabilities; of
            a photo's caption by a calibrated model, how many of such captions name only
            what is there, see `keras_caption.models.Captioner`; of an answer, its
            probability.
        unsure: bool, whether that is below the threshold of the model, or a caption
            says several of a category of which one object is detected.
        best: list of pairs of a text and its score, the best first: as many as were
            asked for, or fewer if there are no more.
        objects: list of dict of `category`, `score` and `box`, see
            `keras_caption.features.ObjectDetector.objects_of`.
        words: list of str, of the text, EOS included, or of a question: what the rows
            of `attention` are of. Empty unless attention was asked for.
        attention: float32 `(words, M)`, what each word attends to; of a question, how
            much of each region's attention it has; or `None`.
        items: list of str, what the items of the memory are called: categories of
            objects, or the words of a sentence; empty if they have no names.
        boxes: float32 `(M, 4)`, x1, y1, x2, y2 of the items divided by the image's
            width and height, or by those of a clip's film strip; `None` if they have
            no place.
        inputs: dict of the model's inputs of the record, without batch dimension.
        tokens: int32 `(T,)`, of the text, then PAD, or `None` of answers.
    """

    text: str = ""
    score: float = 0.0
    confidence: float = 0.0
    unsure: bool = True
    best: list[tuple[str, float]] = dataclasses.field(default_factory=list)
    objects: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    words: list[str] = dataclasses.field(default_factory=list)
    attention: np.ndarray | None = None
    items: list[str] = dataclasses.field(default_factory=list)
    boxes: np.ndarray | None = None
    inputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    tokens: np.ndarray | None = None
