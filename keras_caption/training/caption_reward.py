"""Rewards of captions, composed by name in a configuration."""

from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

NAMES = ("cider_d", "truth", "objects", "places")
Weight = Annotated[float, Field(ge=1e-6, le=1e6)]  # outside, one term is everything


def reward_weights(reward: str) -> dict[str, float]:
    """Parses a sum of rewards into their weights.

    Args:
        reward: str, names joined by `"+"`, each with an optional weight in front, as in
            `"cider_d+32*truth"`. Names are `"cider_d"`; `"truth"`, the share of true
            statements about a scene, see
            `keras_caption.synthetic.scenes.StatementTruth`; `"objects"`, for objects of
            COCO, see `keras_caption.rewards.ObjectTruth`; and `"places"`, see
            `keras_caption.rewards.PlaceTruth`.

    Returns:
        dict from name to weight, in the order of the setting.
    """
    weights: dict[str, float] = {}
    for term in reward.replace(" ", "").split("+"):
        weight, times, name = term.rpartition("*")
        weights[name] = weights.get(name, 0.0) + float(weight if times else 1)
    return weights


def check_reward(reward: str) -> str:
    """Validates a setting of the reward; raises a pydantic error if it is wrong."""
    try:
        terms = reward_weights(reward)
        TypeAdapter(list[Weight]).validate_python(list(terms.values()))
    except (ValidationError, ValueError):
        terms = {}
    # Fewer terms than plus signs mean that a name came twice.
    if not terms or not {*terms} <= {*NAMES} or len(terms) <= reward.count("+"):
        raise PydanticCustomError(
            "reward",
            "Input should be one of {names}, or a sum such as 'cider_d+32*truth' with "
            "weights from 1e-6 to 1e6",
            {"names": ", ".join(map(repr, NAMES))},
        )
    return reward


Reward = Annotated[str, AfterValidator(check_reward)]
