import keras
from keras import ops

from keras_caption.arguments import ShareBelowOne, check


@keras.saving.register_keras_serializable("keras_caption")
class CaptionCrossEntropy(keras.losses.Loss):
    """Cross-entropy of the words of a caption, with label smoothing.

    The target distribution is `1 - label_smoothing` at the true word plus
    `label_smoothing / vocabulary_size` everywhere, as in
    `keras.losses.CategoricalCrossentropy`, but it is never written out.

    Args:
        label_smoothing: float, at least 0 and less than 1.

    Call arguments:
        y_true: int `(..., T)`.
        y_pred: Logits, `(..., T, vocabulary_size)`.
        sample_weight: float `(..., T)`.
    """

    def __init__(self, label_smoothing=0.0, name="caption_cross_entropy", **kwargs):
        super().__init__(name=name, **kwargs)
        check(ShareBelowOne, label_smoothing=label_smoothing)
        self.label_smoothing = label_smoothing

    def call(self, y_true, y_pred):
        loss = ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        if not self.label_smoothing:
            return loss
        # -log p_i = (log sum exp z) - z_i, averaged over the smoothed targets.
        true = ops.take_along_axis(y_pred, ops.expand_dims(y_true, -1), axis=-1)
        above_mean = ops.squeeze(true, -1) - ops.mean(y_pred, axis=-1)
        return loss + self.label_smoothing * above_mean

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}
