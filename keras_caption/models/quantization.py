"""Quantized layers of a model, and their record in its config."""

import contextlib
import gc
from typing import Any

import keras


@contextlib.contextmanager
def short_collections():
    """Keeps garbage collections short: Keras starts one for each quantized layer."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def quantization_of(model: keras.Model) -> list[list[Any]]:
    """Lists the quantized layers of a model with their configs.

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
    """Quantizes layers of a new model as in a saved one.

    Args:
        model: Keras model, such as a `keras_caption.models.Captioner`.
        quantized: List, as `quantization_of` returns it, with deserialized configs.
    """
    layers = list(model._flatten_layers())
    with short_collections():
        for number, config in quantized:
            if not layers[number].quantization_mode:
                layers[number].quantize(config=config)
