"""Decoding options, validated in one place."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import Doc

from keras_caption.arguments import (
    Count,
    NotNegative,
    Positive,
    Seed,
    check,
)
from keras_caption.errors import InputError, hint


def check_options(options: dict[str, Any]) -> None:
    """Checks the options of a call that generates captions, all together.

    Args:
        options: dict from names to values; see
            `keras_caption.models.Seq2Seq.generate_tokens`.

    Raises:
        InputError: If an option is unknown, has a wrong value, or has no effect
            beside the others: beam search has no `top_k` and no `seed`, sampling no
            beam, and a `length_margin` needs a `length_ratio`.
    """
    for name in options:
        if name not in KINDS:
            raise InputError(
                f"There is no decoding option {name!r}. {hint(name, KINDS)}"
            )
    check_values(**options)
    if "length_margin" in options and "length_ratio" not in options:
        raise InputError("`length_margin` needs `length_ratio`, which it adds to.")
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
        check(KINDS[name], **{name: value})


# Beyond these a search takes minutes and gigabytes without a word. The longest output
# is a translation of `keras_caption.inputs.text.MAX_TOKENS` into twice as many tokens.
BeamSize = Annotated[int, Field(ge=1, le=100)]
MaxLength = Annotated[int, Field(ge=1, le=4096)]
LengthMargin = Annotated[int, Field(ge=0, le=4096), Doc("tokens beyond, at most")]
LengthRatio = Annotated[
    float, Field(ge=0, le=100), Doc("tokens for each of the source, at most")
]

SEARCH_ONLY = ("beam_size", "length_penalty", "block_trigrams")
SAMPLING_ONLY = ("top_k", "seed")
KINDS = {
    "beam_size": Annotated[BeamSize, Doc("beam width; 1 is greedy search")],
    "max_length": Annotated[MaxLength, Doc("greatest number of tokens, EOS included")],
    "length_ratio": LengthRatio,
    "length_margin": LengthMargin,
    "length_penalty": Annotated[
        NotNegative, Doc("exponent of the length normalization; 0 for none")
    ],
    "block_trigrams": Annotated[bool, Doc("never repeat three tokens in a row")],
    "temperature": Positive,
    "top_k": Count,
    "seed": Seed,
}
