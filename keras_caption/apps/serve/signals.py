import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def setting_when_asked_to_end(ended: threading.Event) -> Iterator[None]:
    """Sets an event at SIGINT or SIGTERM, during a `with` block.

    The previous handlers are restored at the end. Signals reach the main thread only:
    in another thread the block has no effect.
    """

    def end(number, frame):
        if ended.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        ended.set()

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in signal.SIGINT, signal.SIGTERM:
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
