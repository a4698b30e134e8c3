"""The options of decoding: names, types, defaults and checks."""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Self, TypeVar, Unpack, get_args

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError
from typing_extensions import Doc

from keras_caption.base.arguments import (
    Count,
    FirstFault,
    NotNegative,
    Positive,
    Seed,
    ShareAboveZero,
    check,
    checked,
    entries,
)
from keras_caption.base.errors import InputError, need_name
from keras_caption.base.registration import serializable
from keras_caption.base.validation import UNICODE, is_unicode
from keras_caption.settings.options import DecodingOptions

Function = TypeVar("Function", bound=Callable)
# Beyond these bounds a search would take minutes and gigabytes, without any message.
# The longest output is a translation of `keras_caption.inputs.text.MAX_TOKENS` tokens
# into twice as many.
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
    """Converts a list to a tuple, which is hashable: options are keys of a dict."""
    return tuple(value) if isinstance(value, list) else value


def split(value: Any) -> Any:
    """Converts a list of phrases, or a str with commas between them, to a tuple."""
    if not isinstance(value, str):
        return as_tuple(value)
    return tuple(text.strip() for text in value.split(","))


def as_unicode(text: str) -> str:
    """Returns a text, or raises an error of pydantic if UTF-8 cannot encode it."""
    if not is_unicode(text):
        raise PydanticCustomError("unicode", UNICODE)
    return text


