from collections.abc import Callable, Sequence
from typing import Any


def count_statements(
    captions: dict[int, str],
    examples: Any,
    categories: Sequence[str],
    judge: Callable[[str, dict[str, Any]], list[tuple[str, bool]]],
) -> dict[str, tuple[float, int]]:
    """Computes the share of the statements of captions that are true.

    Args:
        captions: dict from image id to str.
        examples: `tf.data.Dataset` of examples.
        categories: Names of the categories of statements.
        judge: Function of a caption and an example in NumPy, which returns pairs of a
            category and whether the statement is true.

    Returns:
        dict from each category, and `"all"`, to a pair: the share of true statements,
        and the number of statements.
    """
    outcomes: dict[str, list[bool]] = {category: [] for category in categories}
    for example in examples.as_numpy_iterator():
        caption = captions.get(int(example["image_id"]))
        if caption is not None:
            for category, true in judge(caption, example):
                outcomes[category].append(true)
    outcomes["all"] = [true for truths in outcomes.values() for true in truths]
    return {
        category: (sum(truths) / len(truths) if truths else 0.0, len(truths))
        for category, truths in outcomes.items()
    }
