import collections.abc
import functools
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Int
from keras import ops

from keras_caption.arguments import Count, Tensor, check
from keras_caption.compilation import JitSwitch, round_up_rows
from keras_caption.errors import InputError
from keras_caption.inputs import (
    InputKind,
    kinds_of,
    missing_inputs,
    padded,
    read,
)
from keras_caption.text import Tokenizer

BATCH_SIZE = 32  # examples that are predicted at once, with their photos in memory
RAW = "raw"  # name of input that is no dict


class InputReader(JitSwitch):
    """Mixin of models and ensembles that takes their inputs out of batches.

    A class that inherits it has a `name` and `input_specs`, a dict of symbolic inputs.

    Attributes:
        ignored_inputs: tuple of str, names of inputs that the encoder takes, but that
            predictions do not depend on.
        source, question: `keras_caption.text.Tokenizer` of the inputs of this name, or
            `None`.
    """

    source: Tokenizer | None = None
    question: Tokenizer | None = None
    _ignored_inputs: tuple[str, ...] = ()

    @property
    def ignored_inputs(self) -> tuple[str, ...]:
        return self._ignored_inputs

    @ignored_inputs.setter
    def ignored_inputs(self, names: Iterable[str]) -> None:
        self._ignored_inputs = tuple(names)
        vars(self).pop("kinds", None)

    @functools.cached_property
    def kinds(self) -> list[InputKind]:
        """The kinds of input that the model reads."""
        tokenizers = {"source": self.source, "question": self.question}
        return kinds_of(self.input_specs, self.ignored_inputs, tokenizers)

    def to_batch(self, raw: Any) -> Any:
        """Turns raw input into a batch; the default is that it is one."""
        return raw

    def read(self, raw: Any, check: bool = False, first: int = 0) -> dict[str, Tensor]:
        """Takes the encoder's inputs out of a batch, completed with masks.

        Args:
            raw: dict of arrays or tensors, or what `to_batch` takes.
            check: bool, whether to check the values too, not only the shapes.
            first: int, the first example's place in all input, for messages.

        Returns:
            dict of tensors.

        Raises:
            InputError: If an input is missing or has a wrong shape; with `check`, if
                an example is one that nothing can be predicted from.
        """
        return read(self.kinds, self.to_batch(raw), self.name, check, first)

    def read_in_batches(
        self, raw: Any, batch_size: int
    ) -> tuple[int, Iterator[tuple[Int[np.ndarray, " size"], dict[str, Tensor]]]]:
        """Reads and checks any number of examples, some at a time.

        Photos and clips are read batch by batch. Examples that need no reading are
        all checked before the first batch.

        Args:
            raw: As of `read`.
            batch_size: int, greatest number of examples in a batch.

        Returns:
            The number of examples; and an iterator over batches of one size, so that
            one compiled function serves all: pairs of the places of its examples in
            `raw`, int `(size,)`, and a dict as of `read`. Where examples are too few
            for the last batch, it repeats the last one.

        Raises:
            InputError: As `read` raises it.
        """
        check(Count, batch_size=batch_size)
        counts = {name: count_rows(x) for name, x in self._readable(raw).items()}
        count = max(counts.values(), default=1)
        if count <= batch_size:
            inputs = self.read(raw, check=True)
            count = len(next(iter(inputs.values())))
            rows = np.arange(count)
            if self.has_few_shapes(count):
                size = round_up_rows(count, batch_size)
                rows = np.minimum(np.arange(size), count - 1)
                inputs = {name: take_rows(x, rows) for name, x in inputs.items()}
            return count, iter([(rows, inputs)])
        if len(set(counts.values())) > 1:
            noun = self.kinds[0].noun
            raise InputError(f"The inputs differ in their number of {noun}s: {counts}.")
        size = math.ceil(count / math.ceil(count / batch_size))
        places = [
            np.minimum(np.arange(start, start + size), count - 1)
            for start in range(0, count, size)
        ]

        def read_rows(rows, check):
            part = {n: take_rows(x, rows) for n, x in self._readable(raw).items()}
            return self.read(part.get(RAW, part), check, int(rows[0]))

        is_complete = not missing_inputs(self.kinds, self._readable(raw))
        if is_complete:
            for rows in places:
                read_rows(rows, check=True)
        return count, ((rows, read_rows(rows, not is_complete)) for rows in places)

    def padded(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Inputs as a compiled function takes them: with padding, if it saves shapes.

        Args:
            inputs: dict of tensors, as `read` returns it.
        """
        examples = len(next(iter(inputs.values())))
        return padded(self.kinds, inputs) if self.has_few_shapes(examples) else inputs

    def _readable(self, raw: Any) -> dict[str, Any]:
        """What is read of raw input, by name: all that has a row for each example."""
        if not isinstance(raw, collections.abc.Mapping):
            return {RAW: raw}
        names = (*self.input_specs, "image", "image_id", "photos")
        return {name: raw[name] for name in names if raw.get(name) is not None}

    @functools.cached_property
    def _compiled_functions(self) -> dict:
        return {}


def is_whole(raw: Any) -> bool:
    """Whether raw input is all there at once, not an iterable of its parts."""
    is_known = isinstance(raw, collections.abc.Mapping | collections.abc.Sequence)
    is_known = is_known or hasattr(raw, "shape") or isinstance(raw, os.PathLike)
    return is_known or not isinstance(raw, collections.abc.Iterable)


def parts_of(raw: Any, batch_size: int) -> Iterator[Any]:
    """Raw input as a whole, or the batches of an iterable.

    Args:
        raw: As of `InputReader.read`; or an iterable of dicts of several examples, or
            of other single ones.
        batch_size: int, number of single examples in a part.
    """
    if is_whole(raw):
        yield raw
        return
    singles = []
    for item in raw:
        if isinstance(item, collections.abc.Mapping):
            yield item
            continue
        singles.append(item)
        if len(singles) == batch_size:
            yield singles
            singles = []
    if singles:
        yield singles


def count_rows(values: Any) -> int:
    """The number of rows of a list, an array or a tensor; 1 of anything else."""
    if isinstance(values, (str, bytes, os.PathLike)):
        return 1
    try:
        return len(values)
    except TypeError:
        return 1


def take_rows(values: Any, rows: np.ndarray) -> Any:
    """The rows at some places of a list, an array or a tensor."""
    if not hasattr(values, "shape"):
        values = list(values)
        return [values[i] for i in rows]
    if isinstance(values, np.ndarray):
        return values[rows]
    return ops.take(values, rows, axis=0)
