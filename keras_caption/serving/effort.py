"""How much a request asks of a model, before any of it is computed."""

from collections.abc import Sequence
from typing import Any

from keras_caption.arguments import Count, check
from keras_caption.errors import InputError
from keras_caption.settings.decoding import check_options

MAX_BEAM, MAX_LENGTH = 20, 1024


def check_effort(
    model: Any, records: Sequence[Any], n: Any, options: dict[str, Any], most: int
) -> int:
    """Refuses a request that would take a model minutes, or gigabytes.

    Its effort is the product of the number of records, the width of the beam, the
    greatest number of tokens of a text, and 1 plus the number of tokens that are
    required; a hundred tokens of forbidden phrases count as one of those.

    Args:
        model: `keras_caption.serving.Predictor` or `ExportedPredictor`.
        records: Sequence of what a user sent.
        n, options: Of its `answer`, as a user sent them.
        most: int, greatest effort, `max_effort` of `keras_caption.serving.Limits`.

    Returns:
        The effort, an int.

    Raises:
        InputError: If it is too great, or an option is unknown or wrong.
    """
    if n is not None:
        check(Count, n=n)
    check_options(options)
    for name, value, limit in (
        ("n", n, MAX_BEAM),
        ("beam_size", options.get("beam_size"), MAX_BEAM),
        ("max_length", options.get("max_length"), MAX_LENGTH),
    ):
        if value is not None and value > limit:
            raise InputError(f"`{name}` of a request is at most {limit:,}.")
    effort = model.effort(records, n, options)
    if effort > most:
        raise InputError(
            f"The request asks for too much: {effort:,} steps, the product of records, "
            "beam, tokens of a text and of what is required; at most "
            f"{most:,} are made."
        )
    return effort
