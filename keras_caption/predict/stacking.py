from typing import Any

import numpy as np


def stack(examples: list[Any]) -> Any:
    """A batch of examples, padded with zeros behind.

    Args:
        examples: List of arrays of the same number of dimensions, or of bytes; or of
            dicts of them, of the same names.

    Returns:
        An array `(batch, ...)`, or a dict of them.
    """
    if isinstance(examples[0], dict):
        return {name: stack([x[name] for x in examples]) for name in examples[0]}
    # As objects, bytes keep zeros at their end.
    dtype = object if isinstance(examples[0], bytes) else None
    arrays = [np.asarray(x, dtype) for x in examples]
    shape = np.max([x.shape for x in arrays], axis=0).astype(int)
    batch = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for i, x in enumerate(arrays):
        batch[(i, *map(slice, x.shape))] = x if x.ndim else x.item()
    return batch
