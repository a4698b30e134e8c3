"""Records that are skipped and counted."""

from collections.abc import Sequence

from keras_caption.base.errors import InputError

SHOWN = 3


def report(skipped: Sequence[str], strict: bool = False) -> None:
    """Prints how many records are skipped, and the first of them.

    Args:
        skipped: Sequence of str, a sentence for each.
        strict: bool, whether to raise an error instead. Defaults to `False`.

    Raises:
        InputError: If `strict` and there are any: the first sentence.
    """
    if skipped and strict:
        raise InputError(skipped[0])
    for sentence in skipped[:SHOWN]:
        print(f"skipped: {sentence}")
    if len(skipped) > SHOWN:
        print(f"skipped: {len(skipped) - SHOWN:,} more, {len(skipped):,} in all")
