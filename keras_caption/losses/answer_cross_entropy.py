from typing import Any

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.arguments import Tensor


@keras.saving.register_keras_serializable("keras_caption")
class AnswerCrossEntropy(keras.losses.Loss):
    """Binary cross-entropy of soft scores of answers, summed over the answers.

        loss = - sum_i (s_i log sigmoid(z_i) + (1 - s_i) log(1 - sigmoid(z_i)))

    for scores s and logits z. It is averaged over the examples of a batch; MCAN's
    released code takes the sum.

    Args:
        name: str, name of the loss.
        **kwargs: Further arguments of `keras.losses.Loss`.

    Call arguments:
        y_true: float `(batch, number of answers)`, scores from 0 to 1.
        y_pred: float `(batch, number of answers)`, logits.
    """

    def __init__(self, name: str = "answer_cross_entropy", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def call(
        self,
        y_true: Float[Tensor, "batch answers"],
        y_pred: Float[Tensor, "batch answers"],
    ) -> Float[Tensor, " batch"]:
        y_pred = ops.cast(y_pred, "float32")  # a sum of thousands of terms
        y_true = ops.cast(y_true, "float32")
        losses = ops.binary_crossentropy(y_true, y_pred, from_logits=True)
        return ops.sum(losses, axis=-1)


def answer_loss(multi_label: bool) -> keras.losses.Loss:
    """Makes the loss of a `keras_caption.models.Classifier`.

    Args:
        multi_label: bool, attribute of the classifier. If `True`, the loss is
            `AnswerCrossEntropy`; if `False`, `keras.losses.CategoricalCrossentropy` of
            logits, for which a question with an unknown answer, all of whose scores are
            0, has no loss.
    """
    if multi_label:
        return AnswerCrossEntropy()
    return keras.losses.CategoricalCrossentropy(from_logits=True)
