from typing import Any

from keras import ops

from keras_caption.decoding.options import check_values
from keras_caption.decoding.token_by_token import forbidden_log_probs, token_by_token


def greedy_search(decoder: Any, memory: Any, max_length: int = 20) -> tuple[Any, Any]:
    """Generates captions of the most probable token at every step.

    PAD, BOS and UNK are never chosen.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        max_length: int, greatest number of tokens; a caption of that many has no EOS.

    Returns:
        Tokens, int32 `(batch, max_length)`, from the first to EOS, then PAD;
        and the log-probability of each caption, EOS included, float32 `(batch,)`.

    Raises:
        InputError: If `max_length` is not a positive int.
    """
    check_values(max_length=max_length)

    def choose(log_probs, index):
        return ops.argmax(log_probs + forbidden_log_probs(log_probs.shape[-1]), axis=-1)

    state = decoder.start(memory, length=max_length)
    return token_by_token(decoder, state, max_length, choose)
