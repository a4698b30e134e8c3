"""The effort of a request, known before the model computes anything."""

from collections.abc import Sequence
from typing import Any

from keras_caption.base.arguments import Count, check
from keras_caption.base.errors import InputError
from keras_caption.settings.decoding import check_options

MAX_BEAM, MAX_LENGTH = 20, 1024


def check_effort(
    model: Any, records: Sequence[Any], n: Any, options: dict[str, Any], most: int
) -> int:
    """Refuses a request that would take a model minutes, or gigabytes.

    The effort is the product of the number of records, the width of the beam, the
    greatest number of tokens of a text, and 1 plus the number of required tokens. A
    hundred tokens of forbidden phrases count as one required token.

    Args:
        model: `keras_caption.serving.Predictor` or `ExportedPredictor`.
        records: Sequence of records from a user.
        n, options: Arguments of the model's `answer`, from a user.
        most: int, greatest effort, `max_effort` of `keras_caption.serving.Limits`.

    Returns:
        int, the effort.

    Raises:
        InputError: If the effort is too great, or an option is unknown or wrong.
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
            "beam width, tokens of a text and required tokens; at most "
            f"{most:,} are allowed."
        )
    return effort
