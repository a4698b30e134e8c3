import pathlib
from typing import Any

import numpy as np

from keras_caption.base.arguments import Calibration, Share, check
from keras_caption.base.errors import InputError
from keras_caption.formats.engine_files import open_engine, read_description
from keras_caption.settings.decoding import Decoding
from keras_caption.text.answers import Kind
from keras_caption.text.saved_tokenizer import tokenizer_of
from keras_caption.text.tokenizer import Tokenizer

TEXTS = ("vocabulary", "source", "question")  # names of tokenizers


class Engine:
    """A model in a file of LiteRT, ONNX Runtime or OpenVINO, without Keras.

    `keras_caption.serving.export_engine` writes the file, and beside it a description,
    which is read here alone.

    Args:
        file: Path of the file.

    Attributes:
        name: str, name of the model.
        inputs: dict from the name of an input to its shape without batch, and dtype.
        ignored_inputs: tuple of str, names of inputs without effect on predictions.
        categories, threshold, calibration, recall: As in
            `keras_caption.models.Captioner` and `Classifier`.
        vocabulary, source, question: `keras_caption.text.Tokenizer` or `None`.
        answers: List of str; `None` for a model that generates.
        most: int, number of answers to a question that the file returns.
        generated: str, as in `keras_caption.models.generation.Generation`.
        decoding: `Decoding`, the options with which the search was exported; `None`
            for a model that answers questions.
        extractor: What detects the objects that the model reads, or `None`.

    Raises:
        InputError: If a file is damaged, or the engine's package is missing.
    """

    vocabulary: Tokenizer | None
    source: Tokenizer | None
    question: Tokenizer | None
    extractor: Any = None

    def __init__(self, file: pathlib.Path):
        described = read_description(file)
        try:
            self.name = str(described["name"])
            self.inputs: dict[str, tuple[list[int | None], str]] = {
                name: (shape, dtype)
                for name, (shape, dtype) in described["inputs"].items()
            }
            self.ignored_inputs = tuple(map(str, described["ignored_inputs"]))
            self.categories = described.get("categories")
            self.threshold = described["threshold"]
            self.calibration = described.get("calibration")
            self.recall = described.get("recall")
            check(Calibration | None, calibration=self.calibration)
            check(dict[str, Share] | None, recall=self.recall)
            for name in TEXTS:
                setattr(self, name, tokenizer_of(described.get(name)))
            self.answers: list[str] | None = None
            self.decoding: Decoding | None = None
            if "answers" in described:
                check(Share | dict[Kind, Share], threshold=self.threshold)
                self.answers = [str(answer) for answer in described["answers"]]
                self.most = int(described["most"])
            else:
                check(Share, threshold=self.threshold)
                self.generated = str(described["generated"])
                self.decoding = Decoding(**described["decoding"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file.parent} is damaged: {error!r:.200}.") from None
        self._run = open_engine(file)

    def run(self, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
        """Computes the outputs of one batch, tokens and scores or best answers.

        Args:
            inputs: dict of arrays, those of the file.
        """
        return self._run({n: np.ascontiguousarray(x) for n, x in inputs.items()})
