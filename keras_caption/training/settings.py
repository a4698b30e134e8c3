"""Values of an experiment's configuration: their types and ranges."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from keras_caption.arguments import (
    Count,
    CountOrZero,
    NotNegative,
    Positive,
    Samples,
    Share,
    ShareAboveZero,
    ShareBelowOne,
)
from keras_caption.decoding.options import KINDS, SEARCH_ONLY
from keras_caption.errors import InputError, hint
from keras_caption.validation import describe

# Values of a run that belong to no group.
RUN = {
    "seed": 0,  # of the weights, the order of the data and dropout
    "precision": "float32",  # of computations; weights are always in float32
    "strategy": "one_device",  # what to train on
    "deterministic": False,  # only operations that repeat to the bit, also on GPUs
}


class Run(TypedDict):
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    precision: Literal["float32", "bfloat16", "float16"]
    strategy: Literal["one_device", "mirrored", "multi_worker", "tpu"]
    deterministic: bool


class Training(TypedDict):
    epochs: Count
    batch_size: Count
    learning_rate: Positive
    warmup_epochs: CountOrZero
    decay_after: CountOrZero
    decay_every: Count
    decay_rate: ShareAboveZero
    label_smoothing: ShareBelowOne
    scheduled_sampling: Share
    clip_value: NotNegative


class SelfCritical(TypedDict):
    epochs: CountOrZero
    batch_size: Count
    learning_rate: Positive | None  # `None` continues the schedule before it
    baseline: Literal["greedy", "mean"]
    samples: Samples
    temperature: Positive
    cross_entropy: Share
    halved_after: CountOrZero
    clip_value: NotNegative


Decoding = TypedDict(
    "Decoding", {name: KINDS[name] for name in ("max_length", *SEARCH_ONLY)}
)


def model_settings(kinds: dict[str, Any]) -> type:
    """The schema of the group `model`.

    Args:
        kinds: dict from arguments of the model to their types, see
            `keras_caption.models.argument_types`.
    """
    return TypedDict("Model", {"name": str, **kinds})


def validate(
    values: dict[str, Any], groups: dict[str, type], where: str = "--config."
) -> dict[str, Any]:
    """Validates a whole configuration.

    Args:
        values: dict from group to a dict of values, and the values of `RUN`. Numbers
            may be strings, as the command line gives them.
        groups: dict from group to its schema, a `TypedDict`.
        where: str, what messages begin with.

    Returns:
        The values, of the types of the schemas, in their order.

    Raises:
        InputError: If a name is unknown or missing, or a value of the wrong type or
            out of range. The message names the value.
    """
    check_names(values, groups, where)
    schema = TypedDict("Config", {**Run.__annotations__, **groups})
    try:
        valid = TypeAdapter(schema).validate_python(values)
    except ValidationError as error:
        raise InputError(f"{where}{describe(error)}.") from None
    if "self_critical" in valid:
        check_self_critical(valid["self_critical"], f"{where}self_critical")
    return valid


def check_names(
    values: dict[str, Any], groups: dict[str, type], where: str = "--config."
) -> None:
    """Raises `InputError` if a configuration has an unknown group or name."""
    known = [*Run.__annotations__, *groups]
    for group, of_group in values.items():
        if group not in known:
            raise InputError(f"{where}{group} is unknown. {hint(group, known)}")
        if group not in groups:
            continue
        if not isinstance(of_group, dict):
            raise InputError(f"{where}{group} should be a dict, not {of_group!r}.")
        names = groups[group].__annotations__
        for name in of_group:
            if name not in names:
                raise InputError(
                    f"{where}{group}.{name} is unknown. {hint(name, names)}"
                )


def check_self_critical(values: dict[str, Any], where: str) -> None:
    """Raises `InputError` if values of self-critical training do not fit together."""
    if values["baseline"] == "mean" and values["samples"] < 2:
        raise InputError(
            f"{where}.samples: the baseline 'mean' needs at least 2, received "
            f"{values['samples']}."
        )
    if values.get("halved_after") and values["learning_rate"] is None:
        raise InputError(
            f"{where}.halved_after needs a learning_rate that can be halved."
        )
