import difflib


class InputError(ValueError):
    """Something is wrong with what the user gave: a file, a record, a value.

    The message is one sentence that names it and says what was expected; command
    lines print it and nothing else.
    """


def hint(name, names):
    """What else a name may be, to end the message of an error.

    Args:
        name: str, which is not one of the names.
        names: Iterable of str, the valid names.

    Returns:
        str: the nearest names or, if none is near, all of them.
    """
    names = list(names)
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.55)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return f"Valid names are {', '.join(names)}."