Text = Annotated[str, AfterValidator(as_unicode)]
Texts = Annotated[tuple[Text, ...], FirstFault()]
Phrases = Annotated[Texts, BeforeValidator(split)]
Prefix = Annotated[Text | Texts, BeforeValidator(as_tuple)]


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition in the type of an option, without which the option has no effect.

    Attributes:
        condition: Function of `Decoding` that returns a bool.
        text: str, the condition in words, for messages.
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
    """Options of generation of captions and translations.

    A model has options as its `decoding`, which are saved with it. Methods that
    generate, and commands, have each option as a keyword, which replaces the model's.

    Attributes:
        beam_size: int, beam width; 1 is greedy search.
        max_length: int, greatest number of tokens; an output of that many has no EOS.
        length_ratio: float, greatest number of tokens for each token of the input, EOS
            included. `None` is no such limit. An output that reaches the limit ends
            with EOS. Models of images have no such limit.
        length_margin: int, number of tokens that is added to the limit by
            `length_ratio`.
        min_length: int, least number of tokens before EOS. The limit by `length_ratio`
            has precedence.
        length_penalty: float, exponent of the length normalization; 0 for none.
            Finished hypotheses are ranked by `log p / ((5 + length) / 6) ** alpha` (Wu
            et al., 2016), with alpha this exponent and 5 the `length_offset`.
        length_offset: float, number that length normalization adds to a length. With 0,
            scores are `log p / length ** alpha`: averages, if the exponent is 1.
        allow_unk: bool, whether a search may generate the unknown word.
        renormalize: bool, whether other tokens get the probability of forbidden ones.
        no_repeat_ngram: int, length of token sequences that never repeat; 0 for none.
        repetition_penalty: float, factor of log-probabilities of earlier tokens; 1 for
            none. It affects which tokens are chosen (Keskar et al., 2019), not the
            log-probabilities that are returned. This holds for `diversity` too.
        prefix: str, text that all outputs begin with; or a list, one for each example.
            Outputs continue the prefix. Other options do not forbid its tokens.
        forbidden: List of str, words or phrases that outputs never have. On a command
            line, commas separate them. Their tokens are forbidden in a row. Phrases
            with unknown words are ignored, as no output can have them.
        required: List of str, words or phrases that outputs must have. Their tokens
            come in a row. There is a beam of full width for each number of required
            tokens that a hypothesis has (grid beam search, Hokamp and Liu, 2017).
        groups: int, number of equal parts of the beam, searched in turn. This is
            diverse beam search (Vijayakumar et al., 2018). An output of several groups
            is returned once.
        diversity: float, penalty of a token for each earlier group's hypothesis with
            it. Hypotheses count that have the token at the same position.
        temperature: float, sampling temperature. With a temperature, outputs are
            sampled, without one they are searched for.
        top_k: int, number of most probable tokens that are sampled from.
        top_p: float, least total probability of the tokens that are sampled from. They
            are the most probable ones, after `temperature` and `top_k` (nucleus
            sampling, Holtzman et al., 2020).
        seed: int, seed that makes samples repeatable.
        evidence: bool, whether outputs have only words that detected objects support.
            It is for captioners of detected objects, see
            `keras_caption.objects.ObjectEvidence`. Only words of a `prefix` need no
            support. Fewer texts than were asked for may be left, or none.

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
        """A copy with some options replaced.

        An option that has no effect with the new ones gets its default value.

        Args:
            **options: Fields of this class.

        Raises:
            InputError: If an option is unknown, has a wrong value, or has no effect
                with the others.
        """
        check_names(options)
        given = {
            name: checked(kind, name, options.get(name))
            for name, kind in types().items()
            if name in options
        }
        changed = self.replaced(given)
        for name, (default, needs) in conditions().items():
            value, wanted = getattr(changed, name), given.get(name) is not None
            if value == default and not wanted:
                continue
            for need in needs:
                if need.condition(changed):
                    continue
                if wanted:
                    raise InputError(f"`{name}` needs {need.text}.")
                changed = changed.replaced({name: default})
        changed.check_together()
        return changed

    def of_call(self, n: int | None, options: Mapping[str, Any]) -> Self:
        """These options with those of a call, and a beam that holds `n` texts.

        Args:
            n: int, number of texts that are wanted of an example, or `None`.
            options: dict of options of the call, by name.

        Raises:
            InputError: As in `override`, or if `beam_size` is less than `n`.
        """
        if n is None:
            return self.override(**options)
        check(BeamSize, n=n)
        check_options(options)
        temperature, beam_size, groups = (
            options.get(name, getattr(self, name))
            for name in ("temperature", "beam_size", "groups")
        )
        samples = temperature is not None  # which have no beam
        if not samples and "beam_size" not in options:
            # The groups of a diverse beam have the same width.
            wide = math.ceil(max(n, beam_size) / groups)
            options = {**options, "beam_size": wide * groups}
        changed = self.override(**options)
        if not samples and n > changed.beam_size:
            raise InputError(
                f"A beam of {changed.beam_size} does not hold the {n} best."
            )
        return changed

    def replaced(self, values: Mapping[str, Any]) -> Self:
        """A copy with other values of some options, which have been checked before."""
        copy = object.__new__(type(self))
        vars(copy).update(vars(self), **values)
        return copy

    def fixed(self, name: str, n: int | None, options: Mapping[str, Any]) -> Self:
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
    """Raises `InputError` if a name is no option."""
    for name in options:
        need_name(name, types(), f"There is no decoding option {name!r:.60}")


def check_options(options: Mapping[str, Any]) -> None:
    """Raises `InputError` if an option is unknown, or its value has a wrong type."""
    check_names(options)
    for name, value in options.items():
        checked(types()[name], name, value)


@functools.cache
def types() -> dict[str, Any]:
    """Types of the options, by name, for pydantic, with descriptions."""
    texts = entries(Decoding)
    return {
        field.name: Annotated[field.type, Doc(texts[field.name])]
        for field in dataclasses.fields(Decoding)
    }


@functools.cache
def conditions() -> dict[str, tuple[Any, list[Condition]]]:
    """The default of each option that needs conditions, and these, by name."""
    fields = dataclasses.fields(Decoding)
    return {
        field.name: (field.default, needs)
        for field in fields
        if (needs := needs_of(field))
    }


def needs_of(field: dataclasses.Field) -> list[Condition]:
    """The conditions without which an option has no effect."""
    return [note for note in get_args(field.type) if isinstance(note, Condition)]


def with_decoding(function: Function) -> Function:
    """Replaces `**options` in a function's signature by the options of decoding.

    Type checkers read them in `keras_caption.settings.options`.
    """
    signature = inspect.signature(function)
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=kind
        )
        for name, kind in types().items()
    ]
    signature = signature.replace(parameters=[*named, *options])
    vars(function)["__signature__"] = signature
    return function
