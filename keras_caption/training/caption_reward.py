"""Rewards of captions by name, as a configuration composes them."""

from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

NAMES = ("cider_d", "truth", "objects")
Weight = Annotated[float, Field(ge=1e-6, le=1e6)]  # beyond, nothing else counts


def reward_weights(reward: str) -> dict[str, float]:
    """Weights of the rewards that a setting adds up.

    Args:
        reward: str: names joined by `"+"`, each of which may have a weight in front of
            it, as in `"cider_d+32*truth"`: `"cider_d"`; `"truth"`, the share of true
            statements about a scene, see
            `keras_caption.synthetic.scenes.StatementTruth`; or `"objects"`, of COCO's
            objects, see `keras_caption.rewards.ObjectTruth`.

    Returns:
        dict from name to weight, in the order of the setting.
    """
    weights = {}
    for term in reward.replace(" ", "").split("+"):
        weight, times, name = term.rpartition("*")
        weights[name] = weights.get(name, 0.0) + float(weight if times else 1)
    return weights


def check_reward(reward: str) -> str:
    """Returns a setting of the reward; a pydantic error if it is none."""
    try:
        terms = reward_weights(reward)
        TypeAdapter(list[Weight]).validate_python(list(terms.values()))
    except (ValidationError, ValueError):
        terms = {}
    if not terms or not {*terms} <= {*NAMES} or len(terms) <= reward.count("+"):
        raise PydanticCustomError(
            "reward",
            "Input should be one of {names}, or a sum such as 'cider_d+32*truth' with "
            "weights from 1e-6 to 1e6",
            {"names": ", ".join(map(repr, NAMES))},
        )
    return reward


Reward = Annotated[str, AfterValidator(check_reward)]
