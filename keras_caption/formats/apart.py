import contextlib
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import reading

MEMORY = 8 * 2**30  # greatest number of bytes of the process, files aside
SECONDS = 300.0  # greatest time to open a file, and to answer
PROGRAM = "from keras_caption.formats import apart; apart.answer_calls()"


class Apart:
    """A function about a file, called in a process of its own.

    Libraries in C and C++ trust what files say of themselves: a damaged one may end the
    process, take all memory or never end. Here this ends another process, whose memory
    and time are bounded, and raises an error in one sentence. The next call begins a
    new process. It protects from accidents and not from attacks: the process has the
    rights of this one.

    Args:
        open_file: Function of a module, from a path, a str, to the function that is
            called. Arguments and results are pickled.
        path: `pathlib.Path` of the file.

    Raises:
        InputError: If the file cannot be opened. So do calls that fail.
    """

    def __init__(self, open_file: Callable[[str], Callable], path: pathlib.Path):
        self.open_file = open_file
        self.path = path
        self._lock = threading.Lock()
        self._process = self._connection = None
        with self._lock:
            self._begin()

    def __call__(self, *args: Any) -> Any:
        with self._lock:
            if self._process is None:
                self._begin()
            return self._answer_to(args)

    def _begin(self):
        """Begins a process, which opens the file."""
        self._connection, other = Pipe()
        command = [sys.executable, "-c", PROGRAM, str(other.fileno())]
        path = os.pathsep.join(filter(None, sys.path))
        with other:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                env={**os.environ, "PYTHONPATH": path},
            )
        self._end = weakref.finalize(self, end, self._process, self._connection)
        self._answer_to((self.open_file, str(self.path), os.getpid(), MEMORY))

    def _answer_to(self, content):
        """Sends something to the process; returns or raises its answer."""
        problem = f"it was not read within {SECONDS:g} s"
        with contextlib.suppress(EOFError, OSError):
            self._connection.send(content)
            if self._connection.poll(SECONDS):
                problem = None
                answer = self._connection.recv()
                if not isinstance(answer, Exception):
                    return answer
                try:
                    raise answer
                finally:
                    del answer  # whose traceback would keep this process's file open
        code = self._end()
        self._process = None
        raise InputError(
            f"{self.path} cannot be read: {problem or f'reading it {ended_by(code)}'}."
        )


def end(process: subprocess.Popen, connection: Connection) -> int:
    """Ends a process, and returns its exit status."""
    connection.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(0.5)  # of its own, as after an error in C
    process.kill()
    return process.wait()


def ended_by(code: int) -> str:
    """How a process ended, as a part of a sentence."""
    if code < 0:
        return f"ended the process by {signal.Signals(-code).name}"
    return f"ended the process with status {code}"


def answer_calls() -> None:
    """Answers the calls of `Apart`, in the process that it begins."""
    connection = Connection(int(sys.argv[1]))
    with contextlib.suppress(EOFError):  # the other process has no more calls
        open_file, path, parent, memory = connection.recv()
        threading.Thread(target=end_with, args=[parent], daemon=True).start()
        with contextlib.suppress(OSError, ValueError):  # a lower limit holds
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            with reading(path):
                function, answer = open_file(path), None
        except (InputError, ImportError) as error:
            answer = error
        while True:
            connection.send(answer)
            args = connection.recv()
            try:
                with reading(path):
                    answer = function(*args)
            except InputError as error:
                answer = error


def end_with(parent: int) -> None:
    """Ends this process as soon as another one has ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
