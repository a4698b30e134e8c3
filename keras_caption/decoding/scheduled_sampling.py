from keras import ops

from keras_caption.decoding.sampling import draw, policy
from keras_caption.decoding.word_by_word import branch, captions_per_image
from keras_caption.text import PAD


def scheduled_sampling(decoder, memory, tokens, coins, numbers, probability):
    """Captions, some of whose words the model has drawn itself.

    From left to right each word but the first is replaced, with `probability`, by
    one drawn from what the model makes of the words before it, replaced ones among
    them. Trained on these, a model has seen what its own mistakes lead to.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        tokens: int32 `(batch * C, T)`, C captions of each image, next to each other,
            from BOS on.
        coins, numbers: float32 `(batch * C, T)`, uniform in [0, 1): whether a word
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

    def going_on(index, shown, cache):
        return index < length - 1

    def next_word(index, shown, cache):
        last = ops.take(shown, index, axis=1)
        logits, new_state = decoder.step(last, {**state, "cache": cache}, index)
        drawn = draw(policy(logits), ops.take(numbers, index, axis=1))
        here = ops.logical_and(positions == index + 1, replaced)
        shown = ops.where(here, ops.expand_dims(drawn, 1), shown)
        return index + 1, shown, new_state["cache"]

    return ops.while_loop(going_on, next_word, (0, tokens, state["cache"]))[1]
