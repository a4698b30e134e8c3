import collections
from collections.abc import Sequence

LONGEST_REPEAT = 8  # words
SHARE = 0.5  # excess over the references' share that is reported
SHARE_EMPTY = 0.1  # of outputs, that is reported


def note_on_outputs(
    outputs: Sequence[str], references: Sequence[str], noun: str
) -> str | None:
    """Writes a note if a model's outputs are empty, equal or repetitive.

    A note is due if the share of outputs that are equal, or that repeat a phrase,
    exceeds that of the references by one half; if all outputs are equal and the
    references are not; or if a tenth of the outputs is empty.

    Args:
        outputs: Sequence of str, of the model.
        references: Sequence of str, a reference for each output.
        noun: str, name of the outputs, such as `"captions"`.

    Returns:
        str, the note with its usual causes, or `None`.
    """
    faults = []
    empty = len(outputs) - sum(bool(text.strip()) for text in outputs)
    if empty >= SHARE_EMPTY * len(outputs) and empty:
        faults.append(f"{empty:,} are empty")
    (most, count), *_ = collections.Counter(outputs).most_common(1)
    usual = max(collections.Counter(references).values()) / len(references)
    share = count / len(outputs)
    if most.strip() and count > 1 and share >= min(usual + SHARE, 1.0) > usual:
        faults.append(f"{count:,} are alike, {most[:80]!r}")
    repeating = [text for text in outputs if repeats(text)]
    usual = sum(map(repeats, references)) / len(references)
    if repeating and len(repeating) / len(outputs) >= usual + SHARE:
        faults.append(f"{len(repeating):,} repeat a phrase, as {repeating[0][:80]!r}")
    if not faults:
        return None
    return (
        f"note: of {len(outputs):,} {noun}, {' and '.join(faults)}: usually a model is "
        "trained on too few examples, for too few epochs, or at a learning rate that "
        "is too large or too small."
    )


def repeats(text: str) -> bool:
    """Returns whether a text has a phrase twice in a row, as `"a dog on a on a"`.

    In a text without spaces, a run of characters must come three times in a row.
    """
    words, times = text.split(), 2
    if len(words) == 1:
        words, times = list(text), 3
    return any(
        words[i : i + n] * times == words[i : i + times * n]
        for n in range(1, min(LONGEST_REPEAT, len(words) // times) + 1)
        for i in range(len(words) - times * n + 1)
    )
