from collections.abc import Iterable
from typing import TypeVar

import numpy as np

Option = TypeVar("Option")


def choose(rng: np.random.Generator, options: Iterable[Option]) -> Option:
    """One of some options, each as probable as any other."""
    options = list(options)
    return options[rng.integers(len(options))]
