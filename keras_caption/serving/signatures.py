from typing import Any

import numpy as np
import tensorflow as tf

from keras_caption.decoding import Decoding
from keras_caption.errors import need_tensorflow
from keras_caption.models.answering import Answering
from keras_caption.serving.answers import answer_endpoints
from keras_caption.serving.endpoint import Endpoint, default_of
from keras_caption.serving.generation import generation_endpoints
from keras_caption.serving.signature import DEFAULT, Signature


def signatures_of(model: Any) -> dict[str, Signature]:
    """The signatures of an export of a model, by name, as functions of Python.

    XLA compiles their searches if it compiles the model, see `jit_compile`.

    Args:
        model: As in `keras_caption.serving.export`.

    Raises:
        InputError: As in `export`.
    """
    endpoints = endpoints_of(model, jit_compile=model.jit_compile)
    signatures = {name: signature_of(endpoint) for name, endpoint in endpoints.items()}
    return {DEFAULT: signatures[default_of(endpoints)], **signatures}


def endpoints_of(
    model: Any, decoding: Decoding | None = None, jit_compile: bool = False
) -> dict[str, Endpoint]:
    """The endpoints of an export of a model, by name of the signature.

    Args:
        model: As in `keras_caption.serving.export`.
        decoding: `Decoding`, defaults to the model's own. Models that answer questions
            have none.
        jit_compile: bool, whether XLA compiles searches.

    Raises:
        InputError: If Keras runs on another backend than TensorFlow.
    """
    need_tensorflow("An export")
    if isinstance(model, Answering):
        return answer_endpoints(model, jit_compile)
    return generation_endpoints(model, decoding or model.decoding, jit_compile)


def signature_of(endpoint: Endpoint) -> Signature:
    """Makes a signature that is traced at its first use."""
    inputs = {
        name: tf.TensorSpec(x.shape, x.dtype, name)
        for name, x in endpoint.inputs.items()
    }
    defaults = {
        name: np.array(x.tensor) for name, x in endpoint.inputs.items() if x.has_default
    }
    return Signature(
        inputs,
        defaults,
        lambda: endpoint.traced().get_concrete_function(),
        endpoint.outputs,
    )
