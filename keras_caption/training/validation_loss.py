from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from keras_caption.base.compilation import compile_function
from keras_caption.base.progress import progress


class ValidationLoss:
    """Computes the loss of a model on a split, averaged over all valid tokens.

    A call returns the loss, a float, for the current weights of the model.

    Args:
        model: A compiled model.
        batches: Finite iterable of inputs, targets and weights, see
            `keras_caption.text.teacher_forcing`.
        jit_compile: bool, whether XLA compiles the loss, for each shape of a batch.
    """

    def __init__(self, model: Any, batches: Iterable[Any], jit_compile: bool = False):
        self.batches = batches

        def sums(inputs, targets, weights):
            tokens = ops.sum(ops.cast(weights, "float32"))
            loss = model.loss(targets, model(inputs, training=False), weights)
            # Means of batches are weighted by their tokens, of which the last has
            # fewer.
            return loss * tokens, tokens

        self._sums = compile_function(sums, model.variables, jit_compile)

    def __call__(self) -> float:
        batches = progress(self.batches, "Validation loss", unit="batches", leave=False)
        tensors = (keras.tree.map_structure(ops.convert_to_tensor, x) for x in batches)
        sums = [tuple(map(float, self._sums(*batch))) for batch in tensors]
        losses, tokens = map(sum, zip(*sums, strict=True))
        return losses / tokens
