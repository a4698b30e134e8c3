import collections
from collections.abc import Sequence

LONGEST_REPEAT = 8  # words
SHARE = 0.5  # of outputs, beyond that of the references, that is reported
SHARE_EMPTY = 0.1


def note_on_outputs(
    outputs: Sequence[str], references: Sequence[str], noun: str
) -> str | None:
    """Says so if a model's outputs are empty, all alike, or repeat themselves.

    It is said if as many of the outputs as of the references, and half of all more,
    are alike or repeat a phrase; if all are alike, and the references are not; or if a
    tenth is empty.

    Args:
        outputs: Sequence of str, of the model.
        references: Sequence of str, one that a person wrote for each output.
        noun: str, what the outputs are called, such as `"captions"`.

    Returns:
        str, with what that usually means, or `None`.
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
    """Whether a text has a phrase twice in a row, as `"a dog on a on a"` has.

    Of a text without spaces, a run of characters three times in a row.
    """
    words, times = text.split(), 2
    if len(words) == 1:
        words, times = list(text), 3
    return any(
        words[i : i + n] * times == words[i : i + times * n]
        for n in range(1, min(LONGEST_REPEAT, len(words) // times) + 1)
        for i in range(len(words) - times * n + 1)
    )
