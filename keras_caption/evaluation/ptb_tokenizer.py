import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.evaluation.java import run_java
from keras_caption.text.normalization import canonical, one_line


def tokenize(captions: Mapping[Any, Sequence[str]]) -> dict[Any, list[str]]:
    """Splits captions into words as COCO's evaluation does.

    Runs the Java program of pycocoevalcap's `PTBTokenizer` and removes the same
    punctuation. That class ignores the exit status and the number of lines of the
    output; here both are checked.

    Args:
        captions: dict from image id to a list of str.

    Returns:
        dict from image id to a list of str, lower-case words separated by single
        spaces.

    Raises:
        InputError: If the program fails or returns another number of captions, or
            Java is not installed.
    """
    with missing_extras():
        from pycocoevalcap.tokenizer import ptbtokenizer

    jar = pathlib.Path(ptbtokenizer.__file__).with_name(
        ptbtokenizer.STANFORD_CORENLP_3_4_1_JAR
    )
    # In NFC, like the words of a vocabulary: references may be in another normal form.
    texts = [canonical(one_line(x)) for group in captions.values() for x in group]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "captions.txt"
        path.write_bytes("\n".join(texts).encode())
        output = run_java(
            "The PTB tokenizer",
            "-cp",
            str(jar),
            "edu.stanford.nlp.process.PTBTokenizer",
            "-preserveLines",
            "-lowerCase",
            str(path),
        )
    lines = output.decode().split("\n")
    if len(lines) != len(texts):
        raise InputError(
            f"The PTB tokenizer returned {len(lines):,} lines for {len(texts):,} "
            "captions, so none can be scored."
        )
    words = (
        " ".join(
            x for x in line.rstrip().split(" ") if x not in ptbtokenizer.PUNCTUATIONS
        )
        for line in lines
    )
    return {
        image_id: [next(words) for _ in group] for image_id, group in captions.items()
    }
