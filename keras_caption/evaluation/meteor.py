import contextlib
import pathlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.progress import progress
from keras_caption.evaluation.java import java_error

OPTIONS = ["-", "-", "-stdio", "-l", "en", "-norm"]


def meteor(
    references: Mapping[Any, Sequence[str]], captions: Mapping[Any, Sequence[str]]
) -> float:
    """Computes METEOR of tokenized captions.

    Sends the same requests as pycocoevalcap's `Meteor` to its Java program. That class
    waits forever if the program fails.

    Args:
        references: dict from image id to a list of str.
        captions: dict from the same image ids to a list of one str.

    Returns:
        float, the score of all images.

    Raises:
        InputError: If the program fails, or Java is not installed.
    """
    with missing_extras():
        from pycocoevalcap.meteor import meteor as program

    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                ["java", "-jar", "-Xmx2G", program.METEOR_JAR, *OPTIONS],
                cwd=pathlib.Path(program.__file__).parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError as error:
            raise InputError(f"METEOR cannot run Java: {error}.") from None
        assert process.stdin is not None  # it is a pipe
        assert process.stdout is not None
        try:
            return converse(process.stdin, process.stdout, references, captions)
        except (BrokenPipeError, EOFError, ValueError):
            errors.seek(0)
            ending = "it ended before all captions were scored"
            raise java_error("METEOR", ending, errors.read()) from None
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            with contextlib.suppress(OSError):
                process.stdin.close()


def converse(
    stdin: IO[bytes],
    stdout: IO[bytes],
    references: Mapping[Any, Sequence[str]],
    captions: Mapping[Any, Sequence[str]],
) -> float:
    """Sends all captions to the program and receives the score."""
    statistics = []
    items = progress(captions.items(), "METEOR", unit="images", leave=False)
    for image_id, (caption,) in items:
        caption = caption.replace("|||", "").replace("  ", " ")
        ask(stdin, "SCORE", *references[image_id], caption)
        statistics.append(answer(stdout))
    ask(stdin, "EVAL", *statistics)
    stdin.close()
    *_, score = [answer(stdout) for _ in (*captions, "all images")]
    return float(score)


def ask(stdin: IO[bytes], *parts: str) -> None:
    """Sends one request, whose parts are separated by ` ||| `."""
    line = " ||| ".join(part.replace("|||", "") for part in parts)
    stdin.write(f"{line}\n".encode())
    stdin.flush()


def answer(stdout: IO[bytes]) -> str:
    """Receives one answer, a str of numbers separated by spaces.

    Raises:
        EOFError, ValueError: If the answer is truncated, or is not of numbers.
    """
    line = stdout.readline().decode()
    if not line.endswith("\n"):
        raise EOFError
    for number in line.split():
        float(number)
    return line.strip()
