"""Helpers for layers that are given other layers: sockets, norms by name, masks."""

import inspect
from typing import Any

import keras
from keras import ops

from keras_caption.base.arguments import Shape, Tensor
from keras_caption.base.errors import InputError
from keras_caption.layers.instance_normalization import InstanceNormalization

# Functions that make a normalization layer from `affine`, whether it learns a gain and
# an offset, and from a layer's keyword arguments, with `epsilon` if the user chose one.
NORMS = {
    "instance": lambda affine, **kwargs: InstanceNormalization(affine, **kwargs),
    # Ours: its two steps.
    "instance_centre": lambda affine, **kwargs: InstanceNormalization(
        affine, scaled=False, **kwargs
    ),
    "instance_scale": lambda affine, **kwargs: InstanceNormalization(
        affine, centred=False, **kwargs
    ),
    "batch": lambda affine, **kwargs: keras.layers.BatchNormalization(
        center=affine, scale=affine, **kwargs
    ),
    "layer": lambda affine, **kwargs: keras.layers.LayerNormalization(
        center=affine, scale=affine, **kwargs
    ),
}


def make_norm(
    identifier: str | keras.layers.Layer | None,
    affine: bool,
    epsilon: float | None,
    **kwargs: Any,
) -> keras.layers.Layer | None:
    """Makes the normalization layer of a name; layers and `None` pass through.

    Args:
        identifier: The name, a layer or `None`.
        affine: bool, whether it learns a gain and an offset.
        epsilon: float, added to the variance, or `None` for the layer's default.
        **kwargs: Further arguments of the layer, such as `dtype` and `name`.

    Raises:
        InputError: If the name is not one of `NORMS`.
    """
    if identifier is None or isinstance(identifier, keras.layers.Layer):
        return identifier
    if identifier not in NORMS:
        raise InputError(
            "A query or key norm must be None, a layer or one of "
            f"{', '.join(map(repr, NORMS))}. Received: {identifier!r}"
        )
    if epsilon is not None:
        kwargs["epsilon"] = epsilon
    return NORMS[identifier](affine, **kwargs)


def size_of(shape: Shape) -> int:
    """The size of each item of an input: the last dimension of its shape.

    Raises:
        InputError: If it is not known, as weights need it.
    """
    *_, size = shape
    if size is None:
        raise InputError(f"The last dimension of inputs should be known: {shape}.")
    return size


def build_once(layer: keras.layers.Layer | None, *shapes: Shape) -> None:
    """Builds a user's layer as its first call would, unless it is built.

    Keras's contract: a `build` of one argument takes the shape of the first input;
    in a `build` of several, `x_shape` is the shape of the input `x` of `call`. A layer
    without a `build` of its own is left to its first call.

    Args:
        layer: Keras layer, or `None`, which is skipped.
        *shapes: Shapes of the inputs of `call`, in the order of its arguments.
    """
    if layer is None or not is_unbuilt(layer):
        return
    expected = inspect.signature(layer.build).parameters
    if len(expected) == 1:
        layer.build(shapes[0])
        return
    inputs = inspect.signature(layer.call).parameters
    # Not strict: `call` may have further, optional inputs without shapes here.
    named = zip((f"{name}_shape" for name in inputs), shapes, strict=False)
    layer.build(**{name: shape for name, shape in named if name in expected})


def is_unbuilt(layer: keras.layers.Layer) -> bool:
    """Whether a layer has a `build` of its own, and is not built yet."""
    return not layer.built and type(layer).build is not keras.layers.Layer.build


def call_with_mask(layer: keras.layers.Layer, x: Tensor, mask: Tensor | None) -> Tensor:
    """Computes `layer(x, mask=mask)`, or `layer(x)` if its `call` takes no mask."""
    if "mask" in inspect.signature(layer.call).parameters:
        return layer(x, mask=mask)
    return layer(x)


def normalize(
    x: Tensor, norm: keras.layers.Layer | None, mask: Tensor | None
) -> Tensor:
    """Normalizes `x` over its valid items; the identity if `norm` is `None`."""
    return x if norm is None else call_with_mask(norm, x, mask)


def combine_masks(
    value_mask: Tensor | None, attention_mask: Tensor | None
) -> Tensor | None:
    """Combines masks of items, `(batch, M)`, and of pairs, `(batch, T, M)`."""
    if value_mask is None:
        return attention_mask
    value_mask = ops.expand_dims(value_mask, 1)
    if attention_mask is None:
        return value_mask
    return ops.logical_and(value_mask, attention_mask)
