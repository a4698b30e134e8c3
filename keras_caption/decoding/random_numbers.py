"""Uniform numbers that follow from a seed and a place, on every backend and device."""

from typing import Any

import keras
import numpy as np
from jaxtyping import Float32, Int
from keras import ops

from keras_caption.base.arguments import Tensor

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)  # of rounds 0 to 3, 4 to 7, and so on
PARITY = 0x1BD11BDA
ROUNDS = 20


def uniform_numbers(
    seed: Any, stream: Any, rows: Any, length: int, xp: Any = ops
) -> Float32[Tensor, "rows length"]:
    """Uniform numbers of rows, which depend on nothing but their arguments.

    Unlike those of a stateful generator, they are the same whatever the batch, the
    number of replicas, the backend and the compiler.

    Args:
        seed, stream: int or int scalar tensors, which random numbers: a seed, and the
            number of a training step, say.
        rows: int `(rows,)`, the places of the rows in all that is sampled.
        length: int, numbers of a row.
        xp: `keras.ops` or `numpy`. Defaults to `keras.ops`.

    Returns:
        float32 `(rows, length)`, in [0, 1).
    """
    rows = xp.expand_dims(xp.cast(rows, "int32") if xp is ops else rows, 1)
    places = xp.expand_dims(xp.arange(length, dtype="int32"), 0)
    rows, places = rows + 0 * places, places + 0 * rows
    bits, _ = threefry(seed, stream, rows, places, xp)
    top = shift_right(bits, 8, xp)  # as many as a float32 has
    return (ops.cast(top, "float32") if xp is ops else top.astype("float32")) * 2.0**-24


def numbers_of_samples(
    seed: int | None, places: Int[np.ndarray, " size"], samples: int, length: int
) -> Float32[np.ndarray, "size*samples length"]:
    """Uniform numbers of samples: of an example the same in whatever batch it runs.

    Args:
        seed: int; or `None` for other numbers each time, which follow from Keras's
            random seed.
        places: int `(size,)`, of the examples in all input.
        samples: int, number of samples of each example.
        length: int, greatest number of tokens of a sample.

    Returns:
        float32 `(size * samples, length)`, the samples of an example next to each
        other.
    """
    if seed is None:
        seed = int(keras.random.randint((), 0, 2**31 - 1))
        places = np.arange(len(places))  # of requests that may have the same ones
    places = np.asarray(places, "int32")
    numbers = [uniform_numbers(seed, i, places, length, np) for i in range(samples)]
    return np.stack(numbers, axis=1).reshape(-1, length)


def threefry(
    key_0: Any, key_1: Any, counter_0: Tensor, counter_1: Tensor, xp: Any = ops
) -> tuple[Tensor, Tensor]:
    """Threefry-2x32 with 20 rounds: random bits of a counter.

    Args:
        key_0, key_1: int32 scalars, or numbers of 32 bits.
        counter_0, counter_1: int32 tensors of one shape.
        xp: `keras.ops` or `numpy`.

    Returns:
        Two int32 tensors of that shape.

    Reference:
        Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
    """
    keys = [wrapped(key_0, xp), wrapped(key_1, xp)]
    keys.append(xp.bitwise_xor(xp.bitwise_xor(keys[0], keys[1]), wrapped(PARITY, xp)))
    x, y = counter_0 + keys[0], counter_1 + keys[1]
    for number in range(ROUNDS):
        x = x + y
        distance = ROTATIONS[number // 4 % 2][number % 4]
        high = xp.left_shift(y, distance)
        y = xp.bitwise_or(high, shift_right(y, 32 - distance, xp))
        y = xp.bitwise_xor(x, y)
        if number % 4 == 3:
            turn = number // 4 + 1
            x = x + keys[turn % 3]
            y = y + keys[(turn + 1) % 3] + turn
    return x, y


def shift_right(bits: Tensor, distance: int, xp: Any) -> Tensor:
    """Shifts the bits of int32 to the right, with zeros from the left."""
    mask = wrapped((1 << (32 - distance)) - 1, xp)
    return xp.bitwise_and(xp.right_shift(bits, distance), mask)


def wrapped(number: Any, xp: Any) -> Any:
    """A number of 32 bits as int32."""
    if isinstance(number, int):
        return np.uint32(number % 2**32).view("int32")
    return xp.cast(number, "int32") if xp is ops else np.asarray(number, "int32")
