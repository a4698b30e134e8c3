import contextlib
from collections.abc import Iterator

import keras

CHANNELS_LAST = "channels_last"


@contextlib.contextmanager
def keras_defaults() -> Iterator[None]:
    """Makes networks of photos as if nothing were set in Keras, also as a decorator.

    Layers that are told neither the order of channels nor their precision take both
    from the process: from `~/.keras/keras.json`, which another program may have
    written, or from the precision that a captioner is trained in. Features would be
    others than those that it is trained on, or none.
    """
    channels, floats = keras.config.image_data_format(), keras.config.floatx()
    policy = keras.config.dtype_policy()
    try:
        keras.config.set_image_data_format(CHANNELS_LAST)
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")
        yield
    finally:
        keras.config.set_image_data_format(channels)
        keras.config.set_floatx(floats)
        keras.config.set_dtype_policy(policy)
