from typing import Any

from jaxtyping import Float, Float32, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.sampling import (
    policy,
    sample_tokens,
    sequences_per_example,
)
from keras_caption.decoding.search import cache_length, repeat_rows
from keras_caption.text import PAD


def scheduled_sampling(
    decoder: Any,
    memory: Any,
    tokens: Int32[Tensor, "batch*C T"],
    coins: Float32[Tensor, "batch*C T"],
    numbers: Float32[Tensor, "batch*C T"],
    probability: Float[Tensor, ""],
) -> Int32[Tensor, "batch*C T"]:
    """Replaces some tokens of sequences by samples from the model.

    From left to right, each token but the first is replaced with `probability`. The
    replacement is sampled from the model's prediction after the earlier tokens, with
    their replacements. Training on such inputs exposes a model to its own mistakes.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: The encoder's output, which the decoder's `start` takes.
        tokens: int32 `(batch * C, T)`, from BOS on, C sequences of each example. The
            sequences of an example are adjacent.
        coins: float32 `(batch * C, T)`, uniform in [0, 1): a token is replaced if its
            number is below `probability`.
        numbers: float32 `(batch * C, T)`, uniform in [0, 1), to sample replacements.
        probability: float scalar.

    Returns:
        int32 `(batch * C, T)`. PAD stays PAD.

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent
        Neural Networks", NeurIPS 2015.
    """
    rows, length = ops.shape(tokens)
    state = decoder.start(memory, length=cache_length(decoder, length))
    first_cache = repeat_rows(state["cache"], sequences_per_example(state, rows))
    replaced = ops.logical_and(coins < probability, tokens != PAD)
    positions = ops.arange(length)

    def is_unfinished(index, inputs, cache):
        return index < length - 1

    def next_step(index, inputs, cache):
        last = ops.take(inputs, index, axis=1)
        logits, new_state = decoder.step(last, {**state, "cache": cache}, index)
        sampled = sample_tokens(policy(logits), ops.take(numbers, index, axis=1))
        # The prediction at `index` is for the next position.
        is_replaced = ops.logical_and(positions == index + 1, replaced)
        inputs = ops.where(is_replaced, ops.expand_dims(sampled, 1), inputs)
        return index + 1, inputs, new_state["cache"]

    return ops.while_loop(is_unfinished, next_step, (0, tokens, first_cache))[1]
