import fractions
from typing import Any

from keras import ops

from keras_caption.decoding.token_by_token import NEG_INF
from keras_caption.text import EOS, PAD


class LengthLimit:
    """A decoder that ends every sequence at a limit of its own.

    At its limit a sequence can only continue with EOS, whose probability stays the
    decoder's: that of the other tokens goes to PAD, which searches never choose. So
    scores are those of the decoder.

    It has `start` and `step` as the decoder does; any search takes it in its place.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        limits: int `(batch,)`, greatest numbers of tokens, EOS included, at least 1.
    """

    def __init__(self, decoder: Any, limits: Any):
        self.decoder = decoder
        self.limits = limits

    def start(self, memory: Any, length: int = 20) -> dict[str, Any]:
        """The decoder's state before the first token, with the limits in its cache."""
        state = self.decoder.start(memory, length=length)
        return {**state, "cache": (self.limits, state["cache"])}

    def step(
        self, tokens: Any, state: dict[str, Any], index: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Reads one more token: log-probabilities of the next one, and the state."""
        limits, cache = state["cache"]
        logits, new = self.decoder.step(tokens, {**state, "cache": cache}, index)
        log_probs = ops.log_softmax(logits)
        token_ids = ops.arange(logits.shape[-1])
        others = ops.logsumexp(
            ops.where(token_ids == EOS, NEG_INF, log_probs), axis=-1, keepdims=True
        )
        ended = ops.where(token_ids == PAD, others, NEG_INF)
        ended = ops.where(token_ids == EOS, log_probs, ended)
        at_limit = ops.expand_dims(index >= limits - 1, 1)
        log_probs = ops.where(at_limit, ended, log_probs)
        return log_probs, {**new, "cache": (limits, new["cache"])}


def length_limits(lengths: Any, length_ratio: float, length_margin: int = 0) -> Any:
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
