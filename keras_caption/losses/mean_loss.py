from typing import Any

import keras
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.replicas import part_of_mean


class MeanLoss(keras.losses.Loss):
    """Base class of losses that are means over the global batch.

    With several replicas of a TensorFlow strategy, a loss is this replica's part of the
    mean, see `replicas.part_of_mean`. Losses of Keras average over the
    replica's rows instead, which is another gradient if replicas have unequal rows.

    With another `reduction` than `"sum_over_batch_size"`, it is as in Keras.
    """

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Tensor | None = None
    ) -> Tensor:
        if self.reduction != "sum_over_batch_size":
            return super().__call__(y_true, y_pred, sample_weight)
        y_pred = ops.convert_to_tensor(y_pred, dtype=self.dtype)
        return part_of_mean(self.call(y_true, y_pred), sample_weight)
