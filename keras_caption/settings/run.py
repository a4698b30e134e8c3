"""Types and ranges of the values of an experiment's configuration."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import Doc, TypedDict

from keras_caption.base.arguments import (
    Count,
    CountOrZero,
    NotNegative,
    Positive,
    Samples,
    Share,
    ShareAboveZero,
    ShareBelowOne,
)
from keras_caption.base.errors import InputError, need_name
from keras_caption.base.validation import describe
from keras_caption.settings.decoding import types

DEFAULT_MODEL = "ngsan"
# Default values of settings that belong to no group.
RUN = {
    "seed": 0,
    "precision": "float32",
    "strategy": "one_device",
    "jit_compile": "auto",
    "deterministic": False,
}


class Run(TypedDict):
    seed: Annotated[
        int,
        Field(ge=0, lt=2**31),
        Doc("seed of the weights, the order of the data and dropout"),
    ]
    precision: Annotated[
        Literal["float32", "bfloat16", "float16"],
        Doc("float32, bfloat16 or float16; weights are always in float32"),
    ]
    strategy: Annotated[
        Literal["one_device", "mirrored", "multi_worker", "tpu"],
        Doc("one_device, mirrored (all GPUs), multi_worker (TF_CONFIG) or tpu"),
    ]
    jit_compile: Annotated[
        Literal["auto"] | bool,
        Doc("whether XLA compiles all steps; auto: on GPUs and TPUs only"),
    ]
    deterministic: Annotated[
        bool, Doc("use only operations that repeat bit by bit, on GPUs too")
    ]


class Schedule(TypedDict):
    """Values of `keras_caption.training.schedules.WarmupStepDecay`."""

    learning_rate: Annotated[
        Positive, Doc("greatest learning rate of Adam, reached after the warm-up")
    ]
    warmup_epochs: Annotated[
        CountOrZero, Doc("epochs in which the learning rate grows")
    ]
    decay_after: Annotated[
        CountOrZero, Doc("last epoch before the learning rate decays")
    ]
    decay_every: Annotated[Count, Doc("epochs between two decays")]
    decay_rate: Annotated[
        ShareAboveZero, Doc("factor of the learning rate at each decay")
    ]


class Training(Schedule):
    epochs: Annotated[Count, Doc("epochs of cross-entropy")]
    batch_size: Annotated[Count, Doc("images or videos in a batch")]
    label_smoothing: Annotated[
        ShareBelowOne, Doc("probability that the right token gives to all tokens")
    ]
    scheduled_sampling: Annotated[
        Share, Doc("greatest share of input tokens that the model samples")
    ]
    clip_value: Annotated[
        NotNegative, Doc("greatest absolute value of a gradient; 0 for no clipping")
    ]


class SelfCriticalSettings(TypedDict):
    """Settings of the self-critical training of every task."""

    epochs: Annotated[CountOrZero, Doc("epochs of self-critical training; 0 for none")]
    baseline: Annotated[
        Literal["greedy", "mean"],
        Doc("baseline of rewards: the reward of greedy search, or the mean reward"),
    ]
    samples: Annotated[
        Samples, Doc("captions or translations sampled for each example")
    ]
    temperature: Annotated[Positive, Doc("sampling temperature")]
    cross_entropy: Annotated[Share, Doc("share of cross-entropy in the loss")]


def schema(name: str, kinds: Mapping[str, Any]) -> Any:
    """A `TypedDict` of what is known only when the library runs."""
    make: Any = TypedDict  # of which type checkers know literals only
    return make(name, dict(kinds))


DecodingSettings = schema(
    "DecodingSettings", {name: NotRequired[kind] for name, kind in types().items()}
)


def model_settings(kinds: dict[str, Any]) -> type:
    """The schema of the group `model`.

    Args:
        kinds: dict from arguments of the model to their types, see
            `keras_caption.models.argument_types`.
    """
    name = Annotated[str, Doc("a preset, such as ngsan or aoanet")]
    return schema("Model", {"name": name, **kinds})


def validate(
    values: dict[str, Any], groups: dict[str, type], where: str = "--config."
) -> dict[str, Any]:
    """Validates a whole configuration.

    Args:
        values: dict from group to a dict of values, and the values of `RUN`. Numbers
            may be strings, as they are on a command line.
        groups: dict from group to its schema, a `TypedDict`.
        where: str, beginning of messages.

    Returns:
        dict, the values with the types and the order of the schemas.

    Raises:
        InputError: If a name is unknown or missing, or a value has a wrong type or is
            out of range. The message names the value.
    """
    check_names(values, groups, where)
    whole = schema("Config", {**Run.__annotations__, **groups})
    try:
        valid = TypeAdapter(whole).validate_python(values)
    except ValidationError as error:
        raise InputError(f"{where}{describe(error, values)}.") from None
    if "self_critical" in valid:
        check_self_critical(valid["self_critical"], f"{where}self_critical")
    return valid


def check_names(
    values: dict[str, Any], groups: dict[str, type], where: str = "--config."
) -> None:
    """Raises `InputError` if a configuration has an unknown group or name."""
    known = [*Run.__annotations__, *groups]
    for group, settings in values.items():
        need_name(group, known, f"{where}{group} is unknown")
        if group not in groups:
            continue
        if not isinstance(settings, dict):
            raise InputError(f"{where}{group} should be a dict, not {settings!r}.")
        names = groups[group].__annotations__
        for name in settings:
            need_name(name, names, f"{where}{group}.{name} is unknown")


def check_self_critical(values: dict[str, Any], where: str) -> None:
    """Raises `InputError` if values of self-critical training contradict each other."""
    if values["baseline"] == "mean" and values["samples"] < 2:
        raise InputError(
            f"{where}.samples: the baseline 'mean' needs at least 2, received "
            f"{values['samples']}."
        )
    if values.get("halved_after") and values["learning_rate"] is None:
        raise InputError(
            f"{where}.halved_after needs a learning_rate that can be halved."
        )


def documentation(kind: Any) -> str:
    """The `Doc` in the type of a value, or ""."""
    kind = get_args(kind)[0] if get_origin(kind) is NotRequired else kind
    notes = getattr(kind, "__metadata__", ())
    return next((note.documentation for note in notes if isinstance(note, Doc)), "")
