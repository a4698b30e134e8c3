import warnings
from typing import Any

from keras import ops

from keras_caption.base.compilation import compile_function
from keras_caption.base.errors import InputError
from keras_caption.base.progress import progress
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.models.sentence_reader import pad
from keras_caption.text.normalization import canonical

BATCH = 2**25  # numbers computed at once: logits, and attention weights of a layer
WEIGHTS = 16  # attention weights for a pair of positions: heads times areas


def log_perplexity(model: Any, sources: list[str], references: list[str]) -> float:
    """Computes the negative log perplexity of references, per character.

    The result is the sum of the log-probabilities of all references, divided by the
    number of their characters, so that models with different tokenizers are comparable.
    For a `CharacterTokenizer` that knows all characters it is the mean over tokens. It
    is at most 0; greater is better.

    Args:
        model, sources, references: See `log_probabilities`.

    Returns:
        float.
    """
    sums, characters = map(
        sum, zip(*log_probabilities(model, sources, references).values(), strict=True)
    )
    return sums / characters


def log_probabilities(
    model: Any, sources: list[str], references: list[str]
) -> dict[int, tuple[float, int]]:
    """Computes log-probabilities and numbers of characters of references.

    A log-probability is the sum over all tokens of a reference, EOS included, of the
    natural logarithm of their probability given the source and the earlier tokens.
    Characters are the Unicode code points of the reference in NFC, and one for its end.
    A word that a `WordTokenizer` does not know counts as the token UNK.

    Args:
        model: Translator or ensemble of translators, with tokenizers.
        sources: List of str.
        references: List of str, one for each source. Pairs with a sentence of more
            than `keras_caption.inputs.text.MAX_TOKENS` tokens are skipped, and a
            warning counts them.

    Returns:
        dict from the number of a pair to its log-probability and its number of
        characters.

    Raises:
        InputError: If there are no pairs to score, or not as many references as
            sources.

    Reference:
        Li, Kaiser, Bengio, Si, "Area Attention", ICML 2019, Table 3, which leaves open
        whether the end of a sentence counts.
    """
    if len(sources) != len(references):
        raise InputError(
            f"Each source has one reference. Received: {len(sources):,} sources and "
            f"{len(references):,} references"
        )
    tokens = model.source_tokens(sources)
    targets = [model.vocabulary.encode(text) for text in references]
    lengths = [max(len(a), len(b) - 1) for a, b in zip(tokens, targets, strict=True)]
    usable = [i for i, length in enumerate(lengths) if length <= MAX_TOKENS]
    if not usable:
        raise InputError("There are no pairs of sentences to score.")
    if len(usable) < len(lengths):
        warnings.warn(
            f"{len(lengths) - len(usable)} of {len(lengths)} pairs have a sentence of "
            f"more than {MAX_TOKENS:,} tokens and are not scored.",
            stacklevel=2,
        )

    score = compile_function(model.log_probabilities, model.variables)
    log_probs: dict[int, float] = {}
    row_batches = batches(usable, lengths, len(model.vocabulary))
    for rows in progress(row_batches, "Perplexity", unit="batches", leave=False):
        source = ops.convert_to_tensor(pad([tokens[i] for i in rows]))
        target = ops.convert_to_tensor(pad([targets[i] for i in rows]))
        sums = ops.convert_to_numpy(score(target, {"source": source}))
        log_probs |= zip(rows, map(float, sums), strict=True)
    return {i: (log_probs[i], len(canonical(references[i])) + 1) for i in usable}


def batches(
    indices: list[int], lengths: list[int], vocabulary_size: int
) -> list[list[int]]:
    """Splits sentences into batches of similar length and bounded memory."""
    batches: list[list[int]] = []
    batch: list[int] = []
    for i in sorted(indices, key=lambda i: lengths[i]):
        # Logits of all tokens, and attention weights of all pairs of tokens.
        size = lengths[i] * (vocabulary_size + WEIGHTS * lengths[i])
        if batch and (len(batch) + 1) * size > BATCH:
            batches.append(batch)
            batch = []
        batch.append(i)
    return [*batches, batch]
