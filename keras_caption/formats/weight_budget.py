import math

from keras_caption.base.errors import InputError

# What a file need not have: seeds, and weights that models have since it was saved.
SPARE_WEIGHTS, SPARE_ELEMENTS = 16, 2**16


class WeightBudget:
    """Weights that a model may make, twice those of its file and a few.

    Keras makes the weights of a quantized layer in floating point first.

    Args:
        weights: int, number of weights.
        elements: int, number of their elements together.
    """

    def __init__(self, weights: int, elements: int):
        self.weights = 2 * weights + SPARE_WEIGHTS
        self.elements = 2 * elements + SPARE_ELEMENTS

    def spend(self, shape: int | tuple[int, ...] | None) -> None:
        """Counts a new weight; raises `InputError` if there are too many."""
        self.weights -= 1
        self.elements -= shape if isinstance(shape, int) else math.prod(shape or ())
        if min(self.weights, self.elements) < 0:
            raise InputError("its configuration describes more weights than it has")
