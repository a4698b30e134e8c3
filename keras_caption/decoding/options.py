"""Options of the searches, validated in one place."""

import difflib
import math
import numbers

from keras_caption.errors import InputError


def check_options(options):
    """Checks the options of a call that generates captions, all together.

    Args:
        options: dict from names to values; see
            `keras_caption.models.Captioner.generate_tokens`.

    Raises:
        InputError: If an option is unknown, has a wrong value, or has no effect
            beside the others: beam search has no `top_k` and no `seed`, sampling no
            beam.
    """
    for name in options:
        if name not in EXPECTED:
            near = difflib.get_close_matches(name, EXPECTED, n=1, cutoff=0.0)[0]
            raise InputError(
                f"There is no decoding option `{name}`; did you mean `{near}`?"
            )
    check_values(**options)
    sampled = "temperature" in options
    for name in SEARCH_ONLY if sampled else SAMPLING_ONLY:
        if name in options:
            need = "has no effect with" if sampled else "needs"
            raise InputError(
                f"`{name}` {need} `temperature`: with a temperature captions are "
                "sampled, without one they are searched for."
            )


def check_values(**options):
    """Checks the values of single options.

    Raises:
        InputError: If a value is wrong.
    """
    for name, value in options.items():
        is_valid, expected = EXPECTED[name]
        if not is_valid(value):
            raise InputError(f"`{name}` must be {expected}. Received: {value!r}")


def is_positive_int(value):
    return is_int(value) and value > 0


def is_seed(value):
    return is_int(value) and 0 <= value < 2**32


def is_int(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_positive(value):
    return is_not_negative(value) and value > 0


def is_not_negative(value):
    return isinstance(value, numbers.Real) and 0 <= value < math.inf


def is_bool(value):
    return isinstance(value, bool)


SEARCH_ONLY = ("beam_size", "length_penalty", "block_trigrams", "keep_greedy")
SAMPLING_ONLY = ("top_k", "seed")
EXPECTED = {
    "beam_size": (is_positive_int, "an int of at least 1"),
    "max_length": (is_positive_int, "an int of at least 1"),
    "length_penalty": (is_not_negative, "a finite number of at least 0"),
    "block_trigrams": (is_bool, "True or False"),
    "keep_greedy": (is_bool, "True or False"),
    "temperature": (
        is_positive,
        "a finite number above 0 (greedy search is `beam_size=1`)",
    ),
    "top_k": (is_positive_int, "an int of at least 1"),
    "seed": (is_seed, "an int of at least 0 and below 2 ** 32"),
}
