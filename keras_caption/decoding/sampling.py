from keras import ops

from keras_caption.decoding.word_by_word import (
    IMPOSSIBLE,
    forbidden_log_probs,
    word_by_word,
)


def sample(decoder, memory, numbers, temperature=1.0, top_k=None):
    """A random caption, each word drawn from the model's probabilities.

    PAD, BOS and UNK are never drawn. A word is drawn by inverting the cumulative
    distribution at a uniform number. All numbers are drawn beforehand, by the
    caller: what is left is a pure function.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        numbers: float32 `(batch, max_length)`, uniform in [0, 1), as
            `keras.random.uniform` draws them. A caption of `max_length` words has
            no EOS.
        temperature: Divides the log-probabilities; below 1 is safer, above wilder.
        top_k: Draw from so many most probable words only; all where `None`.

    Returns:
        Tokens, int32 `(batch, max_length)`, from the first word to EOS, then PAD;
        and the log-probability of each caption under the model itself (before
        temperature and cut-off), EOS included, float32 `(batch,)`.
    """

    def choose(log_probs, index):
        vocabulary_size = log_probs.shape[-1]
        log_probs = log_probs + forbidden_log_probs(vocabulary_size)
        if top_k is not None and top_k < vocabulary_size:
            least = ops.top_k(log_probs, top_k)[0][:, -1:]
            log_probs = ops.where(log_probs < least, IMPOSSIBLE, log_probs)
        cumulative = ops.cumsum(ops.softmax(log_probs / temperature), axis=-1)
        number = ops.expand_dims(ops.take(numbers, index, axis=1), 1)
        passed = cumulative <= number * cumulative[:, -1:]
        words = ops.sum(ops.cast(passed, "int32"), axis=-1)
        return ops.minimum(words, vocabulary_size - 1)

    max_length = numbers.shape[1]
    state = decoder.start(memory, length=max_length)
    return word_by_word(decoder, state, max_length, choose)
