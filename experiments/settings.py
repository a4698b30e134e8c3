"""The values of --config: their kinds and ranges."""

from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

import keras_caption as kc
from keras_caption.arguments import (
    Count,
    CountOrZero,
    NotNegative,
    Positive,
    Share,
    ShareBelowOne,
)
from keras_caption.decoding.options import KINDS
from keras_caption.formats.json_files import describe
from keras_caption.models.sizes import SIZES

Model = TypedDict("Model", SIZES, total=False)
Model.__pydantic_config__ = ConfigDict(extra="allow")  # others are not numbers


class Training(TypedDict):
    epochs: Count
    batch_size: Count
    captions_per_image: Count
    max_words: Count
    min_count: Count
    vocabulary_split: Literal["train", "all"]
    learning_rate: Positive
    warmup_epochs: CountOrZero
    decay_after: CountOrZero
    decay_every: Count
    decay_rate: Share
    label_smoothing: ShareBelowOne
    scheduled_sampling: Share
    clip_value: NotNegative
    validation_beam_size: Count


class SelfCritical(TypedDict):
    epochs: CountOrZero
    batch_size: Count
    learning_rate: Positive | None  # `None` continues the schedule before it
    baseline: Literal["greedy", "mean"]
    samples: Count
    temperature: Positive
    cross_entropy: Share
    halved_after: CountOrZero
    clip_value: NotNegative


Decoding = TypedDict(
    "Decoding",
    {name: KINDS[name] for name in ("beam_size", "max_length", "length_penalty")},
)


class Config(TypedDict):
    model: Model
    training: Training
    self_critical: SelfCritical
    decoding: Decoding


def validate(values):
    """Validates the values of --config for all phases of a run.

    Args:
        values: dict of dicts, the groups of --config. Numbers may be strings, as the
            command line gives those that are `None` by default.

    Returns:
        The values, of the types of `Config`, in the same order.

    Raises:
        kc.InputError: If a value is out of range. The message names its flag.
    """
    try:
        valid = TypeAdapter(Config).validate_python(values)
    except ValidationError as error:
        raise kc.InputError(f"--config.{describe(error)}.") from None
    scst = valid["self_critical"]
    if scst["baseline"] == "mean" and scst["samples"] < 2:
        raise kc.InputError(
            "--config.self_critical.samples: the baseline 'mean' needs at least 2, "
            f"received {scst['samples']}."
        )
    if scst["halved_after"] and scst["learning_rate"] is None:
        raise kc.InputError(
            "--config.self_critical.halved_after needs a "
            "--config.self_critical.learning_rate that can be halved."
        )
    return {
        group: {name: valid[group][name] for name in of_group}
        for group, of_group in values.items()
    }
