"""The options of decoding: their names, types, defaults and checks, in one place."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Self, get_args

import keras
from pydantic import Field
from typing_extensions import Doc

from keras_caption.arguments import (
    Count,
    NotNegative,
    Positive,
    Seed,
    check,
    entries,
)
from keras_caption.errors import InputError, hint

# Beyond these a search takes minutes and gigabytes without a word. The longest output
# is a translation of `keras_caption.inputs.text.MAX_TOKENS` into twice as many tokens.
BeamSize = Annotated[int, Field(ge=1, le=100)]
MaxLength = Annotated[int, Field(ge=1, le=4096)]
LengthRatio = Annotated[float, Field(ge=0, le=100)]
LengthMargin = Annotated[int, Field(ge=0, le=4096)]
NgramSize = Annotated[int, Field(ge=0, le=20)]


@dataclasses.dataclass(frozen=True)
class Needs:
    """Says, in the type of an option, what it has no effect without.

    Attributes:
        condition: Function of `Decoding` to bool.
        text: str, the condition in words.
    """

    condition: Callable[[Any], bool]
    text: str


SAMPLING = Needs(
    lambda options: options.temperature is not None,
    "`temperature`: with a temperature captions are sampled, without one they are "
    "searched for",
)
SEARCH = Needs(
    lambda options: options.temperature is None,
    "a search: with a `temperature` captions are sampled, without one they are "
    "searched for",
)
BEAM = Needs(
    lambda options: options.temperature is None and options.beam_size > 1,
    "a beam: a `beam_size` of more than 1, and no `temperature`",
)
RATIO = Needs(
    lambda options: options.length_ratio is not None,
    "`length_ratio`, which it adds to",
)


@keras.saving.register_keras_serializable("keras_caption")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Decoding:
    """How captions, or translations, are generated.

    A model keeps its own as `decoding`, and saves them. Each is a keyword of whatever
    generates, and an option of the commands; there it stands in place of the model's.

    Attributes:
        beam_size: int, beam width; 1 is greedy search.
        max_length: int, greatest number of tokens; an output of that many has no EOS.
        length_ratio: float, greatest number of tokens for each token of the input, EOS
            included. `None` is for no such limit. An output that reaches it ends with
            EOS there. Models of images have none.
        length_margin: int, number of tokens beyond that.
        length_penalty: float, exponent of the length normalization; 0 for none.
            Finished hypotheses are ranked by `log p / ((5 + length) / 6) ** alpha` (Wu
            et al., 2016), 5 being `length_offset`.
        length_offset: float, what that adds to a length; 0 for
            `log p / length ** alpha`, and with an exponent of 1 for averages.
        allow_unk: bool, whether a search may generate the unknown word.
        renormalize: bool, whether the probability of tokens that are never generated
            goes to the others.
        no_repeat_ngram: int, number of tokens in a row that never come twice; 0 for
            any.
        temperature: float, sampling temperature. If given, outputs are sampled instead
            of searched for.
        top_k: int, number of most probable tokens that are sampled from.
        seed: int, makes the samples repeatable.

    Raises:
        InputError: If a value is wrong.
    """

    beam_size: Annotated[BeamSize, SEARCH] = 3
    max_length: MaxLength = 20
    length_ratio: LengthRatio | None = None
    length_margin: Annotated[LengthMargin, RATIO] = 0
    length_penalty: Annotated[NotNegative, BEAM] = 0.0
    length_offset: Annotated[NotNegative, BEAM] = 5.0
    allow_unk: Annotated[bool, SEARCH] = False
    renormalize: Annotated[bool, SEARCH] = False
    no_repeat_ngram: NgramSize = 0
    temperature: Positive | None = None
    top_k: Annotated[Count | None, SAMPLING] = None
    seed: Annotated[Seed | None, SAMPLING] = None

    def __post_init__(self):
        for name, kind in types().items():
            check(kind, **{name: getattr(self, name)})

    def override(self, **options: Any) -> Self:
        """These options, some of them replaced.

        An option that has no effect beside the new ones gets its default value.

        Args:
            **options: Fields of this class.

        Raises:
            InputError: If an option is unknown, has a wrong value, or has no effect
                beside the others.
        """
        names = [field.name for field in dataclasses.fields(self)]
        for name in options:
            if name not in names:
                raise InputError(
                    f"There is no decoding option {name!r}. {hint(name, names)}"
                )
        changed = dataclasses.replace(self, **options)
        for field in dataclasses.fields(self):
            for need in needs_of(field):
                if need.condition(changed):
                    continue
                if options.get(field.name) is not None:
                    raise InputError(f"`{field.name}` needs {need.text}.")
                changed = dataclasses.replace(changed, **{field.name: field.default})
        return changed

    def get_config(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


@functools.cache
def types() -> dict[str, Any]:
    """Types of the options, by name, with descriptions; pydantic validates them."""
    texts = entries(Decoding)
    return {
        field.name: Annotated[field.type, Doc(texts[field.name])]
        for field in dataclasses.fields(Decoding)
    }


def needs_of(field: dataclasses.Field) -> Iterable[Needs]:
    """The options without which this one has no effect."""
    return [note for note in get_args(field.type) if isinstance(note, Needs)]


def with_decoding(function: Callable) -> Callable:
    """Makes a function's signature name the options that its `**options` takes."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=kind
        )
        for name, kind in types().items()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])
    return function
