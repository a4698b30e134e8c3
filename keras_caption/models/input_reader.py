import collections.abc
import functools
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from keras_caption.base.arguments import Tensor
from keras_caption.base.compilation import JitSwitch
from keras_caption.base.errors import InputError
from keras_caption.inputs import (
    InputKind,
    kinds_of,
    missing_inputs,
    padded,
    read,
)
from keras_caption.predict import Columns, count_rows
from keras_caption.text import Tokenizer

RAW = "raw"  # name of the only column of input that is no dict


class InputReader(JitSwitch):
    """Mixin of models and ensembles that reads their inputs from batches.

    A subclass has a `name`, `variables` and `input_specs`, a dict of symbolic inputs.

    Attributes:
        ignored_inputs: tuple of str, names of inputs of the encoder without effect on
            predictions. They may be omitted.
        source, question: `keras_caption.text.Tokenizer` of the input `source` or
            `question`, or `None`.
    """

    name: str
    source: Tokenizer | None = None
    question: Tokenizer | None = None
    _ignored_inputs: tuple[str, ...] = ()

    if TYPE_CHECKING:

        @property
        def input_specs(self) -> dict[str, keras.KerasTensor]: ...

        @property
        def variables(self) -> list[keras.Variable]: ...

    @property
    def ignored_inputs(self) -> tuple[str, ...]:
        return self._ignored_inputs

    @ignored_inputs.setter
    def ignored_inputs(self, names: Iterable[str]) -> None:
        self._ignored_inputs = tuple(names)
        vars(self).pop("kinds", None)  # cached, and made of the ignored inputs

    @functools.cached_property
    def kinds(self) -> list[InputKind]:
        """The kinds of input that the model reads."""
        tokenizers = {"source": self.source, "question": self.question}
        return kinds_of(self.input_specs, self.ignored_inputs, tokenizers)

    def to_batch(self, raw: Any) -> Any:
        """Turns raw input into a batch. The default returns the input itself."""
        return raw

    def read(self, raw: Any, check: bool = False, first: int = 0) -> dict[str, Tensor]:
        """Reads the encoder's inputs from a batch, and adds masks.

        Args:
            raw: dict of arrays or tensors, or any input that `to_batch` accepts.
            check: bool, whether to check the values too, not only the shapes.
            first: int, place of the first example in all input, for messages.

        Returns:
            dict of tensors.

        Raises:
            InputError: If an input is missing or has a wrong shape; with `check`, if
                an example has a fault, so that nothing can be predicted from it.
        """
        return read(self.kinds, self.to_batch(raw), self.name, check, first)

    def parts(self, raw: Any, batch_size: int) -> Iterator[Columns]:
        """Yields all examples at once, or those of each part of an iterable.

        Args:
            raw, batch_size: As in `parts_of`.

        Raises:
            InputError: As in `read`.
        """
        first = 0
        for part in parts_of(raw, batch_size):
            examples = self.examples_of(part, batch_size, first)
            yield examples
            first += len(examples.places)

    def examples_of(self, raw: Any, batch_size: int, first: int = 0) -> Columns:
        """Wraps any number of examples, whose batches are inputs of the encoder.

        Photos and clips are read batch by batch. Examples that are tensors already are
        all checked before the first batch, so that a fault costs no computation.

        Args:
            raw: As in `read`.
            batch_size: int, greatest number of examples in a batch.
            first: int, place of the first example in all input.

        Raises:
            InputError: As in `read`.
        """
        values = self._readable(raw)
        counts = {name: count_rows(x) for name, x in values.items()}
        count = max(counts.values(), default=1)
        if count <= batch_size:  # one batch: read once, without a function of rows
            inputs = self.read(raw, check=True, first=first)
            return Columns(inputs, count_rows(next(iter(inputs.values()))), first)
        if len({*counts.values()}) > 1:
            raise InputError(
                f"The inputs differ in their number of {self.kinds[0].noun}s: {counts}."
            )
        is_complete = not missing_inputs(self.kinds, values)

        def read_rows(rows, places, check=not is_complete):
            return self.read(rows.get(RAW, rows), check, int(places[0]))

        if is_complete:
            check_rows = functools.partial(read_rows, check=True)
            checked = Columns(values, count, first, check_rows)
            for start in range(0, count, batch_size):
                checked.take(np.arange(start, min(start + batch_size, count)))
        return Columns(values, count, first, read_rows)

    def padded(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Pads inputs, if fewer shapes save compilations.

        Args:
            inputs: dict of tensors, as `read` returns it.
        """
        examples = len(next(iter(inputs.values())))
        return padded(self.kinds, inputs) if self.has_few_shapes(examples) else inputs

    def _readable(self, raw: Any) -> dict[str, Any]:
        """The columns of raw input that are read: each has a row for each example."""
        if not isinstance(raw, collections.abc.Mapping):
            return {RAW: raw}
        own = (name for kind in self.kinds for name in kind.specs)
        names = (*own, "image", "image_id", "photos")
        return {name: raw[name] for name in names if raw.get(name) is not None}

    @functools.cached_property
    def _compiled_functions(self) -> dict:
        return {}

    def forget_compiled(self) -> None:
        """Forgets compiled functions, which hold the weights of their time."""
        self._compiled_functions.clear()


def is_whole(raw: Any) -> bool:
    """Whether raw input holds all examples, as opposed to an iterable of parts."""
    is_known = isinstance(raw, collections.abc.Mapping | collections.abc.Sequence)
    is_known = is_known or hasattr(raw, "shape") or isinstance(raw, os.PathLike)
    return is_known or not isinstance(raw, collections.abc.Iterable)


def parts_of(raw: Any, batch_size: int) -> Iterator[Any]:
    """Yields raw input as a whole, or the batches of an iterable.

    Args:
        raw: As in `InputReader.read`; or an iterable of dicts, each of several
            examples, or of single examples, such as photos.
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
