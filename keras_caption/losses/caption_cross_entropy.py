from typing import Any

import keras
from keras import ops

from keras_caption.arguments import ShareBelowOne, Tensor, check
from keras_caption.errors import InputError
from keras_caption.replicas import place_among_replicas, sum_over_replicas
from keras_caption.text import EOS


@keras.saving.register_keras_serializable("keras_caption")
class CaptionCrossEntropy(keras.losses.Loss):
    """Cross-entropy of the tokens of captions, with label smoothing.

    The loss is the mean over all valid tokens of the global batch: with several
    replicas, their losses average to this mean, however unevenly the tokens are
    distributed.

    With label smoothing s and V tokens in the vocabulary, the target distribution is

        q(target token) = 1 - s
        q(PAD) = q(BOS) = 0, which are never targets
        q(any other token) = s / (V - 3), EOS and UNK among them

    and the loss is `- sum_i q_i log p_i`. It equals the Kullback-Leibler divergence of
    AoANet's released code, whose vocabulary has one token for PAD, BOS and EOS, up to
    the entropy of q, a constant. (`keras.losses.CategoricalCrossentropy` adds s / V to
    all tokens, the target token included.)

    Args:
        label_smoothing: float in [0, 1), the share s of the probability that goes to
            tokens other than the target. Defaults to 0.
        name: str, name of the loss.
        **kwargs: Further arguments of `keras.losses.Loss`.

    Raises:
        InputError: If the share is out of range, or a batch has no targets.

    Call arguments:
        y_true: int `(..., T)`, target tokens.
        y_pred: float `(..., T, vocabulary_size)`, logits.
        sample_weight: bool or float `(..., T)`, weights of the mean, usually True for
            valid tokens and False for padding. Defaults to `None`, all valid.
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        name: str = "caption_cross_entropy",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        check(ShareBelowOne, label_smoothing=label_smoothing)
        self.label_smoothing = label_smoothing

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        if y_true is None:
            raise InputError(
                "The training batches hold no targets: map "
                "`keras_caption.data.teacher_forcing` over them."
            )
        if sample_weight is not None:
            sample_weight = average_one(sample_weight)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if not self.label_smoothing:
            return ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        # All of q, though it is large: the gradient is then one operation, p - q.
        # Those of a target's logit and of a sum of logits took two more passes.
        tokens = ops.arange(y_pred.shape[-1])
        is_target = tokens == ops.expand_dims(ops.cast(y_true, "int32"), -1)
        other = self.label_smoothing / (y_pred.shape[-1] - 3)
        others = ops.where(tokens >= EOS, other, 0.0)
        q = ops.where(is_target, 1.0 - self.label_smoothing, others)
        q = ops.cast(q, y_pred.dtype)
        return ops.categorical_crossentropy(q, y_pred, from_logits=True)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def average_one(weights: Tensor) -> Tensor:
    """Scales weights so that their mean over the positions of all replicas is 1.

    As in Keras's mean of a loss, every replica has the same weight in that mean, even
    if it has fewer positions than others.
    """
    weights = ops.cast(weights, "float32")
    positions = ops.cast(ops.size(weights), "float32")
    _, replicas = place_among_replicas()
    share = sum_over_replicas(ops.sum(weights)) / (replicas * positions)
    return weights / ops.maximum(share, 1e-9)
