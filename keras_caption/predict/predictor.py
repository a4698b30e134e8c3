import abc
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from keras_caption.base.arguments import Count, check
from keras_caption.base.errors import InputError
from keras_caption.predict.batches import (
    BATCH_SIZE,
    WINDOW,
    WINDOW_BYTES,
    Rows,
    run_batches,
)
from keras_caption.predict.prediction import Example, Fault, Prediction
from keras_caption.settings.decoding import with_decoding

MEDIA = ("photo", "clip")  # names of values from which features are extracted


class RecordPredictor(abc.ABC):
    """Base of predictors, which answer records of users by some engine.

    A subclass implements `read`, for one record, and `run`, for one batch; `stream`,
    `answer` and `__call__` use these. Threads may share a predictor: batches run one at
    a time, each on all cores.

    Attributes:
        details: bool, whether captions of objects in photos get what is measured there:
            colours, a place, and finer names, see
            `keras_caption.apps.objects.added_details.add_details`.
    """

    details = True

    def __init__(self):
        self._lock = threading.Lock()

    # === Methods of an engine ===

    @property
    @abc.abstractmethod
    def reads(self) -> tuple[str, ...]:
        """Names of values that a record may have."""

    @abc.abstractmethod
    def read(self, record: Mapping[str, Any], place: int = 0) -> Example:
        """Reads and checks one record.

        Args:
            record: dict.
            place: int, place of the record among all records of a call. Messages name
                it, and it decides the random numbers of samples.

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
        options: Any,
    ) -> Sequence[Prediction]:
        """Predicts for one batch.

        Args:
            inputs: dict of arrays `(size, ...)`, stacked values of the examples.
            places: int `(size,)`, places of the examples in all input.
            n, attention: As in `answer`.
            options: What `check_options` has returned.

        Returns:
            Sequence of `Prediction`, one for each example.

        Raises:
            NoTextError: If the options exclude all texts of an example.
        """

    @abc.abstractmethod
    def check_options(self, n: int | None, options: dict[str, Any]) -> Any:
        """Checks the options of a call of `answer`, once for all its batches.

        Returns:
            The options as `run` takes them; `None` if it takes them as they are.

        Raises:
            InputError: If an option is unknown or wrong.
        """

    def count_tokens(self, text: str) -> int:
        """Number of tokens of a text that the model generates; of words, by default."""
        return len(text.split())

    def judge(  # noqa: B027 (most texts stand)
        self, prediction: Prediction, example: Example, options: Any
    ) -> None:
        """Changes a prediction by what its example says; by default nothing.

        Args:
            prediction: `Prediction`, which is changed.
            example: `Example`.
            options: What `check_options` has returned.
        """

    def fill(self, count: int, batch_size: int) -> int:
        """Number of rows of a batch of `count` examples, see `batches_of`."""
        return count

    # === Methods of all predictors ===

    def known_values(
        self, record: Any, place: int, model: str = "the model", hint: str = ""
    ) -> dict[str, Any]:
        """The values of a record that are not `None`, by name.

        Raises:
            InputError: If the record is no dict, or has a name that is not in `reads`.
        """
        if not isinstance(record, Mapping):
            raise InputError(
                f"Record {place} should be a dict. Received: {type(record).__name__}"
            )
        values = {name: x for name, x in record.items() if x is not None}
        for name in values:
            if name not in self.reads:
                raise InputError(
                    f"Record {place} has {name!r:.60}; {model} reads "
                    f"{', '.join(self.reads)}{hint}."
                )
        return values

    def __call__(
        self,
        records: Iterable[Mapping[str, Any]],
        *,
        n: int | None = None,
        attention: bool = False,
        **options: Any,
    ) -> list[Prediction]:
        """Reads and answers records, see `read` and `answer`."""
        if isinstance(records, Mapping) or not isinstance(records, Iterable):
            raise InputError(
                f"Records should be a list of dicts. Received: {type(records).__name__}"
            )
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
            attention: bool, whether predictions have attention weights.
            **options: Fields of `keras_caption.decoding.Decoding` that replace the
                model's own. Models that answer questions have no options.

        Returns:
            List of `Prediction`.

        Raises:
            InputError: If an option is unknown or wrong, or the model has fewer than
                `n` answers.
            NoTextError: If the options exclude all texts of an example.
        """
        answers = self._answering(n, attention, options)
        return answers(examples, BATCH_SIZE)

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
        """Answers any number of records in their order, while it reads the next ones.

        Memory does not grow with the number of records. A record that cannot be read or
        answered has a `Fault`, and does not affect other records.

        Args:
            records: Iterable of records for `read`, which is consumed as needed.
            read: Function of a record and its place that returns an `Example`. For
                photos and clips it runs in other threads. Defaults to the method.
            size_of: Function of a record that returns its size in memory, in bytes. It
                limits how many records are read at once.
            batch_size: int, greatest number of examples in a batch.
            faults: Class of the errors that become faults; other errors are raised.
            n, attention, **options: As in `answer`.

        Yields:
            A `Prediction` or a `Fault` for each record.

        Raises:
            InputError: If an option is unknown or wrong, or a batch has no examples.
        """
        check(Count, batch_size=batch_size)
        answers = self._answering(n, attention, options)
        read = self.read if read is None else read
        has_files = any(name in self.reads for name in MEDIA)
        windows = windows_of(records, batch_size if has_files else WINDOW, size_of)

        def begin(window):
            return [pool.submit(read_one, *numbered) for numbered in window]

        def read_one(record, place):
            try:
                return read(record, place)
            except faults as error:
                return Fault(place, error)

        # Texts are read at once. Reading ahead would also hold back an answer until the
        # next record comes, which a person may be typing.
        if not has_files:
            for window in windows:
                examples = [read_one(*numbered) for numbered in window]
                yield from answers(examples, batch_size, faults)
            return
        pool = concurrent.futures.ThreadPoolExecutor()
        try:
            # One window is answered while threads read the next.
            waiting = begin(next(windows, []))
            while waiting:
                following = begin(next(windows, []))
                examples = [future.result() for future in waiting]
                yield from answers(examples, batch_size, faults)
                waiting = following
        finally:
            pool.shutdown(cancel_futures=True)

    def _answering(self, n, attention, options):
        """`_answers` with the options, which are checked."""
        checked = self.check_options(n, options)
        checked = options if checked is None else checked
        return functools.partial(self._answers, n, attention, checked)

    def _answers(self, n, attention, options, examples, batch_size, faults=None):
        """The predictions of examples, in their order, and faults as they are."""

        def run(inputs, places):
            return self.run(inputs, places, n, attention, options)

        # Examples without words keep this empty prediction.
        results = [x if isinstance(x, Fault) else Prediction() for x in examples]
        indices = [
            i for i, x in enumerate(examples) if isinstance(x, Example) and x.has_words
        ]
        rows = Rows(
            [examples[i].values for i in indices], [examples[i].place for i in indices]
        )
        with self._lock:
            for i, result in run_batches(rows, run, batch_size, self.fill, faults):
                if isinstance(result, Prediction):
                    self.judge(result, examples[indices[i]], options)
                results[indices[i]] = result
        return results


def windows_of(
    records: Iterable[Any], count: int, size_of: Callable[[Any], int] | None
) -> Iterator[list[tuple[Any, int]]]:
    """Yields lists of records with their places, each list small enough for memory.

    Args:
        records: Iterable.
        count: int, greatest number of records in a list.
        size_of: Function of a record that returns its size in bytes, or `None`.
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
