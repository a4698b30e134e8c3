from keras import ops

from keras_caption.decoding.sampling import policy, sample_tokens
from keras_caption.decoding.word_by_word import branch, captions_per_image
from keras_caption.text import PAD


def scheduled_sampling(decoder, memory, tokens, coins, numbers, probability):
    """Replaces some tokens of captions by samples from the model.

    From left to right each token but the first is replaced, with `probability`, by
    one sampled from the model's predictions after the tokens before it, replaced
    ones included. Training on these shows a model the consequences of its mistakes.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        tokens: int32 `(batch * C, T)`, C captions of each image, next to each other,
            from BOS on.
        coins, numbers: float32 `(batch * C, T)`, uniform in [0, 1): whether a token
            is replaced, and by which.
        probability: float scalar.

    Returns:
        int32 `(batch * C, T)`. PAD stays PAD.

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent
        Neural Networks", NeurIPS 2015.
    """
    rows, length = ops.shape(tokens)
    state = decoder.start(memory, length=length)
    state = branch(state, captions_per_image(state, rows))
    replaced = ops.logical_and(coins < probability, tokens != PAD)
    positions = ops.arange(length)

    def is_unfinished(index, shown, cache):
        return index < length - 1

    def next_step(index, shown, cache):
        last = ops.take(shown, index, axis=1)
        logits, new_state = decoder.step(last, {**state, "cache": cache}, index)
        sampled = sample_tokens(policy(logits), ops.take(numbers, index, axis=1))
        here = ops.logical_and(positions == index + 1, replaced)
        shown = ops.where(here, ops.expand_dims(sampled, 1), shown)
        return index + 1, shown, new_state["cache"]

    return ops.while_loop(is_unfinished, next_step, (0, tokens, state["cache"]))[1]
