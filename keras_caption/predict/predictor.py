import abc
import concurrent.futures
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from keras_caption.errors import InputError
from keras_caption.predict.batches import (
    BATCH_SIZE,
    WINDOW,
    WINDOW_BYTES,
    Rows,
    run_batches,
)
from keras_caption.predict.prediction import Example, Fault, Prediction
from keras_caption.settings.decoding import with_decoding

FILES = ("photo", "clip")  # names of what features are extracted from


class RecordPredictor(abc.ABC):
    """Base of what answers records of users, by whatever engine.

    A subclass reads a record, and runs a batch; `stream`, `answer` and calls are
    written once over these. Threads may share it: one batch at a time takes all cores.
    """

    def __init__(self):
        self._lock = threading.Lock()

    # === What an engine is ===

    @property
    @abc.abstractmethod
    def reads(self) -> tuple[str, ...]:
        """Names that a record may have."""

    @abc.abstractmethod
    def read(self, record: Mapping[str, Any], place: int = 0) -> Example:
        """Reads and checks one record.

        Args:
            record: dict.
            place: int, of the record among all that are read together: messages name
                it, and the random numbers of samples follow from it.

        Raises:
            InputError: If a name is unknown or missing, a value is wrong, or nothing
                can be predicted from the record.
        """

    @abc.abstractmethod
    def run(
        self,
        inputs: dict[str, np.ndarray],
        places: Int[np.ndarray, " size"],
        n: int | None,
        attention: bool,
        options: dict[str, Any],
    ) -> Sequence[Prediction]:
        """Predictions of a batch.

        Args:
            inputs: dict of arrays `(size, ...)`, values of examples of the same names.
            places: int `(size,)`, of the examples in all input.
            n, attention, options: Of `answer`.

        Raises:
            NoTextError: If the options leave an example no text.
        """

    @abc.abstractmethod
    def check_options(self, n: int | None, options: dict[str, Any]) -> None:
        """Raises `InputError` as `answer` does, of its options."""

    def fill(self, count: int, batch_size: int) -> int:
        """Rows that a batch of `count` examples has, see `batches_of`."""
        return count

    # === What is the same for all ===

    def __call__(
        self,
        records: Iterable[Mapping[str, Any]],
        *,
        n: int | None = None,
        attention: bool = False,
        **options: Any,
    ) -> list[Prediction]:
        """Reads and answers records, see `read` and `answer`."""
        examples = [self.read(record, i) for i, record in enumerate(records)]
        return self.answer(examples, n=n, attention=attention, **options)

    @with_decoding
    def answer(
        self,
        examples: Sequence[Example],
        *,
        n: int | None = None,
        attention: bool = False,
        **options: Any,
    ) -> list[Prediction]:
        """Answers examples that `read` has returned, in batches.

        Args:
            examples: Sequence of `Example`.
            n: int, number of texts of each example, see
                `keras_caption.models.Captioner.generate`.
            attention: bool, whether to say what each word attends to.
            **options: Fields of `keras_caption.decoding.Decoding`, in place of the
                model's own. Models that answer questions have none.

        Returns:
            List of `Prediction`.

        Raises:
            InputError: If an option is unknown or wrong, or there are fewer than `n`
                answers.
            NoTextError: If the options leave an example no text.
        """
        self.check_options(n, options)

        def run(inputs, places):
            return self.run(inputs, places, n, attention, options)

        return self._answers(examples, run, BATCH_SIZE)

    @with_decoding
    def stream(
        self,
        records: Iterable[Any],
        *,
        read: Callable[[Any, int], Example] | None = None,
        size_of: Callable[[Any], int] | None = None,
        batch_size: int = BATCH_SIZE,
        faults: type[Exception] = InputError,
        n: int | None = None,
        attention: bool = False,
        **options: Any,
    ) -> Iterator[Prediction | Fault]:
        """Answers any number of records, in their order, while the next are read.

        Memory does not grow with the number of records. A record that cannot be read,
        or not be answered even alone, costs no other its answer.

        Args:
            records: Iterable of what `read` takes, which is read as far as needed.
            read: Function of a record and its place to an `Example`, called in other
                threads for photos and clips. Defaults to the method.
            size_of: Function from a record to its bytes in memory; few large ones are
                read at once.
            batch_size: int, greatest number of examples that run at once.
            faults: Class of the errors that are faults of records; others are raised.
            n, attention, **options: Of `answer`.

        Yields:
            A `Prediction`, or a `Fault`, of each record.

        Raises:
            InputError: As `answer` raises it, of the options.
        """
        self.check_options(n, options)
        read = self.read if read is None else read
        has_files = any(name in self.reads for name in FILES)
        windows = windows_of(records, batch_size if has_files else WINDOW, size_of)

        def run(inputs, places):
            return self.run(inputs, places, n, attention, options)

        def begin(window):
            return [pool.submit(read_one, *numbered) for numbered in window]

        def read_one(record, place):
            try:
                return read(record, place)
            except faults as error:
                return Fault(place, error)

        if not has_files:  # read in no time; and a person may be typing the next one
            for window in windows:
                examples = [read_one(*numbered) for numbered in window]
                yield from self._answers(examples, run, batch_size, faults)
            return
        pool = concurrent.futures.ThreadPoolExecutor()
        try:
            waiting = begin(next(windows, []))
            while waiting:
                following = begin(next(windows, []))
                examples = [future.result() for future in waiting]
                yield from self._answers(examples, run, batch_size, faults)
                waiting = following
        finally:
            pool.shutdown(cancel_futures=True)

    def _answers(self, examples, run, batch_size, faults=None):
        """What a function of inputs and places returns of examples, in their order."""
        found = [x if isinstance(x, Fault) else Prediction() for x in examples]
        indices = [
            i for i, x in enumerate(examples) if isinstance(x, Example) and x.has_words
        ]
        rows = Rows(
            [examples[i].values for i in indices], [examples[i].place for i in indices]
        )
        with self._lock:
            for i, result in run_batches(rows, run, batch_size, self.fill, faults):
                found[indices[i]] = result
        return found


def windows_of(
    records: Iterable[Any], count: int, size_of: Callable[[Any], int] | None
) -> Iterator[list[tuple[Any, int]]]:
    """Records with their places, as many at once as memory takes.

    Args:
        records: Iterable.
        count: int, greatest number of records in a window.
        size_of: Function from a record to its bytes, or `None`.
    """
    window, size = [], 0
    for place, record in enumerate(records):
        window.append((record, place))
        size += 0 if size_of is None else size_of(record)
        if len(window) == count or size >= WINDOW_BYTES:
            yield window
            window, size = [], 0
    if window:
        yield window
