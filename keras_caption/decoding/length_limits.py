import fractions

from jaxtyping import Int, Int32
from keras import ops

from keras_caption.base.arguments import Tensor


def length_limits(
    lengths: Int[Tensor, " batch"], length_ratio: float, length_margin: int = 0
) -> Int32[Tensor, " batch"]:
    """Computes limits on the length of outputs, in proportion to their inputs.

    A limit is `floor(length_ratio * length) + length_margin`, with the product exact in
    decimals: in float32, 2.1 * 30 is a little less than 63.

    Args:
        lengths: int `(batch,)`, numbers of tokens of the inputs, at most 20,000.
        length_ratio: float, from 0 to 100. With more than four decimals, it is rounded
            to the nearest fraction whose denominator is at most 100,000.
        length_margin: int, added to the product.

    Returns:
        int32 `(batch,)`, at least 1.
    """
    ratio = fractions.Fraction(float(length_ratio)).limit_denominator(100_000)
    whole, part = divmod(ratio, 1)
    lengths = ops.cast(lengths, "int32")
    # The whole part apart: 20,000 * 99,999 fits into int32, and 100 times as much does
    # not.
    limits = lengths * whole + lengths * part.numerator // part.denominator
    return ops.maximum(limits + length_margin, 1)
