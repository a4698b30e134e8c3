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
        key: Hashable; only items of the same key share a batch.
        items: list, at most as many as fit into a batch.
        effort: float, effort of the items, see `keras_caption.apps.serve.effort`.
        future: `concurrent.futures.Future` of the list of results.
        since: float, time when the request began to wait, of `time.monotonic`.
    """

    key: Hashable
    items: list[Any]
    effort: float
    future: Future
    since: float


class Batcher:
    """Runs a function over the items of several requests at once, in one thread.

    The oldest request comes first. Other requests with its key join it until the batch
    is full, or the oldest request has waited for `delay`. While a batch runs, requests
    gather for the next one. If a batch fails, each of its requests runs alone, so that
    a faulty request fails no other. Cancelled requests do not run.

    Args:
        run: Function of a key and a list of items that returns the list of results.
        size: int, greatest number of items in a batch.
        effort: float, greatest effort of a batch of several requests.
        delay: float, greatest time that a request waits for others, in seconds.
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
        self._waiting: collections.deque[Any] = collections.deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, key: Hashable, items: list[Any], effort: float = 0.0) -> Future:
        """Adds at most `size` items; the result of the future is the list of results.

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
        """Finishes all submitted requests, and accepts no more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self):
        while batch := self._next():
            self.on_batch(sum(len(waiting.items) for waiting in batch))
            try:
                self._answer(batch)
            except BaseException as error:  # an error that ends the thread hangs all
                if len(batch) == 1:
                    batch[0].future.set_exception(error)
                    continue
                for waiting in batch:
                    try:
                        self._answer([waiting])
                    except BaseException as error_alone:
                        waiting.future.set_exception(error_alone)

    def _answer(self, batch):
        """Runs a batch, and gives each request its results."""
        items = [item for waiting in batch for item in waiting.items]
        results = iter(self.run(batch[0].key, items))
        for waiting in batch:
            waiting.future.set_result([next(results) for _ in waiting.items])

    def _next(self):
        """The requests of the next batch; an empty list once the batcher is closed."""
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
                self._changed.wait(left)  # a new request may fill the batch before
            for waiting in chosen:
                self._waiting.remove(waiting)
            running = [x for x in chosen if x.future.set_running_or_notify_cancel()]
        return running or self._next()

    def _joining(self):
        """The requests that can run with the oldest one, and the number of their items.

        Requests of one key keep their order: behind one that does not fit, none joins.
        """
        key, chosen, count, effort = self._waiting[0].key, [], 0, 0.0
        for waiting in self._waiting:
            if waiting.key != key:
                continue
            count += len(waiting.items)
            effort += waiting.effort
            if chosen and (count > self.size or effort > self.effort):
                return chosen, self.size  # the batch counts as full
            chosen.append(waiting)
        return chosen, count
