from typing import Any

import tensorflow as tf

from keras_caption.models.answering import Answering
from keras_caption.serving.answers import answer_endpoints
from keras_caption.serving.rest_values import DEFAULT
from keras_caption.serving.saved_model_export import generation_endpoints
from keras_caption.serving.signature import Signature


def signatures_of(model: Any) -> dict[str, Signature]:
    """The signatures that an export of a model has, by name, as functions of Python.

    Args:
        model: Of `keras_caption.serving.export`.

    Raises:
        InputError: As `export` raises it.
    """
    if isinstance(model, Answering):
        endpoints = answer_endpoints(model)
    else:
        endpoints = generation_endpoints(model, model.decoding)

    def signature(function, specs):
        def trace():
            compiled = tf.function(function, autograph=False)
            return compiled.get_concrete_function(**specs)

        return Signature(specs, {}, trace)

    signatures = {name: signature(*endpoint) for name, endpoint in endpoints.items()}
    default = signatures["photos" if "photos" in signatures else "features"]
    return {DEFAULT: default, **signatures}
