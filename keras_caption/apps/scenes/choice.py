from collections.abc import Iterable
from typing import TypeVar

import numpy as np

Option = TypeVar("Option")


def choose(rng: np.random.Generator, options: Iterable[Option]) -> Option:
    """Chooses one of several options with equal probability."""
    options = list(options)
    return options[rng.integers(len(options))]
