import dataclasses
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError, NoTextError
from keras_caption.formats.faults import reason_of


@dataclasses.dataclass(frozen=True)
class Example:
    """A record that has been read and checked.

    Attributes:
        place: int, place of the record among all records of a call. It decides the
            random numbers of samples.
        values: dict of inputs of a model or its extractor, without batch dimension.
        has_words: bool, `False` for a sentence without words. Its prediction is empty.
        question: str, the question of the record as it was asked, if it has one: its
            tokens lack the words that the model does not know.
    """

    place: int
    values: dict[str, Any]
    has_words: bool = True
    question: str = ""


@dataclasses.dataclass(frozen=True)
class Fault:
    """Stands for the prediction of a record that has none.

    Attributes:
        place: int, place of the record among all records.
        error: Exception, the reason: `keras_caption.InputError` if the record cannot be
            read, or the options exclude all texts.
    """

    place: int
    error: Exception

    @property
    def reason(self) -> str:
        """The reason, a sentence that does not name the record."""
        if isinstance(self.error, NoTextError):
            return f"There is no text: {self.error.reason}."
        if isinstance(self.error, InputError):
            return str(self.error)
        return f"{type(self.error).__name__}: {reason_of(self.error)}."


@dataclasses.dataclass
class Prediction:
    """The prediction of a model for one record.

    Attributes:
        text: str, the caption, translation or answer. It is empty for a photo without
            objects that the model knows, and for a sentence without words.
        score: float, log-probability of a text; probability of an answer.
        confidence: float in [0, 1], geometric mean of the tokens' probabilities;
            probability of an answer. For a photo's caption by a calibrated model it is
            the share of such captions that name only objects of the photo, see
            `keras_caption.models.Captioner`.
        unsure: bool, whether the confidence is below the threshold of the model, or the
            detections contradict: a caption has a plural for a category of which one
            object is detected, or an answer supposes an object that is not detected.
        best: list of pairs of a text and its score, the best first: `n` pairs, or fewer
            if there are no more texts.
        objects: list of dict of `category`, `score` and `box`, see
            `keras_caption.objects.ObjectDetector.objects_of`.
        things: list of dict of `name`, `kind` and `probability`, what else a second
            opinion sees, see `keras_caption.objects.SecondOpinion.things_of`.
        links: list of dict, the content words of a caption and what admits each, see
            `keras_caption.apps.objects.description.describe`. The caption may then have
            more words than the model generated; `score`, `tokens`, `words` and
            `attention` are of those.
        words: list of str, words of the text, EOS included, or of the question, one for
            each row of `attention`. Empty unless attention was requested.
        attention: float32 `(words, M)`, attention weights of each word over the items
            of the memory, or `None`. For a word of a question, its share of the
            attention of each region.
        items: list of str, names of the items of the memory: categories of objects, or
            words of a sentence; empty if items have no names.
        boxes: float32 `(M, 4)`, x1, y1, x2, y2 of the items divided by width and height
            of the image, or of a clip's film strip; `None` if items have no place.
        inputs: dict of the model's inputs for the record, without batch dimension.
        tokens: int32 `(T,)`, tokens of the text, then PAD; `None` for answers.
        doubt: str, why a text is unsure whatever its confidence; empty if it is not, or
            if its confidence is below the threshold.
    """

    text: str = ""
    score: float = 0.0
    confidence: float = 0.0
    unsure: bool = True
    best: list[tuple[str, float]] = dataclasses.field(default_factory=list)
    objects: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    things: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    links: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    words: list[str] = dataclasses.field(default_factory=list)
    attention: np.ndarray | None = None
    items: list[str] = dataclasses.field(default_factory=list)
    boxes: np.ndarray | None = None
    inputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict, repr=False)
    tokens: np.ndarray | None = None
    doubt: str = ""
