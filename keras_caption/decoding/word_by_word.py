from keras import ops, tree

from keras_caption.text import BOS, EOS, PAD, UNK

# Never generated. Their probability is not given to other words, so that scores
# stay the model's own.
FORBIDDEN = (PAD, BOS, UNK)
IMPOSSIBLE = -1e9


def forbidden_log_probs(vocabulary_size):
    """`(vocabulary_size,)`: to be added to log-probabilities before choosing."""
    words = ops.arange(vocabulary_size)
    forbidden = ops.any(
        ops.expand_dims(words, 1) == ops.convert_to_tensor(FORBIDDEN), axis=1
    )
    return ops.where(forbidden, IMPOSSIBLE, 0.0)


def batch_size(state):
    """Number of captions that a decoder's state belongs to."""
    return ops.shape(tree.flatten(state["cache"])[0])[0]


def captions_per_image(state, rows):
    """How many captions of each image so many rows are; an int where it is known."""
    images = batch_size(state)
    if isinstance(images, int):
        return rows // max(images, 1)
    return rows // ops.maximum(images, 1)  # a replica may have none


def branch(state, captions):
    """A state of so many captions for each image, next to each other."""
    cache = tree.map_structure(
        lambda x: ops.repeat(x, captions, axis=0), state["cache"]
    )
    return {**state, "cache": cache}


def word_by_word(decoder, state, max_length, choose):
    """One caption for each image, each word chosen once and for all.

    Args:
        decoder: Has `step`.
        state: What the decoder's `start` returned.
        max_length: Greatest number of words.
        choose: Function of log-probabilities `(batch, vocabulary_size)` and the
            word's index, returning tokens `(batch,)`.

    Returns:
        Tokens, int32 `(batch, max_length)`, from the first word to EOS, then PAD;
        and the log-probability of each caption, float32 `(batch,)`.
    """
    batch = batch_size(state)

    def going_on(index, last, tokens, scores, cache):
        return ops.logical_not(ops.all(ended(last)))

    def next_word(index, last, tokens, scores, cache):
        logits, new_state = decoder.step(last, {**state, "cache": cache}, index)
        log_probs = ops.log_softmax(logits)
        words = ops.cast(choose(log_probs, index), "int32")
        word_scores = ops.take_along_axis(log_probs, ops.expand_dims(words, 1), axis=1)
        over = ended(last)
        words = ops.where(over, PAD, words)
        scores = scores + ops.where(over, 0.0, ops.squeeze(word_scores, 1))
        tokens = ops.where(
            ops.arange(max_length) == index, ops.expand_dims(words, 1), tokens
        )
        return index + 1, words, tokens, scores, new_state["cache"]

    _, _, tokens, scores, _ = ops.while_loop(
        going_on,
        next_word,
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


def ended(last):
    """Whether a caption whose last token is `last` is over."""
    return ops.logical_or(last == EOS, last == PAD)
