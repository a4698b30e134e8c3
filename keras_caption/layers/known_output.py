import inspect
from typing import Any

import keras

from keras_caption.layers.sockets import is_unbuilt


class KnownOutput(keras.layers.Layer):
    """A layer that says what it returns, so that Keras need not run `call` to find out.

    Keras runs the `call` of a layer of a functional model on symbols when the model is
    made or loaded, which takes most of that time. It still does for attention scores,
    and where a layer within is not built yet, because running builds it.
    """

    def output_spec(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        """What is returned for these inputs, the first argument of `call`."""
        return keras.KerasTensor(inputs.shape, self.compute_dtype)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(self.call).bind(*args, **kwargs).arguments
        unbuilt = any(map(is_unbuilt, self._flatten_layers()))
        if given.get("return_attention_scores") or unbuilt:
            return super().compute_output_spec(*args, **kwargs)
        return self.output_spec(next(iter(given.values())))
