from keras import ops, tree

from keras_caption.text import BOS, EOS, PAD, UNK

# Tokens that are never generated. Their probability is not given to other tokens, so
# that scores stay the model's own.
FORBIDDEN = (PAD, BOS, UNK)
NEG_INF = -1e9


def forbidden_log_probs(vocabulary_size):
    """`(vocabulary_size,)`: to be added to log-probabilities before choosing."""
    tokens = ops.arange(vocabulary_size)
    forbidden = ops.any(
        ops.expand_dims(tokens, 1) == ops.convert_to_tensor(FORBIDDEN), axis=1
    )
    return ops.where(forbidden, NEG_INF, 0.0)


def batch_size(state):
    """Number of rows of a decoder's state."""
    return ops.shape(tree.flatten(state["cache"])[0])[0]


def captions_per_image(state, rows):
    """Number of captions of each image in a number of rows; an int if it is known."""
    images = batch_size(state)
    if isinstance(images, int):
        return rows // max(images, 1)
    return rows // ops.maximum(images, 1)  # a replica may have none


def repeat_state(state, captions):
    """Repeats a state for several captions of each image, next to each other."""
    cache = tree.map_structure(
        lambda x: ops.repeat(x, captions, axis=0), state["cache"]
    )
    return {**state, "cache": cache}


def token_by_token(decoder, state, max_length, choose):
    """Generates one caption for each row, choosing one token at every step.

    Args:
        decoder: Has `step`.
        state: What the decoder's `start` returned.
        max_length: int, greatest number of tokens.
        choose: Function of log-probabilities `(batch, vocabulary_size)` and the
            step's index, returning tokens `(batch,)`.

    Returns:
        Tokens, int32 `(batch, max_length)`, from the first to EOS, then PAD;
        and the log-probability of each caption, float32 `(batch,)`.
    """
    batch = batch_size(state)

    def is_unfinished(index, last, tokens, scores, cache):
        return ops.logical_not(ops.all(finished(last)))

    def next_step(index, last, tokens, scores, cache):
        logits, new_state = decoder.step(last, {**state, "cache": cache}, index)
        log_probs = ops.log_softmax(logits)
        chosen = ops.cast(choose(log_probs, index), "int32")
        added = ops.take_along_axis(log_probs, ops.expand_dims(chosen, 1), axis=1)
        done = finished(last)
        chosen = ops.where(done, PAD, chosen)
        scores = scores + ops.where(done, 0.0, ops.squeeze(added, 1))
        tokens = ops.where(
            ops.arange(max_length) == index, ops.expand_dims(chosen, 1), tokens
        )
        return index + 1, chosen, tokens, scores, new_state["cache"]

    _, _, tokens, scores, _ = ops.while_loop(
        is_unfinished,
        next_step,
        (
            0,
            ops.full((batch,), BOS, "int32"),
            ops.zeros((batch, max_length), "int32"),
            ops.zeros((batch,), "float32"),
            state["cache"],
        ),
        maximum_iterations=max_length,
    )
    return tokens, scores


def finished(last):
    """Whether captions whose last tokens are `last` are finished."""
    return ops.logical_or(last == EOS, last == PAD)
