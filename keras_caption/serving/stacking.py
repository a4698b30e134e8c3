from typing import Any

import numpy as np


def stack(examples: list[Any]) -> Any:
    """A batch of examples, padded with zeros behind.

    Args:
        examples: List of arrays of the same number of dimensions; or of dicts of
            them, of the same names.

    Returns:
        An array `(batch, ...)`, or a dict of them.
    """
    if isinstance(examples[0], dict):
        return {name: stack([x[name] for x in examples]) for name in examples[0]}
    arrays = [np.asarray(x) for x in examples]
    shape = np.max([x.shape for x in arrays], axis=0).astype(int)
    batch = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for row, x in zip(batch, arrays, strict=True):
        row[tuple(map(slice, x.shape))] = x
    return batch
