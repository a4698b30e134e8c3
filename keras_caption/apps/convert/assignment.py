from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_caption.base.errors import InputError


def check_shapes(
    tensors: dict[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Compares shapes of tensors with a model's sizes before it allocates memory.

    Args:
        tensors: dict from name to NumPy array.
        shapes: dict from name to shape.

    Raises:
        InputError: If a tensor is missing, or has another shape.
    """
    for name, shape in shapes.items():
        actual = tensors[name].shape if name in tensors else "nothing"
        if actual != shape:
            raise InputError(
                f"the checkpoint's {name} should have shape {shape}, received {actual}."
            )


def check_fixed(options: dict[str, Any], fixed: dict[str, Any], what: str) -> None:
    """Raises `InputError` if an option has another value than can be converted.

    Args:
        options: dict, the options of a checkpoint.
        fixed: dict from names to the only values; an option may be missing.
        what: str, the models, for the message.
    """
    for name, value in fixed.items():
        if options.get(name, value) != value:
            raise InputError(
                f"Only {what} with {name}={value} can be converted; this one has "
                f"{name}={options[name]}."
            )


class Assignment:
    """Pairs the variables of a model with the tensors of a PyTorch checkpoint.

    Args:
        tensors: dict from name to NumPy array.
    """

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.values: list[tuple[keras.Variable, np.ndarray]] = []
        self.used: set[str] = set()
        self.problems: list[str] = []

    def take(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Takes a tensor, float32 of this shape; `run` reports its problems."""
        self.used.add(name)
        if name not in self.tensors:
            self.problems.append(f"{name} is missing")
            return np.zeros(shape, "float32")
        tensor = self.tensors[name]
        if tensor.shape != tuple(shape):
            self.problems.append(f"{name} has shape {tensor.shape}, not {tuple(shape)}")
            return np.zeros(shape, "float32")
        if not np.isfinite(tensor).all():
            self.problems.append(f"{name} is not finite")
        return tensor.astype("float32")

    def add(self, variable: keras.Variable, value: np.ndarray) -> None:
        """Pairs a variable with its value."""
        self.values.append((variable, value))

    def dense(self, layer: keras.layers.Layer, name: str) -> None:
        """Pairs a dense layer with an `nn.Linear`."""
        units_in, units_out = layer.kernel.shape
        self.add(layer.kernel, self.take(f"{name}.weight", (units_out, units_in)).T)
        self.add(layer.bias, self.take(f"{name}.bias", (units_out,)))

    def norm(self, layer: keras.layers.Layer, name: str) -> None:
        """Pairs an `UnbiasedLayerNormalization` with the authors' `LayerNorm`."""
        self.add(layer.gain, self.take(f"{name}.a_2", layer.gain.shape))
        self.add(layer.offset, self.take(f"{name}.b_2", layer.offset.shape))

    def lstm(
        self, cell: Any, name: str, suffix: str = "", rows: np.ndarray | None = None
    ) -> None:
        """Pairs an LSTM cell with an `nn.LSTMCell`, or a layer of an `nn.LSTM`.

        Args:
            cell: `keras.layers.LSTMCell`.
            name: str, name of the PyTorch module.
            suffix: str, suffix of the names of its tensors.
            rows: int array, for each input of the Keras cell, its index in the input of
                the PyTorch cell. Defaults to `None`, the same order.
        """
        for variable, part in ((cell.kernel, "ih"), (cell.recurrent_kernel, "hh")):
            weight = f"{name}.weight_{part}{suffix}"
            # PyTorch stores (units, inputs), in the same order of gates: i, f, g, o.
            kernel = self.take(weight, variable.shape[::-1]).T
            is_moved = part == "ih" and rows is not None
            self.add(variable, kernel[rows] if is_moved else kernel)
        biases = [
            self.take(f"{name}.bias_{part}{suffix}", cell.bias.shape)
            for part in ("ih", "hh")
        ]
        # PyTorch has two biases, which are only ever added.
        self.add(cell.bias, biases[0] + biases[1])

    def run(self, described_by: str) -> None:
        """Assigns all values.

        Args:
            described_by: str, name of what the checkpoint must fit, for messages.

        Raises:
            InputError: If tensors are missing, unknown, not finite or of another
                shape; the message names all of them.
        """
        unknown = [name for name in self.tensors if name not in self.used]
        problems = self.problems + [f"{name} is unknown" for name in unknown]
        if problems:
            raise InputError(
                f"The checkpoint does not fit {described_by}: {'; '.join(problems)}."
            )
        for variable, value in self.values:
            variable.assign(value)
