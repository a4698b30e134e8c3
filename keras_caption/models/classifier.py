from typing import Unpack

import keras
from jaxtyping import Float, Float32
from keras import ops

from keras_caption.base.arguments import Calibration, KerasOptions, Share, Tensor, check
from keras_caption.base.errors import InputError
from keras_caption.features import Extractor
from keras_caption.models.answering import Answering
from keras_caption.models.constructors import different_texts
from keras_caption.models.task_model import TaskModel
from keras_caption.text import Tokenizer
from keras_caption.text.answers import Kind

Threshold = Share | dict[Kind, Share]  # of all answers, or by their kind


class ClassifierOptions(KerasOptions, total=False):
    """Keywords of every model that answers questions, which `Classifier` describes."""

    extractor: Extractor | None
    categories: list[str] | None
    threshold: Threshold
    recall: dict[str, Share] | None
    calibration: list[list[float]] | None


@keras.saving.register_keras_serializable("keras_caption")
class Classifier(Answering, TaskModel):
    """Base of models that choose from a list of answers.

    A classifier is a Keras model over a dict of inputs of one or several kinds, such as
    regions and a question. It is compiled and trained as any Keras model; its inputs
    are validated and masked as those of captioning models.

    Args:
        encoder: Functional Keras model from a dict of inputs to logits,
            `(batch, number of answers)`. The names of its inputs decide their kinds,
            see `keras_caption.inputs.KINDS`.
        answers: List of str, all different.
        question: `keras_caption.text.Tokenizer` of the encoder's input `question`. If
            `None`, the model reads token ids only.
        multi_label: bool, whether several answers may be right. The probability of each
            is then a sigmoid, and the loss is
            `keras_caption.losses.AnswerCrossEntropy`. Otherwise one answer is right,
            and the probabilities are a softmax. Defaults to False.
        extractor: `keras_caption.features.Extractor` that makes the encoder's inputs
            from photos, or `None`.
        categories: List of str, names of the values of a feature vector, if regions
            are objects, see `keras_caption.models.Captioner`.
        threshold: float in [0, 1], the probability below which an answer should not be
            relied on; or dict of such floats by the kind of the answer, `"yes/no"`,
            `"number"` and `"other"`. The command marks such answers, `answer` does not.
            Defaults to 0.
        recall: dict from category to float in [0, 1], of photos that show such an
            object the share in which the detector finds one. It decides how sure the
            answer is that there is no such object, see
            `keras_caption.apps.objects.object_answers.presence_of`. If `None`, no such
            answer is sure.
        calibration: List of pairs of floats in [0, 1], in rising order. A pair holds
            the greatest score of the detections of a category in a photo, and the share
            of such photos that show an object of the category. If `None`, a score is
            its own share.
        name, trainable, dtype: Of any Keras model.

    Call arguments:
        inputs: dict of the encoder's inputs; other keys are ignored.

    Returns:
        Logits, `(batch, number of answers)`.

    Raises:
        InputError: If `answers` are not different str, one for each output of the
            encoder.

    Example:

    ```python
    model = keras_caption.models.Classifier(encoder, ["yes", "no"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    model.fit(inputs, answer_ids)
    answers = model.answer(inputs)
    ```
    """

    hub_task = "visual-question-answering", "visual-question-answering"
    answers: list[str]

    def __init__(
        self,
        encoder: keras.Model,
        answers: list[str],
        question: Tokenizer | None = None,
        multi_label: bool = False,
        *,
        extractor: Extractor | None = None,
        categories: list[str] | None = None,
        threshold: Threshold = 0.0,
        recall: dict[str, Share] | None = None,
        calibration: list[list[float]] | None = None,
        **kwargs: Unpack[KerasOptions],
    ):
        check(Threshold, threshold=threshold)
        check(dict[str, Share] | None, recall=recall)
        check(Calibration | None, calibration=calibration)
        answers = different_texts("answers", answers)
        count = encoder.output.shape[-1]
        if len(answers) != count:
            raise InputError(
                f"`answers` should be {count} strings, one for each output of the "
                f"encoder. Received: {answers!r:.200}"
            )
        super().__init__(encoder, **kwargs)
        self.answers = answers
        self.question = question
        self.multi_label = multi_label
        self.extractor = extractor
        self.categories = categories
        self.threshold = threshold
        self.recall = recall
        self.calibration = calibration

    @property
    def output_limits(self) -> list[str]:
        return [f"It chooses one of {len(self.answers):,} answers."]

    def example_call(self, images: str) -> str:
        questions = ', ["What is it?"]' if self.question else ""
        return f"answer({images}{questions})"

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> Float[Tensor, "batch answers"]:
        return self.encoder(self.read(inputs), training=training)

    def probabilities(
        self, inputs: dict[str, Tensor]
    ) -> Float32[Tensor, "batch answers"]:
        """Probabilities of all answers, float32 `(batch, number of answers)`.

        Args:
            inputs: dict of tensors, as `read` returns it; others are ignored.
        """
        inputs = {name: inputs[name] for name in self.input_specs}
        logits = ops.cast(self.encoder(inputs, training=False), "float32")
        return ops.sigmoid(logits) if self.multi_label else ops.softmax(logits)
