import dataclasses
from collections.abc import Callable
from typing import Any

from keras_caption.registration import Registry


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

    def marks(self, captions: dict[int, str], examples: Any) -> dict[int, str]:
        """Says what is true in each caption.

        Args:
            captions: dict from image id to str.
            examples: `tf.data.Dataset` of the examples of these images.

        Returns:
            dict from image id to `"true"`, or how many of the statements are false.
        """
        return {i: self._mark({i: text}, examples) for i, text in captions.items()}

    def _mark(self, caption, examples):
        share, count = self.accuracy(caption, examples)["all"]
        false = count - round(share * count)
        if not count:
            return "no statement"
        return f"false: {false} of {count} statements" if false else "true"


# By the feature with the known content.
STATEMENTS = Registry("statements")


def statements_of(builder: Any) -> Statements | None:
    """Returns the functions that judge statements about a dataset's examples.

    Args:
        builder: TFDS builder, from `keras_caption.datasets.load`.

    Returns:
        `Statements`, or `None` if the content of examples is unknown.
    """
    features = builder.info.features
    return next((x for name, x in STATEMENTS.items() if name in features), None)
