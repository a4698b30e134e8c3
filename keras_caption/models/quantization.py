"""Quantized layers of a captioner, and how its config records them."""

import contextlib
import gc

import keras


@contextlib.contextmanager
def short_collections():
    """Spares garbage collections all that lives: Keras has one for each layer."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def quantization_of(model):
    """Which layers of a model are quantized, and how.

    Returns:
        List of pairs: a layer's number among all layers of the model, and its
        serialized quantization config.
    """
    return [
        [number, keras.saving.serialize_keras_object(layer.quantization_config)]
        for number, layer in enumerate(model._flatten_layers())
        if layer.quantization_mode
    ]


def quantize_layers(model, quantized):
    """Quantizes layers of a new model as those of another were.

    Args:
        model: Captioner.
        quantized: What `quantization_of` returned, its configs deserialized.
    """
    layers = list(model._flatten_layers())
    with short_collections():
        for number, config in quantized:
            if not layers[number].quantization_mode:
                layers[number].quantize(config=config)
