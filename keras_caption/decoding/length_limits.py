import fractions

from jaxtyping import Int, Int32
from keras import ops

from keras_caption.arguments import Tensor


def length_limits(
    lengths: Int[Tensor, " batch"], length_ratio: float, length_margin: int = 0
) -> Int32[Tensor, " batch"]:
    """Greatest numbers of tokens of outputs, in proportion to their inputs.

    They are exact, `floor(length_ratio * length)` in decimals, where products of
    floats are not: 2.1 * 30 is a little less than 63 in float32.

    Args:
        lengths: int `(batch,)`, numbers of tokens of the inputs, up to 20,000.
        length_ratio: float, from 0 to 100; of more than four decimals, the nearest
            fraction whose denominator is at most 100,000.
        length_margin: int, which is added.

    Returns:
        int32 `(batch,)`, at least 1.
    """
    ratio = fractions.Fraction(float(length_ratio)).limit_denominator(100_000)
    whole, part = divmod(ratio, 1)
    lengths = ops.cast(lengths, "int32")
    limits = lengths * whole + lengths * part.numerator // part.denominator
    return ops.maximum(limits + length_margin, 1)
