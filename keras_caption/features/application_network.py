import inspect
from collections.abc import Callable
from typing import Any

import keras

from keras_caption.errors import InputError, hint
from keras_caption.formats.faults import reason_of


def applications() -> list[str]:
    """Names of the networks of `keras.applications`."""
    of_module = vars(keras.applications)
    return sorted(name for name in of_module if inspect.isfunction(of_module[name]))


def make_application(
    name: str,
    layer: str | None,
    image_size: int,
    arguments: dict[str, Any],
    weights: str | None,
) -> tuple[keras.Model, Callable]:
    """Makes a network of `keras.applications`.

    Args:
        name: str, of `applications`.
        layer, image_size, arguments, weights: Of `Extractor`.

    Returns:
        The network, and the function that normalizes pixels for it, which may change
        NumPy arrays in place.

    Raises:
        InputError: If the network has no such layer, or cannot be made.
    """
    make = getattr(keras.applications, name)
    try:
        network = make(
            include_top=False,
            weights=weights,
            input_shape=(image_size, image_size, 3),
            **arguments,
        )
    except Exception as error:  # a download that fails has no class of its own
        advice = ""
        if "URL fetch failure" in str(error):
            advice = "; without a network, name a file of its weights without the top"
        raise InputError(
            f"{name} with weights={weights!r} cannot be made: "
            f"{reason_of(error)}{advice}."
        ) from None
    if layer is not None:
        names = [of_network.name for of_network in network.layers]
        if layer not in names:
            raise InputError(f"{name} has no layer {layer!r}. {hint(layer, names)}")
        network = keras.Model(network.input, network.get_layer(layer).output)
    return network, inspect.getmodule(make).preprocess_input
