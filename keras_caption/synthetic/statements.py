import dataclasses
from collections.abc import Callable
from typing import Any

from keras_caption.synthetic import moving_scenes, scenes


@dataclasses.dataclass(frozen=True)
class Statements:
    """Functions that judge the statements of captions.

    Attributes:
        accuracy: Function from captions, a dict from image id to str, and examples to
            the share of true statements, see
            `keras_caption.synthetic.scenes.statement_accuracy`.
        truth: Function from a vocabulary to a reward for true statements, such as
            `keras_caption.synthetic.scenes.StatementTruth`, or `None`.
        with_facts: Function that adds the tensors that this reward reads to examples,
            or `None`.
    """

    accuracy: Callable[[dict[int, str], Any], dict[str, tuple[float, int]]]
    truth: Any = None
    with_facts: Callable[[Any], Any] | None = None


# By the feature with the known content.
STATEMENTS = {
    "events": Statements(moving_scenes.statement_accuracy),
    "objects": Statements(
        scenes.statement_accuracy, scenes.StatementTruth, scenes.with_facts
    ),
}


def statements_of(builder: Any) -> Statements | None:
    """Returns the functions that judge statements about a dataset's examples.

    Args:
        builder: TFDS builder, from `keras_caption.datasets.load`.

    Returns:
        `Statements`, or `None` if the content of examples is unknown.
    """
    features = builder.info.features
    return next((x for name, x in STATEMENTS.items() if name in features), None)
