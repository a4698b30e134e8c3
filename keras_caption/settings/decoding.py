"""The options of decoding: their names, types, defaults and checks, in one place."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Self, TypeVar, Unpack, get_args

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import Doc

from keras_caption.arguments import (
    Count,
    NotNegative,
    Positive,
    Seed,
    ShareAboveZero,
    checked,
    entries,
)
from keras_caption.errors import InputError, hint
from keras_caption.registration import serializable
from keras_caption.settings.options import DecodingOptions

Function = TypeVar("Function", bound=Callable)
# Beyond these a search takes minutes and gigabytes without a word. The longest output
# is a translation of `keras_caption.inputs.text.MAX_TOKENS` into twice as many tokens.
BeamSize = Annotated[int, Field(ge=1, le=100)]
MaxLength = Annotated[int, Field(ge=1, le=4096)]
LengthRatio = Annotated[float, Field(ge=0, le=100)]
LengthMargin = Annotated[int, Field(ge=0, le=4096)]
NgramSize = Annotated[int, Field(ge=0, le=20)]
MinLength = Annotated[int, Field(ge=0, le=4096)]
Penalty = Annotated[float, Field(ge=1, le=100)]
# Scores are divided by powers of lengths up to 4,096, which float32 has to hold.
LengthPenalty = Annotated[NotNegative, Field(le=10)]


def as_tuple(value: Any) -> Any:
    """A list as a tuple, which a dict can have as a key."""
    return tuple(value) if isinstance(value, list) else value


def split(value: Any) -> Any:
    """Phrases, of a list, or of one str that separates them by commas."""
    if not isinstance(value, str):
        return as_tuple(value)
    return tuple(text.strip() for text in value.split(","))


def as_unicode(text: str) -> str:
    """Returns a text; a pydantic error if UTF-8 cannot encode it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError(
            "unicode", "Input should be Unicode, without half of a surrogate pair"
        ) from None
    return text


Text = Annotated[str, AfterValidator(as_unicode)]
Phrases = Annotated[tuple[Text, ...], BeforeValidator(split)]
Prefix = Annotated[Text | tuple[Text, ...], BeforeValidator(as_tuple)]


@dataclasses.dataclass(frozen=True)
class Condition:
    """Says, in the type of an option, what it has no effect without.

    Attributes:
        condition: Function of `Decoding` to bool.
        text: str, the condition in words.
    """

    condition: Callable[[Any], bool]
    text: str


SAMPLING = Condition(
    lambda options: options.temperature is not None,
    "`temperature`: with a temperature captions are sampled, without one they are "
    "searched for",
)
SEARCH = Condition(
    lambda options: options.temperature is None,
    "a search: with a `temperature` captions are sampled, without one they are "
    "searched for",
)
BEAM = Condition(
    lambda options: options.temperature is None and options.beam_size > 1,
    "a beam: a `beam_size` of more than 1, and no `temperature`",
)
DIVIDED = Condition(
    lambda options: options.groups > 1,
    "`groups` of the beam, which it keeps apart",
)
UNDIVIDED = Condition(
    lambda options: options.groups == 1,
    "a beam that is not divided: no `groups`",
)
RATIO = Condition(
    lambda options: options.length_ratio is not None,
    "`length_ratio`, which it adds to",
)


