import contextlib
import pathlib
import subprocess
import sys
import tempfile

import keras
from pycocoevalcap.meteor import meteor as pycocoevalcap_meteor

from keras_caption.errors import InputError
from keras_caption.evaluation.java import java_error

FOLDER = pathlib.Path(pycocoevalcap_meteor.__file__).parent
COMMAND = ["java", "-jar", "-Xmx2G", pycocoevalcap_meteor.METEOR_JAR]
COMMAND += ["-", "-", "-stdio", "-l", "en", "-norm"]


def meteor(references, captions):
    """METEOR of tokenized captions.

    It asks the Java program of pycocoevalcap's `Meteor` what that class asks. The
    class itself waits forever once the program has died.

    Args:
        references: dict from image id to a list of str.
        captions: dict from the same image ids to a list of one str.

    Returns:
        float, over all images.

    Raises:
        InputError: If the program fails, or there is no Java.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                COMMAND,
                cwd=FOLDER,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError as error:
            raise InputError(f"METEOR cannot run Java: {error}.") from None
        try:
            return converse(process, references, captions)
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


def converse(process, references, captions):
    progress = keras.utils.Progbar(
        len(captions), verbose=int(sys.stdout.isatty()), unit_name="image"
    )
    statistics = []
    for image_id, (caption,) in captions.items():
        caption = caption.replace("|||", "").replace("  ", " ")
        ask(process, "SCORE", *references[image_id], caption)
        statistics.append(answer(process))
        progress.add(1)
    ask(process, "EVAL", *statistics)
    process.stdin.close()
    *_, score = [answer(process) for _ in (*captions, "all images")]
    return float(score)


def ask(process, *parts):
    """Sends one request, whose parts are separated by ` ||| `."""
    line = " ||| ".join(part.replace("|||", "") for part in parts)
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()


def answer(process):
    """Receives one answer: numbers separated by spaces, a str."""
    line = process.stdout.readline().decode()
    if not line.endswith("\n"):
        raise EOFError
    for number in line.split():
        float(number)
    return line.strip()
