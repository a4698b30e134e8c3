import warnings
from typing import Any

from keras import ops

from keras_caption.decoding import compile_function
from keras_caption.errors import InputError
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.models.sentence_reader import pad
from keras_caption.progress import progress
from keras_caption.text.normalization import canonical

BATCH = 2**25  # logits and attention weights of a layer computed at once, 128 MiB
WEIGHTS = 16  # attention weights of two positions: heads, and areas


def log_perplexity(model: Any, sources: list[str], references: list[str]) -> float:
    """Negative log perplexity of reference translations, per character.

    The natural logarithms of the probabilities of all tokens of the references, EOS
    included, each given the source and the tokens before it, are summed up, and
    divided by the number of characters. Characters are the Unicode code points of the
    references in NFC, and one for the end of each. So models with different tokenizers
    compare; for a `CharacterTokenizer` that knows all characters it is the mean over
    tokens. The greater, the better; it is at most 0.

    A word that a `WordTokenizer` does not know counts as the token UNK.

    Args:
        model: Translator or ensemble of translators, with tokenizers.
        sources: List of str.
        references: List of str, one for each source. Pairs with a sentence of more
            than `keras_caption.inputs.text.MAX_TOKENS` tokens are skipped, and a
            warning counts them.

    Returns:
        float.

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
    total = 0.0
    of_rows = batches(usable, lengths, len(model.vocabulary))
    for rows in progress(of_rows, "Perplexity", unit="batches", leave=False):
        source = ops.convert_to_tensor(pad([tokens[i] for i in rows]))
        target = ops.convert_to_tensor(pad([targets[i] for i in rows]))
        of_rows = ops.convert_to_numpy(score(target, {"source": source}))
        total += float(of_rows.sum(dtype="float64"))
    return total / sum(len(canonical(references[i])) + 1 for i in usable)


def batches(
    indices: list[int], lengths: list[int], vocabulary_size: int
) -> list[list[int]]:
    """Splits sentences into batches of similar length, whose memory has a bound."""
    batches, batch = [], []
    for i in sorted(indices, key=lambda i: lengths[i]):
        size = lengths[i] * (vocabulary_size + WEIGHTS * lengths[i])
        if batch and (len(batch) + 1) * size > BATCH:
            batches.append(batch)
            batch = []
        batch.append(i)
    return [*batches, batch]
