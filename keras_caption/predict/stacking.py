from typing import Any

import numpy as np


def stack(examples: list[Any]) -> Any:
    """Stacks examples as a batch, padded with zeros at the end of each axis.

    Args:
        examples: List of arrays with the same number of dimensions, of bytes, or of
            (nested) dicts of these with the same names.

    Returns:
        An array `(batch, ...)`, or a dict of arrays.
    """
    if isinstance(examples[0], dict):
        return {name: stack([x[name] for x in examples]) for name in examples[0]}
    # NumPy's own dtype of bytes drops zeros at their end, and JPEG files may have some.
    dtype = object if isinstance(examples[0], bytes) else None
    arrays = [np.asarray(x, dtype) for x in examples]
    shape = np.max([x.shape for x in arrays], axis=0).astype(int)
    batch = np.zeros((len(arrays), *shape), arrays[0].dtype)
    for i, x in enumerate(arrays):
        index: tuple[int | slice, ...] = (i, *map(slice, x.shape))
        # `x.item()`, since an array of objects would hold the scalar as an array.
        batch[index] = x if x.ndim else x.item()
    return batch
