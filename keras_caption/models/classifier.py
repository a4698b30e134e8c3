from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.decoding import compile_function
from keras_caption.errors import InputError
from keras_caption.models.task_model import TaskModel


@keras.saving.register_keras_serializable("keras_caption")
class Classifier(TaskModel):
    """Base of models that choose from a list of answers.

    A Keras model over a dict of inputs, which may be of several kinds. It is compiled
    and trained as any Keras model; what it reads is validated and masked as in
    captioning models.

    A subclass that makes the encoder of arguments of its own keeps each argument as
    an attribute; its config holds them.

    Args:
        encoder: Functional Keras model from a dict of inputs to logits,
            `(batch, number of answers)`. Kinds of input are found by the inputs'
            names, see `keras_caption.inputs.KINDS`.
        answers: List of str, all different.
        dtype: Keras dtype policy of the model, or its name.

    Call arguments:
        inputs: dict of the encoder's inputs; other keys are ignored.

    Returns:
        Logits, `(batch, number of answers)`.

    Raises:
        InputError: If the answers are not as many different str as the encoder has
            outputs.

    Example:

    ```python
    model = keras_caption.models.Classifier(encoder, ["yes", "no"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    model.fit(inputs, answer_ids)
    answers, logits = model.predict_answers(inputs)
    ```
    """

    def __init__(
        self, encoder: keras.Model, answers: list[str], dtype: Any = None, **kwargs: Any
    ):
        answers = list(answers)
        count = encoder.output.shape[-1]
        are_strings = all(isinstance(answer, str) for answer in answers)
        if (
            not are_strings
            or len(set(answers)) != len(answers)
            or len(answers) != count
        ):
            raise InputError(
                f"`answers` should be {count} different strings, one for each output "
                f"of the encoder. Received: {answers}"
            )
        super().__init__(encoder, dtype=dtype, **kwargs)
        self.answers = answers

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        return self.encoder(self.prepare_inputs(inputs), training=training)

    def predict_answers(self, raw: Any) -> tuple[list[str], np.ndarray]:
        """Predicts the most probable answer for each example of a batch.

        Args:
            raw: dict of arrays or tensors, as for a call.

        Returns:
            A list of str; and their logits, float32 `(batch,)`.

        Raises:
            InputError: If an input is missing or has a wrong shape, or an example
                has a fault, such as an image without a valid region.
        """
        inputs = self.prepare_inputs(self.read_inputs(raw, check=True))
        if "logits" not in self._compiled_functions:
            self._compiled_functions["logits"] = compile_function(
                lambda inputs: self(inputs, training=False), self.variables
            )
        logits = ops.cast(self._compiled_functions["logits"](inputs), "float32")
        best = ops.convert_to_numpy(ops.argmax(logits, axis=-1))
        scores = ops.convert_to_numpy(ops.max(logits, axis=-1))
        return [self.answers[index] for index in best], scores
