import dataclasses
from collections.abc import Callable
from typing import Any

from keras_caption.synthetic import moving_scenes, scenes


@dataclasses.dataclass(frozen=True)
class Statements:
    """How the statements of captions are judged.

    Attributes:
        accuracy: Function of captions, a dict from image id to str, and examples,
            which returns the share of true statements, see
            `keras_caption.synthetic.scenes.statement_accuracy`.
        truth: Reward for true statements, a function of a vocabulary, such as
            `keras_caption.synthetic.scenes.StatementTruth`, or `None`.
        with_facts: Function of examples, which adds what this reward reads, or `None`.
    """

    accuracy: Callable[[dict[int, str], Any], dict[str, tuple[float, int]]]
    truth: Any = None
    with_facts: Callable[[Any], Any] | None = None


# By the feature that holds the truth.
STATEMENTS = {
    "events": Statements(moving_scenes.statement_accuracy),
    "objects": Statements(
        scenes.statement_accuracy, scenes.StatementTruth, scenes.with_facts
    ),
}


def statements_of(builder: Any) -> Statements | None:
    """How statements about the examples of a dataset are judged.

    Args:
        builder: TFDS builder, from `keras_caption.datasets.load`.

    Returns:
        `Statements`, or `None` if the dataset does not hold the truth.
    """
    features = builder.info.features
    return next((x for name, x in STATEMENTS.items() if name in features), None)
