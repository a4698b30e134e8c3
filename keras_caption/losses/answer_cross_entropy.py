from typing import Any

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.losses.mean_loss import MeanLoss


@keras.saving.register_keras_serializable("keras_caption")
class AnswerCrossEntropy(MeanLoss):
    """Cross-entropy of soft scores of answers, averaged over the global batch.

    For scores s and logits z of an example's answers, it is the sum of binary
    cross-entropies, for classifiers by which several answers may be right,

        loss = - sum_i (s_i log sigmoid(z_i) + (1 - s_i) log(1 - sigmoid(z_i)))

    of which MCAN's released code takes the sum over a batch; or, with
    `multi_label=False`,

        loss = - sum_i s_i log softmax(z)_i

    in which a question with an unknown answer, all of whose scores are 0, has no loss.

    Args:
        multi_label: bool, attribute of the classifier. Defaults to `True`.
        name: str, name of the loss.
        **kwargs: Further arguments of `keras.losses.Loss`.

    Call arguments:
        y_true: float `(batch, number of answers)`, scores from 0 to 1.
        y_pred: float `(batch, number of answers)`, logits.
    """

    def __init__(
        self,
        multi_label: bool = True,
        name: str = "answer_cross_entropy",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.multi_label = multi_label

    def call(
        self,
        y_true: Float[Tensor, "batch answers"],
        y_pred: Float[Tensor, "batch answers"],
    ) -> Float[Tensor, " batch"]:
        y_pred = ops.cast(y_pred, "float32")  # a sum of thousands of terms
        y_true = ops.cast(y_true, "float32")
        if not self.multi_label:
            return -ops.sum(y_true * ops.log_softmax(y_pred), axis=-1)
        losses = ops.binary_crossentropy(y_true, y_pred, from_logits=True)
        return ops.sum(losses, axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "multi_label": self.multi_label}
