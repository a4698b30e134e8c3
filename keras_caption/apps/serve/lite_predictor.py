import abc
import pathlib
from typing import Any

import numpy as np
from jaxtyping import Int

from keras_caption.base.errors import InputError, NoTextError
from keras_caption.formats.engine_files import open_engine, read_description
from keras_caption.predict import Prediction, RecordPredictor
from keras_caption.predict.captions import confidences_of
from keras_caption.settings.decoding import Decoding
from keras_caption.text.saved_tokenizer import tokenizer_of


class LitePredictor(RecordPredictor):
    """Base of predictors that need LiteRT, but neither Keras nor TensorFlow.

    The texts equal those of `Predictor`; the first takes less than a second.

    Args:
        file: Path of the model's file, see `keras_caption.serving.export_engine`.

    Attributes:
        source: `keras_caption.text.Tokenizer` of the source language, or `None`.
        categories: List of str, names of the categories of objects, or `None`.

    Raises:
        InputError: If a file is damaged or of another kind, or LiteRT is missing.
    """

    noun = "example"

    def __init__(self, file: pathlib.Path):
        super().__init__()
        described = read_description(file)
        if not self.takes(described):
            raise InputError(f"{file.parent} is no model of a {type(self).__name__}.")
        try:
            self.name = str(described["name"])
            self.categories = described["categories"]
            self.threshold = float(described["threshold"])
            self.calibration = described["calibration"]
            self.decoding = Decoding(**described["decoding"])
            vocabulary = tokenizer_of(described["vocabulary"])
            self.source = tokenizer_of(described.get("source"))
            reads_text = "source" in described.get("inputs", ())
            if vocabulary is None or (reads_text and self.source is None):
                raise ValueError("no tokenizer")
            self.vocabulary = vocabulary
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file.parent} is damaged: {error!r:.200}.") from None
        self._run = open_engine(file)

    @staticmethod
    @abc.abstractmethod
    def takes(described: dict[str, Any]) -> bool:
        """Tells whether this class can run a model.

        Args:
            described: dict, description of the model, a result of
                `keras_caption.formats.engine_files.read_description`.
        """

    def check_options(self, n: int | None, options: dict[str, Any]) -> None:
        self.decoding.fixed(self.name, n, options)

    def run(
        self,
        inputs: dict[str, Any],
        places: Int[np.ndarray, " size"],
        n: int | None,
        attention: bool,
        options: dict[str, Any],
    ) -> list[Prediction]:
        """Answers a batch, see `RecordPredictor.run`."""
        if attention:
            raise InputError(f"The file of '{self.name}' shows no attention.")
        values = self.features_of(inputs)
        outputs = self._run(self.served(values))
        tokens, scores = outputs["tokens"], outputs["scores"]
        sure = confidences_of(tokens, scores)
        found = []
        for i, place in enumerate(places):
            read = {name: x[i] for name, x in values.items()}
            if not self.has_text(values, i):
                found.append(Prediction(inputs=read))
                self.complete(found[-1], values, i)
                continue
            if np.isneginf(scores[i]):
                reason = "the options of the file leave none"
                raise NoTextError(f"{self.noun} {place}", reason)
            text, score = self.vocabulary.decode(tokens[i]), float(scores[i])
            unsure = bool(sure[i] < self.threshold)
            made = Prediction(text, score, float(sure[i]), unsure, [(text, score)])
            made.inputs, made.tokens = read, tokens[i]
            self.complete(made, values, i)
            found.append(made)
        return found

    def features_of(self, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
        """Computes the features of a batch, by default its inputs."""
        return inputs

    def served(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the features that the engine's file reads, by default all."""
        return values

    def has_text(self, values: dict[str, np.ndarray], i: int) -> bool:
        """Tells whether example `i` of a batch gets a text."""
        return True

    def complete(self, made: Prediction, values: dict[str, np.ndarray], i: int) -> None:
        """Adds objects and the like to a prediction of example `i`, perhaps empty."""
