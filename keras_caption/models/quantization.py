"""Quantized layers of a model, and how its config records them."""

import contextlib
import gc
from typing import Any

import keras


@contextlib.contextmanager
def short_collections():
    """Keeps garbage collections short, of which Keras starts one for each layer."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def quantization_of(model: keras.Model) -> list[list[Any]]:
    """Lists the layers of a model that are quantized, and how.

    Returns:
        List of pairs: a layer's number among all layers of the model, and its
        serialized quantization config.
    """
    return [
        [number, keras.saving.serialize_keras_object(layer.quantization_config)]
        for number, layer in enumerate(model._flatten_layers())
        if layer.quantization_mode
    ]


def quantize_layers(model: keras.Model, quantized: list[list[Any]]) -> None:
    """Quantizes layers of a new model as those of another one are.

    Args:
        model: `keras_caption.models.Captioner`, say.
        quantized: List, as `quantization_of` returns it, its configs deserialized.
    """
    layers = list(model._flatten_layers())
    with short_collections():
        for number, config in quantized:
            if not layers[number].quantization_mode:
                layers[number].quantize(config=config)