@serializable
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
        min_length: int, least number of tokens before EOS; a `length_ratio` goes
            before it.
        length_penalty: float, exponent of the length normalization; 0 for none.
            Finished hypotheses are ranked by `log p / ((5 + length) / 6) ** alpha` (Wu
            et al., 2016), 5 being `length_offset`.
        length_offset: float, what that adds to a length; 0 for `length ** alpha`. With
            it, an exponent of 1 ranks by averages.
        allow_unk: bool, whether a search may generate the unknown word.
        renormalize: bool, whether other tokens get the probability of forbidden ones.
        no_repeat_ngram: int, number of tokens in a row that never come twice; 0 for
            any.
        repetition_penalty: float, factor of log-probabilities of earlier tokens. 1 is
            for none. Tokens are chosen by it (Keskar et al., 2019); log-probabilities
            that are returned stay the model's. So it is with `diversity`.
        prefix: str, text that outputs begin with; or a list, one for each example. They
            continue it. It comes, whatever else is forbidden.
        forbidden: List of str, words or phrases that never come, as tokens in a row. On
            a command line, commas separate them. What the model does not know is
            passed over, as it cannot come.
        required: List of str, words or phrases that have to come, as tokens in a row.
            The beam is as wide for each number of their tokens that a hypothesis has
            (grid beam search, Hokamp and Liu, 2017).
        groups: int, number of equal parts of the beam, searched in turn. This is
            diverse beam search (Vijayakumar et al., 2018).
        diversity: float, penalty of a token for each hypothesis with it there. Those of
            earlier groups count, in the same place of the output.
        temperature: float, sampling temperature. If given, outputs are sampled instead
            of searched for.
        top_k: int, number of most probable tokens that are sampled from.
        top_p: float, least total probability of the tokens that are sampled from. They
            are the most probable ones, after `temperature` and `top_k` (nucleus
            sampling, Holtzman et al., 2020).
        seed: int, makes the samples repeatable.
        evidence: bool, whether only what objects are evidence for is said. It is for
            captioners of detected objects, see `keras_caption.decoding.ObjectEvidence`.
            Other words come only where all else is forbidden.

    Raises:
        InputError: If a value is wrong.
    """

    beam_size: Annotated[BeamSize, SEARCH] = 3
    max_length: MaxLength = 20
    length_ratio: LengthRatio | None = None
    length_margin: Annotated[LengthMargin, RATIO] = 0
    min_length: MinLength = 0
    length_penalty: Annotated[LengthPenalty, BEAM] = 0.0
    length_offset: Annotated[NotNegative, BEAM] = 5.0
    allow_unk: Annotated[bool, SEARCH] = False
    renormalize: Annotated[bool, SEARCH] = False
    no_repeat_ngram: NgramSize = 0
    repetition_penalty: Penalty = 1.0
    prefix: Prefix = ""
    forbidden: Phrases = ()
    required: Annotated[Phrases, SEARCH, UNDIVIDED] = ()
    groups: Annotated[BeamSize, BEAM] = 1
    diversity: Annotated[NotNegative, DIVIDED] = 0.5
    temperature: Positive | None = None
    top_k: Annotated[Count | None, SAMPLING] = None
    top_p: Annotated[ShareAboveZero | None, SAMPLING] = None
    seed: Annotated[Seed | None, SAMPLING] = None
    evidence: bool = False

    def __post_init__(self):
        for name, kind in types().items():
            value = checked(kind, name, getattr(self, name))
            object.__setattr__(self, name, value)

    def override(self, **options: Unpack[DecodingOptions]) -> Self:
        """These options, some of them replaced.

        An option that has no effect beside the new ones gets its default value.

        Args:
            **options: Fields of this class.

        Raises:
            InputError: If an option is unknown, has a wrong value, or has no effect
                beside the others.
        """
        check_names(options)
        changed = dataclasses.replace(self, **options)
        for field in dataclasses.fields(self):
            for need in needs_of(field):
                if need.condition(changed):
                    continue
                if options.get(field.name) is not None:
                    raise InputError(f"`{field.name}` needs {need.text}.")
                changed = dataclasses.replace(changed, **{field.name: field.default})
        changed.check_together()
        return changed

    def fixed(self, name: str, n: int | None, options: dict[str, Any]) -> Self:
        """These options, of a model whose file holds the whole search.

        Args:
            name: str, of the model.
            n: int, number of texts that are wanted of an example, or `None`.
            options: dict of options of a call, by name.

        Raises:
            InputError: If the options of the call are others.
        """
        changed = self.override(**options)
        if changed != self or (n or 1) > 1:
            option = min(options, default="n") if (n or 1) == 1 else "n"
            raise InputError(
                f"The file of '{name}' holds the whole search: `{option}` is fixed."
            )
        return changed

    def check_together(self) -> None:
        """Raises `InputError` if options contradict each other."""
        if self.min_length > self.max_length:
            raise InputError(
                f"A `min_length` of {self.min_length} is more than a `max_length` of "
                f"{self.max_length}."
            )
        if self.beam_size % self.groups:
            raise InputError(
                f"A beam of {self.beam_size} cannot be divided into {self.groups} "
                "equal `groups`."
            )

    def get_config(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


def check_names(options: Iterable[str]) -> None:
    """Raises `InputError` if there is no option of a name."""
    for name in options:
        if name not in types():
            raise InputError(
                f"There is no decoding option {name!r:.60}. {hint(name, types())}"
            )


def check_options(options: dict[str, Any]) -> None:
    """Raises `InputError` if an option is unknown, or its value not of its type."""
    check_names(options)
    for name, value in options.items():
        checked(types()[name], name, value)


@functools.cache
def types() -> dict[str, Any]:
    """Types of the options, by name, with descriptions; pydantic validates them."""
    texts = entries(Decoding)
    return {
        field.name: Annotated[field.type, Doc(texts[field.name])]
        for field in dataclasses.fields(Decoding)
    }


def needs_of(field: dataclasses.Field) -> Iterable[Condition]:
    """The options without which this one has no effect."""
    return [note for note in get_args(field.type) if isinstance(note, Condition)]


def with_decoding(function: Function) -> Function:
    """Makes a function's signature name the options that its `**options` takes.

    Type checkers read them in `keras_caption.settings.options`.
    """
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
