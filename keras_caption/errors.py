class InputError(ValueError):
    """Something is wrong with what the user gave: a file, a record, a value.

    The message is one sentence that names it and says what was expected; command
    lines print it and nothing else.
    """
