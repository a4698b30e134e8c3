import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def setting_when_asked_to_end(ended: threading.Event) -> Iterator[None]:
    """Sets an event at SIGINT, SIGTERM or SIGHUP, during a `with` block.

    SIGHUP, of a terminal that is closed, stays ignored under `nohup`. The previous
    handlers are restored at the end. Signals reach the main thread only:
    in another thread the block has no effect.
    """

    def end(number, frame):
        if ended.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        ended.set()

    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [signal.SIGINT, signal.SIGTERM]
        hang_up = getattr(signal, "SIGHUP", None)  # not on Windows
        if hang_up and signal.getsignal(hang_up) is not signal.SIG_IGN:
            numbers.append(hang_up)
        for number in numbers:
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
