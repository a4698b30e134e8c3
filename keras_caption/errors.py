import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A mistake in a user's input: a file, a record or a value.

    The message is one sentence that names the input and says what was expected;
    commands print only this sentence.
    """


def hint(name: str, names: Iterable[str]) -> str:
    """Suggests valid names, to end the message of an error.

    Args:
        name: str, the invalid name.
        names: Iterable of str, the valid names.

    Returns:
        str, a sentence with the most similar names or, if none is similar, all names.
    """
    names = list(names)
    similar = difflib.get_close_matches(str(name), names, n=3, cutoff=0.55)
    if similar:
        return f"Did you mean {' or '.join(similar)}?"
    return f"Valid names are {', '.join(names)}."
