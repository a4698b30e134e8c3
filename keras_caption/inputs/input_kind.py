import functools
from typing import Any

import keras
import numpy as np
from jaxtyping import Bool, Float, Int, Int32, Num, UInt8
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.text import Tokenizer

# Size of each unknown dimension of `example`, such as the number of regions.
EXAMPLE_SIZE = 36


class InputKind:
    """A kind of input of models: its tensors, masks, padding, serving and figures.

    The base class describes a dense tensor of numbers, such as a grid of features.
    A kind of your own is a subclass with `keys`, and a list entry:
    `keras_caption.inputs.KINDS.append(MyKind)`. It overrides the methods that differ:

    - `optional`, `read`, `complete`, `memory_mask`, `faults`: how a batch is validated
      and masked, for Python and exported graphs alike;
    - `of_example`: which tensors of a dataset's example go into a batch;
    - `before_padding`: how an example is completed, so that zeros after it are padding;
    - `served_specs`, `from_served`, `example`: which tensors a server takes;
    - `areas`, `blank`: where attention is drawn. A different kind of figure is
      registered in `keras_caption.visualization.DRAWINGS`.

    An instance describes the inputs of this kind of one model.

    Attributes:
        keys: tuple of str, names of its tensors in batches, datasets and models. The
            first is required: an encoder with an input of this name reads the kind.
        sizes: tuple of str, arguments of models that equal the last dimensions of the
            first tensor; a dataset decides them.
        noun: str, name of one row of a batch in messages.
        greatest: int, greatest number of items after padding, or `None`.

    Args:
        specs: dict of the model's symbolic inputs; those of other kinds are ignored.
        ignored: Names of inputs that the model takes, but does not depend on.
        tokenizer: `keras_caption.text.Tokenizer` of a text input, or `None`.
    """

    keys: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    noun = "example"
    greatest: int | None = None

    def __init__(
        self,
        specs: dict[str, keras.KerasTensor],
        ignored: tuple[str, ...] = (),
        tokenizer: Tokenizer | None = None,
    ):
        self.specs = {name: specs[name] for name in self.keys if name in specs}
        self.ignored = ignored
        self.tokenizer = tokenizer

    @property
    def optional(self) -> set[str]:
        """Names of the model's inputs that a batch may lack."""
        return set()

    @functools.cached_property
    def required(self) -> list[str]:
        """Names of the model's inputs that a batch must have."""
        return [name for name in self.specs if name not in self.optional]

    def own(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Selects the tensors that are inputs of the model and of this kind."""
        return {name: tensors[name] for name in self.specs if name in tensors}

    def read(self, batch: dict[str, Tensor], model_name: str) -> dict[str, Tensor]:
        """Takes the inputs of this kind from a batch, and checks their shapes.

        Args:
            batch: dict of tensors; those of other kinds are ignored.
            model_name: str, for messages.

        Returns:
            dict of tensors.

        Raises:
            InputError: If a shape is wrong.
        """
        inputs = self.own(batch)
        for name, values in inputs.items():
            expected = self.specs[name].shape[1:]
            shape = tuple(values.shape[1:])
            if len(shape) != len(expected) or any(
                e not in (s, None) for e, s in zip(expected, shape, strict=True)
            ):
                raise InputError(
                    f"The model '{model_name}' reads {name} of shape "
                    f"{('batch', *expected)}. Received: {tuple(values.shape)}"
                )
        return inputs

    def check_counts(self, inputs: dict[str, Tensor]) -> None:
        """Checks that all tensors have as many items as the first one.

        Args:
            inputs: dict of tensors `(batch, N, ...)`.

        Raises:
            InputError: If tensors differ in their batch size or in N.
        """
        first = self.keys[0]
        for name in inputs:
            counts = [tuple(inputs[key].shape[:2]) for key in (first, name)]
            if None not in (*counts[0], *counts[1]) and counts[0] != counts[1]:
                raise InputError(
                    f"Every {self.noun} needs as many {name} as {first}. Received a "
                    f"batch of {counts[0]} {first} and {counts[1]} {name}."
                )

    def complete(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Computes inputs that a batch may lack, such as a mask.

        Args:
            inputs: dict of tensors, as `read` returns it.

        Returns:
            dict of tensors, all inputs of the encoder that are of this kind. Others
            are dropped.
        """
        return self.own(inputs)

    def memory_mask(self, inputs: dict[str, Tensor]) -> Bool[Tensor, "batch M"] | None:
        """Returns the mask of a memory that holds one item for each item of the input.

        Args:
            inputs: dict of tensors, as `complete` returns it.

        Returns:
            bool `(batch, M)`, True for valid items, or `None` if all are always valid.
        """
        return None

    def lengths(self, inputs: dict[str, Tensor]) -> Int32[Tensor, " batch"]:
        """Counts the tokens of the inputs, for limits in proportion to them.

        Args:
            inputs: dict of tensors, as `complete` returns it.

        Returns:
            int32 `(batch,)`.

        Raises:
            InputError: If inputs of this kind are not text.
        """
        raise InputError(
            f"`length_ratio` is for models of text; this one reads {self.keys[0]}."
        )

    def faults(self, inputs: dict[str, Tensor]) -> dict[str, Bool[Tensor, " batch"]]:
        """Finds the examples of a batch that no model can read.

        Args:
            inputs: dict of tensors, as `read` returns it.

        Returns:
            dict from a problem, as a phrase, to the examples that have it, bool
            `(batch,)`.
        """
        return {
            not_finite(name): has_not_finite(values)
            for name, values in self.own(inputs).items()
        }

    def before_padding(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Completes one example so that zeros after its arrays are padding.

        Args:
            inputs: dict of arrays without batch dimension, of this kind.

        Returns:
            dict of arrays, with a mask for instance.
        """
        return inputs

    @property
    def padded_inputs(self) -> list[str]:
        """Names of the model's inputs, `(batch, N, ...)`, for which zeros are padding.

        `keras_caption.inputs.padded` appends zeros to them, so that batches have few
        shapes. Empty if this kind has no padding.
        """
        return []

    @classmethod
    def of_example(cls, example: dict[str, Tensor], names: Any) -> dict[str, Tensor]:
        """Takes the inputs of models from an example of a dataset.

        Args:
            example: dict of TensorFlow tensors.
            names: Container of the names of the inputs to take.

        Returns:
            dict of tensors without batch dimension; batches pad them with zeros.
        """
        wanted = {*names} & {*example}
        return {name: example[name] for name in cls.keys if name in wanted}

    @classmethod
    def sizes_of(cls, features: dict[str, Any]) -> dict[str, int]:
        """Returns the arguments of models that a dataset decides.

        Args:
            features: TFDS features of the dataset.

        Returns:
            dict from the names in `sizes` to int; empty if the dataset lacks the kind.
        """
        if not cls.sizes or cls.keys[0] not in features:
            return {}
        dims = features[cls.keys[0]].shape[-len(cls.sizes) :]
        return dict(zip(cls.sizes, dims, strict=True))

    def served_specs(self) -> dict[str, keras.KerasTensor]:
        """Returns the inputs of an exported signature, a dict of symbolic tensors."""
        return dict(self.specs)

    def from_served(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Converts inputs of a signature to the model's, as `read` returns them."""
        return self.own(inputs)

    def to_served(self, inputs: dict[str, Tensor]) -> dict[str, np.ndarray]:
        """Converts inputs, as `complete` returns them, to those of a signature.

        Texts are tokens, as in a signature without strings.
        """
        return {
            name: ops.convert_to_numpy(inputs[name])
            for name in self.served_specs()
            if name in inputs
        }

    def example(self) -> dict[str, np.ndarray]:
        """Makes inputs of a signature for one example, to warm a server up."""
        return {
            name: np.zeros(
                [1, *(EXAMPLE_SIZE if s is None else s for s in spec.shape[1:])],
                spec.dtype,
            )
            for name, spec in self.served_specs().items()
        }

    def blank(self, inputs: dict[str, Tensor]) -> UInt8[np.ndarray, "height width 3"]:
        """Makes an image in place of one that is not known, for figures.

        Args:
            inputs: dict of tensors, as `complete` returns it, for one example.

        Returns:
            uint8 `(height, width, 3)`.
        """
        return np.full((128, 128, 3), 255, "uint8")

    def areas(self, inputs: dict[str, Tensor]) -> Float[np.ndarray, "batch M 4"] | None:
        """Returns the boxes of a memory's items on the image that shows them.

        Args:
            inputs: dict of tensors, as `complete` returns it, with further tensors of
                the examples, such as `boxes`.

        Returns:
            float `(batch, M, 4)`, x1, y1, x2, y2 divided by the image's width and
            height; or `None` if the items are not parts of an image.
        """
        return None


def not_finite(name: str) -> str:
    """Returns the problem of NaN or infinite values, as a phrase."""
    return f"has {name} that are not finite numbers"


def has_not_finite(
    values: Num[Tensor, "batch ..."], mask: Tensor | None = None
) -> Bool[Tensor, " batch"]:
    """Finds the examples with values that are NaN or infinite.

    Args:
        values: Tensor `(batch, ...)`.
        mask: bool, broadcastable to the values, True for values to check. Defaults to
            `None`, all.

    Returns:
        bool `(batch,)`.
    """
    wrong = ~ops.isfinite(ops.cast(values, "float32"))
    if mask is not None:
        wrong = ops.logical_and(wrong, mask)
    return ops.any(wrong, axis=tuple(range(1, len(values.shape))))


def count_valid(
    values: Num[Tensor, "batch N dim"], mask: Bool[Tensor, "batch N"]
) -> tuple[Num[np.ndarray, "batch N dim"], Int32[np.ndarray, " batch"]]:
    """Moves valid items to the front, in their order, and counts them."""
    values, mask = map(ops.convert_to_numpy, (values, mask))
    order = np.argsort(~mask, axis=1, kind="stable")
    values = np.take_along_axis(values, order[..., None], axis=1)
    return values, mask.sum(axis=1, dtype="int32")


def first_valid(number: Int[Tensor, " batch"], size: Any) -> Bool[Tensor, "batch N"]:
    """Computes a mask from the number of valid items of each example.

    Args:
        number: int `(batch,)`, numbers of valid items.
        size: int, number of items N.

    Returns:
        bool `(batch, N)`; False throughout where the number is more than N.
    """
    number = ops.where(number <= size, number, 0)
    return ops.arange(size) < ops.expand_dims(number, 1)
