from collections.abc import Sequence
from typing import Any

from keras_caption.apps.objects.added_details import add_details
from keras_caption.apps.objects.judged_answers import judge_answer
from keras_caption.apps.objects.judged_captions import judge_by_objects
from keras_caption.predict.prediction import Example, Prediction
from keras_caption.predict.predictor import RecordPredictor


class ModelPredictor(RecordPredictor):
    """Base of predictors that know their model, and the objects that it reads.

    Attributes:
        model: Model or ensemble of `keras_caption.models`, or
            `keras_caption.predict.engine.Engine`.
    """

    model: Any

    @property
    def extractor(self) -> Any:
        """What extracts features of photos or clips, or `None`."""
        return self.model.extractor

    @property
    def source(self) -> Any:
        """The `keras_caption.text.Tokenizer` of sentences, or `None`."""
        return self.model.source

    @property
    def categories(self) -> list[str] | None:
        """Categories of the objects that the model reads, or `None`."""
        return self.model.categories

    @property
    def _detects(self):
        """Whether the extractor detects objects."""
        return hasattr(self.extractor, "objects_of")

    @property
    def _answers_questions(self):
        return getattr(self.model, "answers", None) is not None

    def with_objects(
        self, predictions: Sequence[Prediction], values: dict[str, Any]
    ) -> list[Prediction]:
        """Adds inputs and detected objects to the predictions of a batch.

        The confidence of a caption then follows from its objects. Where nothing is
        detected there is no text.

        Args:
            predictions: Sequence of `Prediction`, which are changed.
            values: dict of the batch's arrays `(size, ...)`: features of the examples,
                and what the detector says of its objects.
        """
        detects = self._detects and "scores" in values
        made = []
        for i, prediction in enumerate(predictions):
            prediction.inputs = {name: x[i] for name, x in values.items()}
            if detects:
                prediction = self._with_objects(prediction, values, i)
            made.append(prediction)
        return made

    def _with_objects(self, prediction, values, i):
        prediction.objects = self.extractor.objects_of(values, i)
        if hasattr(self.extractor, "things_of"):  # a second opinion
            prediction.things = self.extractor.things_of(values, i)
        if not prediction.objects:
            return Prediction(inputs=prediction.inputs, things=prediction.things)
        if not self._answers_questions:
            calibration = getattr(self.model, "calibration", None)
            judge_by_objects(prediction, calibration, self.model.threshold)
        return prediction

    def judge(self, prediction: Prediction, example: Example, options: Any) -> None:
        """Judges an answer by the objects, and adds details to a caption.

        Args:
            prediction, example: As in `RecordPredictor.judge`.
            options: `keras_caption.decoding.Decoding` of captions.
        """
        if self._answers_questions:
            if example.question and prediction.objects:
                judge_answer(prediction, example.question, self.model)
        elif self.details and self._detects:
            add_details(prediction, example.values.get("photo"), options)
