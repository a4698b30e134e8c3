from typing import Any

import keras
import numpy as np
from jaxtyping import Bool
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.inputs.input_kind import (
    EXAMPLE_SIZE,
    InputKind,
    count_valid,
    first_valid,
)


class MaskedItems(InputKind):
    """Base of kinds of inputs whose mask marks valid items.

    Attributes:
        mask: str, name of the optional mask, bool `(batch, N)`, True where valid.
        number: str, name of the number of valid items, int32 `(batch,)`, the input of
            exported models in place of the mask.
    """

    mask: str
    number: str

    @property
    def is_counted(self) -> bool:
        """Whether exported models have the input `number`."""
        return True

    def read(self, batch: dict[str, Tensor], model_name: str) -> dict[str, Tensor]:
        inputs = super().read(batch, model_name)
        self.check_counts(inputs)
        return inputs

    def memory_mask(self, inputs: dict[str, Tensor]) -> Bool[Tensor, "batch N"]:
        return inputs.get(self.mask)

    @property
    def padded_inputs(self) -> list[str]:
        return [*self.specs] if self.mask in self.specs else []

    @classmethod
    def of_example(cls, example: dict[str, Tensor], names: Any) -> dict[str, Tensor]:
        """Adds a mask that is True everywhere: batches pad it with False."""
        import tensorflow as tf

        inputs = super().of_example(example, names)
        items = inputs.get(cls.keys[0])  # AutoGraph cannot transform `:=`
        if items is not None:
            inputs[cls.mask] = tf.ones(tf.shape(items)[:1], tf.bool)
        return inputs

    def served_specs(self) -> dict[str, keras.KerasTensor]:
        specs = {name: spec for name, spec in self.specs.items() if name != self.mask}
        if self.mask in self.specs and self.is_counted:
            specs[self.number] = keras.KerasTensor((None,), "int32", name=self.number)
        return specs

    def to_served(self, inputs: dict[str, Tensor]) -> dict[str, np.ndarray]:
        served, first = super().to_served(inputs), self.keys[0]
        if self.number in self.served_specs():
            served[first], served[self.number] = count_valid(
                inputs[first], inputs[self.mask]
            )
        return served

    def from_served(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Makes a mask from the number; one above N makes no item valid."""
        tensors = self.own(inputs)
        if self.number in inputs:
            size = ops.shape(tensors[self.keys[0]])[1]
            tensors[self.mask] = first_valid(inputs[self.number], size)
        return tensors

    def example(self) -> dict[str, np.ndarray]:
        example = super().example()
        if self.number in example:
            example[self.number][:] = EXAMPLE_SIZE
        return example
