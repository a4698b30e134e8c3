import keras
from keras import ops

from keras_caption.arguments import ShareBelowOne, check
from keras_caption.errors import InputError
from keras_caption.replicas import place_among_replicas, sum_over_replicas
from keras_caption.text import EOS


@keras.saving.register_keras_serializable("keras_caption")
class CaptionCrossEntropy(keras.losses.Loss):
    """Cross-entropy of the tokens of captions, with label smoothing.

    The mean over all valid tokens of the global batch: with several replicas, their
    losses average to it, however unevenly the tokens are spread over them.

    With label smoothing s and V tokens in the vocabulary, the target distribution is

        q(true token) = 1 - s
        q(PAD) = q(BOS) = 0, which no caption has to predict
        q(any other token) = s / (V - 3), EOS and UNK among them

    and the loss `- sum_i q_i log p_i`. It is AoANet's released one, whose vocabulary
    has one token for PAD, BOS and EOS, up to the entropy of q, a constant that the
    divergence there leaves out. (`keras.losses.CategoricalCrossentropy` adds s / V to
    all tokens, the true one included.)

    Args:
        label_smoothing: float, at least 0 and below 1: the share s of the probability
            that goes to other tokens than the true one.

    Raises:
        InputError: If the share is out of range, or a batch without targets.

    Call arguments:
        y_true: int `(..., T)`.
        y_pred: Logits, `(..., T, vocabulary_size)`.
        sample_weight: bool or float `(..., T)`, weights of the mean, usually True for
            valid tokens and False for padding; if omitted, all tokens are valid.
    """

    def __init__(self, label_smoothing=0.0, name="caption_cross_entropy", **kwargs):
        super().__init__(name=name, **kwargs)
        check(ShareBelowOne, label_smoothing=label_smoothing)
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        if y_true is None:
            raise InputError(
                "The batches to train on hold no targets: map "
                "`keras_caption.data.teacher_forcing` over them."
            )
        if sample_weight is not None:
            sample_weight = average_one(sample_weight)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        loss = ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        if not self.label_smoothing:
            return loss
        # -log p_i = (log sum exp z) - z_i, averaged over the smoothed targets.
        true = ops.take_along_axis(y_pred, ops.expand_dims(y_true, -1), axis=-1)
        true = ops.squeeze(true, -1)
        others = ops.sum(y_pred[..., EOS:], axis=-1) - true
        return loss + self.label_smoothing * (true - others / (y_pred.shape[-1] - 3))

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def average_one(weights):
    """Scales weights so that their mean over the positions of all replicas is 1.

    Replicas count alike in that mean, as they do in Keras's mean of a loss, also
    where one has fewer positions than another.
    """
    weights = ops.cast(weights, "float32")
    positions = ops.cast(ops.size(weights), "float32")
    _, replicas = place_among_replicas()
    share = sum_over_replicas(ops.sum(weights)) / (replicas * positions)
    return weights / ops.maximum(share, 1e-9)
