from typing import Any

import keras
from jaxtyping import Bool, Float, Int, Int32
from keras import ops

from keras_caption.base.arguments import ShareBelowOne, Tensor, check
from keras_caption.base.errors import InputError
from keras_caption.losses.mean_loss import MeanLoss
from keras_caption.text import EOS


@keras.saving.register_keras_serializable("keras_caption")
@keras.saving.register_keras_serializable("keras_caption", "CaptionCrossEntropy")  # 0.1
class SequenceCrossEntropy(MeanLoss):
    """Cross-entropy of the tokens of sequences, with label smoothing.

    The loss is the mean over all valid tokens of the global batch.

    With label smoothing s and V tokens in the vocabulary, the target distribution is

        q(target token) = 1 - s
        q(PAD) = q(BOS) = 0, which are never targets
        q(any other token) = s / (V - 3), including EOS and UNK

    and the loss is `- sum_i q_i log p_i`. It equals the Kullback-Leibler divergence of
    AoANet's released code, whose vocabulary has one token for PAD, BOS and EOS, up to
    the entropy of q, a constant. (`keras.losses.CategoricalCrossentropy` gives s / V to
    all tokens, including the target token.)

    Args:
        label_smoothing: float in [0, 1), the probability s of all tokens other than the
            target. Defaults to 0.
        name: str, name of the loss.
        **kwargs: Further arguments of `keras.losses.Loss`.

    Raises:
        InputError: If `label_smoothing` is out of range, or a batch has no targets.

    Call arguments:
        y_true: int `(..., T)`, target tokens.
        y_pred: float `(..., T, vocabulary_size)`, logits.
        sample_weight: bool or float `(..., T)`, weights of the mean, usually True for
            valid tokens and False for padding. Defaults to `None`, all valid.
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        name: str = "sequence_cross_entropy",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        check(ShareBelowOne, label_smoothing=label_smoothing)
        self.label_smoothing = label_smoothing

    def __call__(
        self,
        y_true: Int[Tensor, "... T"],
        y_pred: Float[Tensor, "... T vocabulary_size"],
        sample_weight: Bool[Tensor, "... T"] | Float[Tensor, "... T"] | None = None,
    ) -> Float[Tensor, ""]:
        if y_true is None:
            raise InputError(
                "The training batches hold no targets: map "
                "`keras_caption.text.teacher_forcing` over them."
            )
        return super().__call__(y_true, y_pred, sample_weight)

    def call(
        self,
        y_true: Int[Tensor, "... T"],
        y_pred: Float[Tensor, "... T vocabulary_size"],
    ) -> Float[Tensor, "... T"]:
        logits = ops.reshape(y_pred, (-1, y_pred.shape[-1]))
        targets = ops.reshape(ops.cast(y_true, "int32"), (-1,))
        losses = smoothed_cross_entropy(targets, logits, self.label_smoothing)
        return ops.reshape(losses, ops.shape(y_true))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def smoothed_cross_entropy(
    targets: Int32[Tensor, " N"],
    logits: Float[Tensor, "N vocabulary_size"],
    label_smoothing: float,
) -> Float[Tensor, " N"]:
    """Cross-entropy of each token, see `SequenceCrossEntropy`.

    The gradient with respect to the logits is p - q. Logits are the largest tensor of a
    training step; the only other tensor of their size that is kept for the gradient is
    p - q itself. `keras.ops.categorical_crossentropy` would keep q and p; and for
    `keras.ops.custom_gradient`, TensorFlow would keep the graph of each training step,
    as long as the process runs.

    Args:
        targets: int32 `(N,)`.
        logits: float `(N, vocabulary_size)`.
        label_smoothing: float, the probability of all tokens other than the target.

    Returns:
        float `(N,)`.
    """
    vocabulary_size = logits.shape[-1]
    other = label_smoothing / (vocabulary_size - 3) if label_smoothing else 0.0
    # q, except at the target; 3 tokens (PAD, BOS, the target) have no part of s.
    others = ops.where(ops.arange(vocabulary_size) >= EOS, other, 0.0)
    others = ops.cast(others, logits.dtype)
    targets = ops.expand_dims(targets, 1)
    kept = ops.stop_gradient(logits)
    # The usual shift: exp cannot overflow.
    greatest = ops.max(kept, axis=-1, keepdims=True)
    exp = ops.exp(kept - greatest)
    total = ops.sum(exp, axis=-1, keepdims=True)
    target_logits = ops.take_along_axis(kept, targets, axis=-1)
    losses = greatest + ops.log(total)
    losses -= (1 - label_smoothing - other) * target_logits
    if label_smoothing:
        losses -= ops.matmul(kept, ops.expand_dims(others, 1))
    # Compared, and not scattered: devices that share a batch would exchange where its
    # targets are.
    is_target = ops.arange(vocabulary_size, dtype="int32") == targets
    others_part = others if label_smoothing else 0.0
    gradient = exp / total - ops.where(is_target, 1 - label_smoothing, others_part)
    # Zero, whose gradient with respect to the logits is `gradient`.
    zero = ops.sum(ops.stop_gradient(gradient) * (logits - kept), axis=-1)
    return losses[:, 0] + zero
