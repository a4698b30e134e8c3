import abc
import pathlib
from typing import Any

import numpy as np
from jaxtyping import Int

from keras_caption.apps.serve.model_predictor import ModelPredictor
from keras_caption.base.errors import InputError, NoTextError
from keras_caption.formats.engine_files import read_description
from keras_caption.predict import Prediction
from keras_caption.predict.captions import captions_of
from keras_caption.predict.engine import Engine
from keras_caption.settings.decoding import Decoding


class LitePredictor(ModelPredictor):
    """Base of predictors that need LiteRT, but neither Keras nor TensorFlow.

    The texts equal those of `Predictor`; the first takes less than a second.

    Args:
        file: Path of the model's file, see `keras_caption.serving.export_engine`.

    Attributes:
        model: `keras_caption.predict.engine.Engine`.

    Raises:
        InputError: If a file is damaged or of another kind, or LiteRT is missing.
    """

    noun = "example"

    def __init__(self, file: pathlib.Path):
        super().__init__()
        if not self.takes(read_description(file)):
            raise InputError(f"{file.parent} is no model of a {type(self).__name__}.")
        self.model: Engine = Engine(file)
        reads_text = "source" in self.model.inputs
        if self.model.vocabulary is None or (reads_text and self.source is None):
            raise InputError(f"{file.parent} is damaged: it has no tokenizer.")

    @staticmethod
    @abc.abstractmethod
    def takes(described: dict[str, Any]) -> bool:
        """Tells whether this class can run a model.

        Args:
            described: dict, description of the model, a result of
                `keras_caption.formats.engine_files.read_description`.
        """

    def check_options(self, n: int | None, options: dict[str, Any]) -> Decoding:
        assert self.model.decoding is not None  # it generates, as `takes` says
        return self.model.decoding.fixed(self.model.name, n, options)

    def run(
        self,
        inputs: dict[str, Any],
        places: Int[np.ndarray, " size"],
        n: int | None,
        attention: bool,
        options: Decoding,
    ) -> list[Prediction]:
        """Answers a batch, see `RecordPredictor.run`."""
        if attention:
            raise InputError(f"The file of '{self.model.name}' shows no attention.")
        values = self.extractor(inputs["photo"]) if "photo" in inputs else inputs
        served = {name: x for name, x in values.items() if name in self.model.inputs}
        outputs = self.model.run(served)
        tokens, scores = outputs["tokens"], outputs["scores"]
        if "photo" in inputs:  # without objects there is no text
            scores = np.where(values["scores"].any(axis=1), scores, 0.0)
        if len(missing := np.flatnonzero(np.isneginf(scores))):
            reason = "the options of the file leave none"
            raise NoTextError(f"{self.noun} {places[missing[0]]}", reason)
        assert self.model.vocabulary is not None
        texts = map(self.model.vocabulary.decode, tokens)
        best = [[pair] for pair in zip(texts, map(float, scores), strict=True)]
        return self.with_objects(captions_of(best, tokens, scores, self.model), values)
