from typing import Any

from keras import ops, tree

from keras_caption.decoding.options import check_values
from keras_caption.decoding.token_by_token import (
    NEG_INF,
    batch_size,
    forbidden_log_probs,
    repeat_state,
)
from keras_caption.text import BOS, EOS, PAD


def beam_search(
    decoder: Any,
    memory: Any,
    beam_size: int = 3,
    max_length: int = 20,
    length_penalty: float = 0.0,
    block_trigrams: bool = False,
) -> tuple[Any, Any]:
    """Searches for the most probable captions with a beam of hypotheses.

    A finished hypothesis leaves its place to the next best one, and joins the best
    `beam_size` finished ones; the search ends once no unfinished hypothesis can join
    them any more. PAD, BOS and UNK are never chosen. The memory is shared by the
    hypotheses of an image; only what the decoder keeps per caption is reordered.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        beam_size: int, beam width.
        max_length: int, greatest number of tokens; a caption of that many has no EOS.
        length_penalty: float, exponent alpha of the length normalization of Wu et al.,
            2016: finished hypotheses are ranked by
            `log p / ((5 + length) / 6) ** alpha`.
            0 ranks by log-probability, as AoANet's released code does.
        block_trigrams: bool, whether to forbid repeating three tokens in a row.

    Returns:
        Tokens, int32 `(batch, beam_size, max_length)`, from the first to
        EOS, then PAD, the best caption first; and their log-probabilities, EOS
        included, never normalized, float32 `(batch, beam_size)`. If there are fewer
        captions, the last are PAD only, their log-probability -1e9.

    Raises:
        InputError: If an option has a wrong value.
    """
    check_values(
        beam_size=beam_size,
        max_length=max_length,
        length_penalty=length_penalty,
        block_trigrams=block_trigrams,
    )
    state = decoder.start(memory, length=max_length)
    batch = batch_size(state)
    first_rows = ops.expand_dims(ops.arange(batch) * beam_size, 1)
    positions = ops.arange(max_length)

    def rank(scores, lengths):
        return scores / ((5.0 + lengths) / 6.0) ** length_penalty

    def rank_done(done, done_scores):
        return rank(done_scores, ops.sum(ops.cast(done != PAD, "float32"), axis=-1))

    def is_unfinished(index, beam):
        hopes = rank(ops.max(beam["scores"], axis=1), float(max_length))
        worst = ops.min(rank_done(beam["done"], beam["done_scores"]), axis=1)
        return ops.any(hopes > worst)

    def next_step(index, beam):
        # Right before it is written to: nothing else holds the reordered cache.
        rows = beam["rows"]
        cache = tree.map_structure(lambda x: ops.take(x, rows, axis=0), beam["cache"])
        flat_tokens = ops.reshape(beam["tokens"], (-1, max_length))
        last = ops.take(flat_tokens, ops.maximum(index - 1, 0), axis=1)
        last = ops.where(index == 0, BOS, last)
        logits, new_state = decoder.step(last, {**state, "cache": cache}, index)
        vocabulary_size = logits.shape[-1]
        log_probs = ops.log_softmax(logits) + forbidden_log_probs(vocabulary_size)
        if block_trigrams:
            repeated = repeated_trigrams(flat_tokens, index, vocabulary_size)
            log_probs = ops.where(repeated, NEG_INF, log_probs)

        # The best hypotheses of an image are among the best tokens of each.
        width = min(beam_size, vocabulary_size)
        token_scores, added = ops.top_k(log_probs, width)
        token_scores = ops.reshape(token_scores, (-1, beam_size, width))
        totals = ops.expand_dims(beam["scores"], 2) + token_scores
        totals = ops.reshape(totals, (-1, beam_size * width))
        added = ops.reshape(ops.cast(added, "int32"), (-1, beam_size * width))
        scores, chosen = ops.top_k(totals, beam_size)
        chosen = ops.cast(chosen, "int32")
        added = ops.take_along_axis(added, chosen, axis=1)
        rows = ops.reshape(chosen // width + first_rows, (-1,))
        tokens = ops.take(flat_tokens, rows, axis=0)
        tokens = ops.reshape(tokens, ops.shape(beam["tokens"]))
        tokens = ops.where(positions == index, ops.expand_dims(added, 2), tokens)

        # Finished hypotheses leave the beam, and compete with those finished before.
        ends = ops.logical_or(added == EOS, index == max_length - 1)
        done = ops.concatenate([beam["done"], tokens], axis=1)
        done_scores = ops.concatenate(
            [beam["done_scores"], ops.where(ends, scores, NEG_INF)], axis=1
        )
        best = ops.top_k(rank_done(done, done_scores), beam_size)[1]
        return index + 1, {
            "tokens": tokens,
            "scores": ops.where(ends, NEG_INF, scores),
            "done": ops.take_along_axis(done, ops.expand_dims(best, 2), axis=1),
            "done_scores": ops.take_along_axis(done_scores, best, axis=1),
            "rows": rows,
            "cache": new_state["cache"],
        }

    only_first = ops.where(ops.arange(beam_size) == 0, 0.0, NEG_INF)
    no_tokens = ops.zeros((batch, beam_size, max_length), "int32")
    beam = {
        "tokens": no_tokens,
        "scores": ops.broadcast_to(only_first, (batch, beam_size)),
        "done": no_tokens,
        "done_scores": ops.full((batch, beam_size), NEG_INF, "float32"),
        "rows": ops.arange(batch * beam_size),
        "cache": repeat_state(state, beam_size)["cache"],
    }
    _, beam = ops.while_loop(
        is_unfinished, next_step, (0, beam), maximum_iterations=max_length
    )
    is_finished = ops.expand_dims(is_hypothesis(beam["done_scores"]), 2)
    return ops.where(is_finished, beam["done"], PAD), beam["done_scores"]


def is_hypothesis(scores: Any) -> Any:
    """Which scores of a beam are those of captions, not of free places."""
    return scores > NEG_INF / 2


def repeated_trigrams(tokens, index, vocabulary_size):
    """Tokens that would repeat a trigram, bool `(captions, vocabulary_size)`.

    Args:
        tokens: int `(captions, length)`, of which the first `index` are generated.
        index: int scalar, position of the next token.
        vocabulary_size: int, number of tokens.
    """
    length = tokens.shape[1]
    before = ops.take(tokens, ops.maximum(index - 2, 0), axis=1)
    last = ops.take(tokens, ops.maximum(index - 1, 0), axis=1)
    same = ops.logical_and(
        tokens[:, :-2] == ops.expand_dims(before, 1),
        tokens[:, 1:-1] == ops.expand_dims(last, 1),
    )
    # Only trigrams that are complete before the next token.
    same = ops.logical_and(same, ops.arange(2, max(length, 2)) < index)
    third = ops.where(same, tokens[:, 2:], PAD)
    repeated = ops.one_hot(third, vocabulary_size, dtype="bool")
    return ops.any(repeated, axis=1)
