from keras import ops, tree

from keras_caption.decoding.word_by_word import (
    IMPOSSIBLE,
    batch_size,
    branch,
    ended,
    forbidden_log_probs,
)
from keras_caption.text import BOS, PAD


def beam_search(
    decoder,
    memory,
    beam_size=3,
    max_length=20,
    length_penalty=0.0,
    block_trigrams=False,
):
    """The most probable captions that a search of `beam_size` branches finds.

    A branch that has ended keeps its score and its place until better ones drive it
    out; the search is over once all branches have ended. The first branch is the
    greedy caption and is never driven out, so that the best caption is at least as
    probable as the greedy one, which a plain beam search does not promise. PAD, BOS
    and UNK are never chosen. The memory is shared by the branches of an image; only
    what the decoder keeps per caption is reordered.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        beam_size: Number of branches.
        max_length: Greatest number of words; a caption of that many has no EOS.
        length_penalty: Exponent alpha of the length normalization of Wu et al.,
            2016: branches are ranked by `log p / ((5 + length) / 6) ** alpha`. The
            papers' 0 ranks by log-probability.
        block_trigrams: Whether to forbid repeating three words in a row.

    Returns:
        Tokens, int32 `(batch, beam_size, max_length)`, from the first word to
        EOS, then PAD, the best caption first; and their log-probabilities, EOS
        included, never normalized, float32 `(batch, beam_size)`.
    """
    state = decoder.start(memory, length=max_length)
    batch = batch_size(state)
    first_rows = ops.expand_dims(ops.arange(batch) * beam_size, 1)
    positions = ops.arange(max_length)

    def rank(scores, lengths):
        return scores / ((5.0 + lengths) / 6.0) ** length_penalty

    def going_on(index, tokens, scores, lengths, last, rows, cache):
        return ops.logical_not(ops.all(ended(last)))

    def next_word(index, tokens, scores, lengths, last, rows, cache):
        # Right before it is written to: nothing else holds the reordered cache.
        cache = tree.map_structure(lambda x: ops.take(x, rows, axis=0), cache)
        logits, new_state = decoder.step(
            ops.reshape(last, (-1,)), {**state, "cache": cache}, index
        )
        vocabulary_size = logits.shape[-1]
        log_probs = ops.log_softmax(logits) + forbidden_log_probs(vocabulary_size)
        if block_trigrams:
            repeated = repeated_trigrams(
                ops.reshape(tokens, (-1, max_length)), index, vocabulary_size
            )
            log_probs = ops.where(repeated, IMPOSSIBLE, log_probs)

        # The best words of every branch; an ended one goes on in one way, with PAD.
        ways = min(beam_size, vocabulary_size)
        word_scores, words = ops.top_k(log_probs, ways)
        word_scores = ops.reshape(word_scores, (-1, beam_size, ways))
        words = ops.reshape(ops.cast(words, "int32"), (-1, beam_size, ways))
        over = ops.expand_dims(ended(last), 2)
        only = ops.where(ops.arange(ways) == 0, 0.0, IMPOSSIBLE)
        words = ops.where(over, PAD, words)
        totals = ops.expand_dims(scores, 2) + ops.where(over, only, word_scores)
        lengths = lengths + ops.cast(ops.logical_not(ended(last)), "float32")

        # The best branches of every image, led by the best word of the first.
        ranks = ops.reshape(
            rank(totals, ops.expand_dims(lengths, 2)), (-1, beam_size * ways)
        )
        ranks = ops.where(ops.arange(beam_size * ways) == 0, float("inf"), ranks)
        chosen = ops.cast(ops.top_k(ranks, beam_size)[1], "int32")
        parents = chosen // ways

        def pick(x):
            flat = ops.reshape(x, (-1, beam_size * ways))
            return ops.take_along_axis(flat, chosen, axis=1)

        words = pick(words)
        rows = ops.reshape(parents + first_rows, (-1,))
        tokens = ops.take(ops.reshape(tokens, (-1, max_length)), rows, axis=0)
        tokens = ops.reshape(tokens, (-1, beam_size, max_length))
        tokens = ops.where(positions == index, ops.expand_dims(words, 2), tokens)
        lengths = ops.take_along_axis(lengths, parents, axis=1)
        return index + 1, tokens, pick(totals), lengths, words, rows, new_state["cache"]

    only_first = ops.where(ops.arange(beam_size) == 0, 0.0, IMPOSSIBLE)
    _, tokens, scores, lengths, *_ = ops.while_loop(
        going_on,
        next_word,
        (
            0,
            ops.zeros((batch, beam_size, max_length), "int32"),
            ops.broadcast_to(only_first, (batch, beam_size)),
            ops.zeros((batch, beam_size), "float32"),
            ops.full((batch, beam_size), BOS, "int32"),
            ops.arange(batch * beam_size),
            branch(state, beam_size)["cache"],
        ),
        maximum_iterations=max_length,
    )
    order = ops.top_k(rank(scores, lengths), beam_size)[1]
    tokens = ops.take_along_axis(tokens, ops.expand_dims(order, 2), axis=1)
    return tokens, ops.take_along_axis(scores, order, axis=1)


def repeated_trigrams(tokens, index, vocabulary_size):
    """Words that would repeat a trigram, bool `(captions, vocabulary_size)`.

    Args:
        tokens: int `(captions, length)`, of which `index` are there.
        index: int scalar, where the next word goes.
        vocabulary_size: Number of words.
    """
    length = tokens.shape[1]
    before = ops.take(tokens, ops.maximum(index - 2, 0), axis=1)
    last = ops.take(tokens, ops.maximum(index - 1, 0), axis=1)
    same = ops.logical_and(
        tokens[:, :-2] == ops.expand_dims(before, 1),
        tokens[:, 1:-1] == ops.expand_dims(last, 1),
    )
    # A trigram that ends before the next word, so that it has been said.
    same = ops.logical_and(same, ops.arange(2, length) < index)
    third = ops.where(same, tokens[:, 2:], PAD)
    said = ops.one_hot(third, vocabulary_size, dtype="bool")
    return ops.any(said, axis=1)
