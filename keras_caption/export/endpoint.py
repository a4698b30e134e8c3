"""Signatures of exported models, and their inputs."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_caption.inputs import InputKind

NONE = inspect.Parameter.empty


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of a signature.

    Attributes:
        shape: tuple of int and `None`.
        dtype: `tf.DType`.
        example: Value for requests that warm a server up.
        has_default: bool, whether the example is the default value, which TensorFlow
            Serving takes if a request lacks the input. Such inputs come last.
    """

    shape: tuple[int | None, ...]
    dtype: tf.DType
    example: Any
    has_default: bool = False

    @property
    def tensor(self) -> tf.Tensor:
        """The example as a tensor."""
        return tf.constant(self.example, self.dtype)


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """A signature of an exported model.

    Attributes:
        function: Function of the inputs, as keywords, that returns a dict of tensors.
        inputs: dict from name to `Input`.
        outputs: dict from name to `tf.TensorSpec`, known before the function is traced.
    """

    function: Callable[..., dict[str, Any]]
    inputs: dict[str, Input]
    outputs: dict[str, tf.TensorSpec]

    @property
    def example(self) -> dict[str, tf.Tensor]:
        """A request that warms a server up."""
        return {name: x.tensor for name, x in self.inputs.items()}

    def traced(self) -> Any:
        """The function for `tf.saved_model.save`, with default values of inputs."""
        # TensorFlow saves default values of named parameters only: `**kwargs` has none.
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature(
            [
                inspect.Parameter(
                    name, kind, default=x.tensor if x.has_default else NONE
                )
                for name, x in self.inputs.items()
            ]
        )

        def bound(*args, **kwargs):
            return self.function(**signature.bind(*args, **kwargs).arguments)

        call: Any = bound  # functions may have a signature of their own
        call.__signature__ = signature
        specs = [
            tf.TensorSpec(x.shape, x.dtype, name) for name, x in self.inputs.items()
        ]
        return tf.function(call, specs, autograph=False)


def default_of(endpoints: dict[str, Endpoint]) -> str:
    """The name of the signature that is also `serving_default`."""
    return "photos" if "photos" in endpoints else "features"


def inputs_of(kinds: list[InputKind], as_tokens: bool = False) -> dict[str, Input]:
    """The inputs of signatures, by name.

    Args:
        kinds: List of `InputKind` that a model reads.
        as_tokens: bool, whether texts are token ids in place of strings.
    """
    inputs = {}
    for kind in kinds:
        specs, example = kind.served_specs(), kind.example()
        if as_tokens and any(spec.dtype == "string" for spec in specs.values()):
            specs = kind.specs
            texts = {name: tf.constant(x) for name, x in example.items()}
            example = kind.from_served(texts)
        for name, spec in specs.items():
            dtype = tf.as_dtype(spec.dtype)
            inputs[name] = Input(tuple(spec.shape), dtype, np.asarray(example[name]))
    return inputs


def photo_inputs() -> dict[str, Input]:
    """The input of signatures that read files of photos."""
    grey = tf.fill((32, 32, 3), tf.constant(128, tf.uint8))
    return {"image_bytes": Input((None,), tf.string, [tf.io.encode_png(grey).numpy()])}
