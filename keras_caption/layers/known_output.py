import inspect
from typing import Any

import keras

from keras_caption.base.configs import ConfiguredLayer
from keras_caption.layers.sockets import is_unbuilt


class KnownOutput(ConfiguredLayer):
    """A layer that declares its output spec, so that Keras need not trace `call`.

    When a functional model is built or loaded, Keras traces the `call` of each layer on
    symbolic tensors, which takes most of that time. Keras still traces `call` if
    attention scores are returned, and if a sublayer is not built yet, because tracing
    builds it.
    """

    def output_spec(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        """Returns the spec of the output for the first argument of `call`."""
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        arguments = inspect.signature(self.call).bind(*args, **kwargs).arguments
        unbuilt = any(map(is_unbuilt, self._flatten_layers()))
        if arguments.get("return_attention_scores") or unbuilt:
            return super().compute_output_spec(*args, **kwargs)
        return self.output_spec(next(iter(arguments.values())))
