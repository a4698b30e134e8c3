import contextlib
from collections.abc import Iterator

import keras

CHANNELS_LAST = "channels_last"


@contextlib.contextmanager
def keras_defaults() -> Iterator[None]:
    """Sets Keras's defaults during a `with` block, or in a decorated function.

    Networks of photos are made in it. Their layers would otherwise take the order of
    channels and the precision from the settings of the process: from
    `~/.keras/keras.json`, which another program may have written, or from the precision
    of a training. Features would then differ from those of the training data, or the
    network could not be made.
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
