"""Batches of examples for prediction, and the order in which they run."""

import collections.abc
import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from keras_caption.predict.prediction import Fault
from keras_caption.predict.stacking import stack

BATCH_SIZE = 32  # examples in a batch
WINDOW = 1024  # texts that are sorted by length, so that similar ones share batches
WINDOW_BYTES = 2**28  # size of files in memory at which no further one is read


class Columns:
    """Examples as columns: arrays or lists with a row for each example.

    Args:
        values: dict of arrays, tensors or lists.
        count: int, number of examples.
        first: int, place of the first example in all input.
        read: Function of selected rows, a dict, and their places that returns the
            inputs of a batch. If omitted, the rows are the inputs.
    """

    def __init__(
        self,
        values: dict[str, Any],
        count: int,
        first: int = 0,
        read: Callable[[dict[str, Any], np.ndarray], dict[str, Any]] | None = None,
    ):
        self.values = values
        self.places = np.arange(first, first + count)
        self.read = read

    def groups(self) -> list[Int[np.ndarray, " group"]]:
        return [np.arange(len(self.places))]

    def take(self, indices: Int[np.ndarray, " size"]) -> dict[str, Any]:
        rows, places = self.values, self.places[indices]
        # All rows in their order need no copy.
        if not np.array_equal(places, self.places):
            rows = {name: take_rows(x, indices) for name, x in rows.items()}
        return rows if self.read is None else self.read(rows, places)


class Rows:
    """Examples that were read one by one.

    Examples with the same names of inputs share batches, in the order of their sizes,
    so that there is little padding.

    Args:
        rows: Sequence of dicts of arrays without batch dimension, of any sizes.
        places: Sequence of int, places of the examples in all input.
    """

    def __init__(self, rows: Sequence[dict[str, Any]], places: Sequence[int]):
        self.rows = rows
        self.places = np.array(places, int)

    def groups(self) -> list[Int[np.ndarray, " group"]]:
        groups: dict[frozenset[str], list[int]] = {}
        for index, row in enumerate(self.rows):
            groups.setdefault(frozenset(row), []).append(index)
        for indices in groups.values():
            indices.sort(key=lambda i: size_of(self.rows[i]))
        return [np.array(indices, int) for indices in groups.values()]

    def take(self, indices: Int[np.ndarray, " size"]) -> dict[str, np.ndarray]:
        return stack([self.rows[i] for i in indices])


@dataclasses.dataclass(frozen=True)
class Batch:
    """Examples that run at once.

    Attributes:
        indices: int `(size,)`, indices of the examples. Indices behind the first
            `count` repeat the last one, to fill the batch.
        count: int, number of examples.
    """

    indices: Int[np.ndarray, " size"]
    count: int


def batches_of(
    examples: Columns | Rows,
    batch_size: int = BATCH_SIZE,
    fill: Callable[[int, int], int] | None = None,
) -> Iterator[Batch]:
    """Yields batches of examples. All batches of a group have the same size.

    Args:
        examples: `Columns` or `Rows`.
        batch_size: int, greatest number of examples in a batch.
        fill: Function of the number of examples in the only batch of a group, and of
            `batch_size`, that returns the number of rows of the batch. If omitted, a
            batch has no further rows.
    """
    for group in examples.groups():
        if not len(group):
            continue
        # 33 examples are 17 and 16, not 32 and 1: one compiled shape, less padding.
        count = math.ceil(len(group) / batch_size)
        size = math.ceil(len(group) / count)
        rows = fill(size, batch_size) if fill and count == 1 else size
        for start in range(0, len(group), size):
            indices = group[start : start + size]
            more = np.repeat(indices[-1:], rows - len(indices))
            yield Batch(np.concatenate([indices, more]), len(indices))


def run_batches(
    examples: Columns | Rows,
    run: Callable[[dict[str, Any], Int[np.ndarray, " size"]], Iterable[Any]],
    batch_size: int = BATCH_SIZE,
    fill: Callable[[int, int], int] | None = None,
    faults: type[Exception] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Runs a function over examples, batch by batch.

    Args:
        examples, batch_size, fill: As in `batches_of`.
        run: Function of a batch's inputs, a dict of arrays, and of the places of its
            examples in all input. It returns a result for each example.
        faults: Class of errors after which the examples of a batch are run one by one.
            The result of an example that fails alone is a `Fault`. Other errors are
            raised. If omitted, all errors are raised.

    Yields:
        The index of an example, and its result. `Columns` keep their order.
    """

    def results_of(indices):
        return run(examples.take(indices), examples.places[indices])

    def result_alone(index):
        try:
            return results_of(np.array([index]))[0]
        except caught as error:
            return Fault(int(examples.places[index]), error)

    caught = () if faults is None else faults
    for batch in batches_of(examples, batch_size, fill):
        indices = batch.indices[: batch.count].tolist()
        try:
            results = results_of(batch.indices)
        except caught:
            results = map(result_alone, indices)
        # Rows that only fill the batch have results too: they are dropped.
        yield from zip(indices, results, strict=False)


def count_rows(values: Any) -> int:
    """The number of rows of a list, an array or a tensor; 1 of anything else."""
    if isinstance(values, (str, bytes, os.PathLike)):
        return 1
    try:
        return len(values)
    except TypeError:
        return 1


def take_rows(values: Any, rows: np.ndarray) -> Any:
    """The rows of a list, an array or a tensor at the indices `rows`."""
    if not hasattr(values, "shape"):
        values = list(values)
        return [values[i] for i in rows]
    if isinstance(values, np.ndarray):
        return values[rows]
    from keras import ops

    return ops.take(values, rows, axis=0)


def size_of(values: Any) -> int:
    """The number of values of an array, or of all arrays of nested dicts."""
    if isinstance(values, collections.abc.Mapping):
        return sum(map(size_of, values.values()))
    return np.size(values)
