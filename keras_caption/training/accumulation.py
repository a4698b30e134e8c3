from typing import Any

import keras
from keras import ops, tree

from keras_caption.base.arguments import Tensor
from keras_caption.base.compilation import one_after_another, setting_of
from keras_caption.base.errors import need_backend
from keras_caption.base.replicas import sum_over_replicas
from keras_caption.models.replica_training import ReplicaTraining


class AccumulatingTrainer(ReplicaTraining, keras.Model):
    """Trains a model by updates that accumulate the gradients of several batches.

    An update descends the mean loss over all valid tokens of its batches, however
    unevenly tokens are distributed among them: it equals the update of one batch that
    holds all the examples. (Keras's `gradient_accumulation_steps` averages the means of
    batches, in which a token of a small batch weighs more.) Batches are computed one
    after the other, which takes less memory than one large batch. The compiled step
    unrolls them, so that compilation takes longer with more batches.

    An update is one step: no gradient is carried over between steps or epochs. The log
    `loss` is the mean over all tokens of the epoch.

    Train with `fit`, which uses the model's optimizer and loss; `compile` replaces them
    in both the trainer and the model.

    Args:
        model: The model, whose loss is a mean over its targets.

    Raises:
        InputError: If the backend of Keras is PyTorch.

    A step takes a tuple of batches, each of inputs, targets and, optionally, weights of
    the targets, see `keras_caption.batches.grouped`.

    Example:

    ```python
    groups = kc.batches.grouped(batches, 4)
    kc.training.AccumulatingTrainer(model).fit(groups, steps_per_epoch=25)
    ```
    """

    def __init__(self, model: Any, **kwargs: Any):
        need_backend("Accumulation of gradients", "TensorFlow", "JAX")
        super().__init__(dtype=model.dtype_policy, **kwargs)
        self.model = model
        self.tracker = keras.metrics.Mean(name="loss")
        self.built = True
        if model.compiled:
            self.compile(model.optimizer, model.loss, jit_compile=setting_of(model))

    def compile(self, optimizer: Any, loss: Any, **kwargs: Any) -> None:
        """Compiles the model too, which saves optimizer and loss."""
        super().compile(optimizer, **kwargs)
        self.model.compile(self.optimizer, loss, **kwargs)

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        return [self.tracker]

    def train_step(self, *args: Any) -> Any:
        return self.stateless(self.update, *args)

    def update(self, batches: tuple[Any, ...]) -> dict[str, Tensor]:
        """Updates the model and the log by several batches; returns the log."""
        unpacked = [keras.utils.unpack_x_y_sample_weight(batch) for batch in batches]
        counts = [sum_over_replicas(count_targets(*batch)) for batch in unpacked]
        # An update without valid targets has the loss 0, not NaN.
        total = ops.maximum(sum(counts), 1e-9)
        # Loss scaling of half precision; 1 in float32.
        scale = self.optimizer.scale_loss(1.0)

        def loss_of(inputs, targets, weights, share):
            predictions = self.model(inputs, training=True)
            loss = self.model.compute_loss(inputs, targets, predictions, weights)
            return loss * share * scale, loss * share

        gradients = [ops.zeros_like(v.value) for v in self.trainable_variables]
        loss = 0.0
        for batch, count in zip(unpacked, counts, strict=True):
            # In any other order, all batches may run at once, with the activations of
            # all in memory.
            gradients, batch = one_after_another(gradients, batch)
            batch_gradients, batch_loss = self.gradients(loss_of, *batch, count / total)
            gradients = [x + y for x, y in zip(gradients, batch_gradients, strict=True)]
            loss = loss + batch_loss
        self.descend(gradients)
        self.tracker.update_state(sum_over_replicas(loss), sample_weight=total)
        return {"loss": self.tracker.result()}


def count_targets(inputs: Any, targets: Any, weights: Tensor | None) -> Tensor:
    """Counts the valid targets of a batch, its weight in an update, float32."""
    if weights is not None:
        return ops.sum(ops.cast(weights, "float32"))
    return ops.cast(sum(map(ops.size, tree.flatten(targets))), "float32")
