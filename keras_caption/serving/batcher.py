import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any


@dataclasses.dataclass(eq=False)
class Waiting:
    """Items of one request that wait for a batch.

    Attributes:
        key: Hashable; only items of one key share a batch.
        items: list, at most as many as fit into a batch.
        effort: float, how much they ask for, see `keras_caption.serving.effort`.
        future: `concurrent.futures.Future` of the list of their results.
        since: float, seconds, when it began to wait.
    """

    key: Hashable
    items: list[Any]
    effort: float
    future: Future
    since: float


class Batcher:
    """Runs a function over the items of several requests at once, in one thread.

    The oldest request is first; others of its key join it until the batch is full, or
    the oldest has waited for `delay`. While a batch runs, requests gather for the next
    one. Where a batch fails, each of its requests runs alone, so that none fails by
    another's fault. Requests that nobody waits for any longer do not run.

    Args:
        run: Function of a key and a list of items to the list of their results.
        size: int, greatest number of items in a batch.
        effort: float, greatest effort of a batch of several requests.
        delay: float, seconds that a request waits for others at most.
        on_batch: Function that is called with the number of items of each batch.
    """

    def __init__(
        self,
        run: Callable[[Any, list[Any]], list[Any]],
        size: int,
        delay: float,
        on_batch: Callable[[int], None] = lambda size: None,
        effort: float = float("inf"),
    ):
        self.run = run
        self.size = size
        self.effort = effort
        self.delay = delay
        self.on_batch = on_batch
        self._waiting = collections.deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, key: Hashable, items: list[Any], effort: float = 0.0) -> Future:
        """Adds items, at most `size`; the future's result is the list of theirs.

        Raises:
            RuntimeError: If the batcher is closed.
        """
        waiting = Waiting(key, items, effort, Future(), time.monotonic())
        with self._changed:
            if self._is_closed:
                raise RuntimeError("The batcher is closed.")
            self._waiting.append(waiting)
            self._changed.notify()
        return waiting.future

    def close(self) -> None:
        """Finishes what was submitted, and takes no more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self):
        while batch := self._next():
            self.on_batch(sum(len(waiting.items) for waiting in batch))
            try:
                self._answer(batch)
            except BaseException as error:
                if len(batch) == 1:
                    batch[0].future.set_exception(error)
                    continue
                for waiting in batch:
                    try:
                        self._answer([waiting])
                    except BaseException as own:
                        waiting.future.set_exception(own)

    def _answer(self, batch):
        """Runs a batch, and gives each request its results."""
        items = [item for waiting in batch for item in waiting.items]
        results = iter(self.run(batch[0].key, items))
        for waiting in batch:
            waiting.future.set_result([next(results) for _ in waiting.items])

    def _next(self):
        """The requests of the next batch; none where there will be no more."""
        with self._changed:
            while True:
                while self._waiting and self._waiting[0].future.cancelled():
                    self._waiting.popleft()
                if not self._waiting:
                    if self._is_closed:
                        return []
                    self._changed.wait()
                    continue
                chosen, count = self._joining()
                left = self._waiting[0].since + self.delay - time.monotonic()
                if count >= self.size or left <= 0 or self._is_closed:
                    break
                self._changed.wait(left)
            for waiting in chosen:
                self._waiting.remove(waiting)
            running = [x for x in chosen if x.future.set_running_or_notify_cancel()]
        return running or self._next()

    def _joining(self):
        """Those that wait and can run with the oldest, and the number of their items.

        A request that does not fit keeps those of its key behind it from passing it.
        """
        key, chosen, count, effort = self._waiting[0].key, [], 0, 0.0
        for waiting in self._waiting:
            if waiting.key != key:
                continue
            count += len(waiting.items)
            effort += waiting.effort
            if chosen and (count > self.size or effort > self.effort):
                return chosen, self.size  # as many as fit
            chosen.append(waiting)
        return chosen, count
