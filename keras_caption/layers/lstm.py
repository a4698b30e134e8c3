from typing import Any

import keras


def make_lstm(units: int, **kwargs: Any) -> keras.layers.LSTM:
    """An LSTM that returns the outputs of all steps, and that XLA compiles on a GPU.

    On a GPU, Keras's default is cuDNN's LSTM. XLA does not compile it, and it fails on
    a batch that has a sequence without a valid step, or one whose padding is not at its
    end.

    Args:
        units: int, number of cells.
        **kwargs: Arguments of `keras.layers.LSTM`.
    """
    return keras.layers.LSTM(units, return_sequences=True, use_cudnn=False, **kwargs)
