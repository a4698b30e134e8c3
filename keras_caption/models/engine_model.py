import functools
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
from jaxtyping import Float32, Int, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.decoding import Decoding
from keras_caption.formats.engine_files import read_description
from keras_caption.models.answering import Answering
from keras_caption.models.backend import Attended
from keras_caption.models.photo_reader import PhotoReader
from keras_caption.models.sentence_reader import SentenceReader
from keras_caption.predict.engine import TEXTS, Engine
from keras_caption.text import Tokenizer


class EngineModel(PhotoReader):
    """Base of models that LiteRT, ONNX Runtime or OpenVINO runs.

    `keras_caption.serving.export_engine` writes the files of these models, and
    `keras_caption.models.load` reads them. The models read, answer and generate as the
    model in Keras does. The options of decoding are part of the graph. These models
    cannot be trained, and cannot be members of an ensemble.

    Args:
        file: Path of the engine's file, beside its description.

    Raises:
        InputError: If a file is damaged, or the engine's package is missing.
    """

    variables: list[keras.Variable] = []
    input_specs: dict[str, keras.KerasTensor]

    def __init__(self, file: pathlib.Path):
        engine = self.engine = Engine(file)
        self.name = engine.name
        self.categories = engine.categories
        self.threshold = engine.threshold
        self.calibration = engine.calibration
        self.ignored_inputs = engine.ignored_inputs
        self.source, self.question = engine.source, engine.question
        self.input_specs = {
            name: keras.KerasTensor((None, *shape), dtype, name=name)
            for name, (shape, dtype) in engine.inputs.items()
        }
        self.extractor = None

    def outputs(self, inputs: dict[str, Tensor]) -> dict[str, np.ndarray]:
        """Runs the engine.

        Args:
            inputs: dict of tensors, as `read` returns it.
        """
        served: dict[str, Any] = {}
        for kind in self.kinds:
            served |= kind.to_served(inputs)
        return self.engine.run(served)


class EngineGenerator(SentenceReader, EngineModel):
    """A captioner or translator in a file of an engine, see `EngineModel`."""

    def __init__(self, file: pathlib.Path):
        super().__init__(file)
        assert self.engine.decoding is not None  # as it generates
        self.generated, self.decoding = self.engine.generated, self.engine.decoding

    @property
    def vocabulary(self) -> Tokenizer | None:
        return self.engine.vocabulary

    @functools.cached_property
    def backend(self) -> "WholeSearch":
        """The search in the file."""
        return WholeSearch(self)

    def decoding_of(self, n: int | None, options: Mapping[str, Any]) -> Decoding:
        return self.decoding.fixed(self.name, n, options)


class WholeSearch:
    """The search in the file of an `EngineGenerator`, its `Backend`."""

    def __init__(self, model: EngineGenerator):
        self.model = model

    def run(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        n: int,
        options: Decoding,
    ) -> tuple[Int32[np.ndarray, "size n T"], Float32[np.ndarray, "size n"]]:
        outputs = self.model.outputs(inputs)
        tokens, scores = outputs["tokens"], outputs["scores"]
        masks = [kind.memory_mask(inputs) for kind in self.model.kinds]
        for mask in (ops.convert_to_numpy(x) for x in masks if x is not None):
            # An image without detected objects has no text, and no option is at fault.
            scores = np.where(mask.any(axis=1), scores, 0.0)
        return tokens[:, None], scores[:, None]

    def steps(self, *args: Any) -> Iterator[Any]:
        raise self._is_whole()

    def attended(self, *args: Any) -> Attended:
        raise self._is_whole()

    def _is_whole(self):
        return InputError(
            f"The file of '{self.model.name}' holds the whole search: it shows neither "
            "attention nor texts while they grow."
        )


class EngineAnswerer(EngineModel, Answering):
    """A model that answers questions, in a file of an engine, see `EngineModel`."""

    def __init__(self, file: pathlib.Path):
        super().__init__(file)
        self.recall, self.most = self.engine.recall, self.engine.most

    @property
    def answers(self) -> list[str]:
        assert self.engine.answers is not None  # as it answers
        return self.engine.answers

    def check_number_of_answers(self, n: int) -> None:
        super().check_number_of_answers(n)
        if n > self.most:
            raise InputError(f"The file of '{self.name}' has {self.most} answers.")

    def answer_batch(
        self, inputs: dict[str, Tensor], n: int
    ) -> list[list[tuple[str, float]]]:
        """Answers one batch of questions, see `Answering.answer_batch`."""
        outputs = self.outputs(inputs)
        return [
            [(self.answers[i], float(p)) for i, p in zip(*best, strict=True)][:n]
            for best in zip(outputs["best_ids"], outputs["best_scores"], strict=True)
        ]


def read_engine(file: pathlib.Path) -> EngineGenerator | EngineAnswerer:
    """The model of an engine's file, see `EngineModel`."""
    answers = "answers" in read_description(file)
    return (EngineAnswerer if answers else EngineGenerator)(file)


def description_of(model: Any, most: int) -> dict[str, Any]:
    """The attributes of a model that an engine's file lacks, as values for JSON.

    Args:
        model: As in `keras_caption.serving.export_engine`.
        most: int, number of answers to a question that the file returns.
    """
    described = {
        "name": model.name,
        "inputs": {
            name: (spec.shape[1:], keras.backend.standardize_dtype(spec.dtype))
            for name, spec in model.input_specs.items()
        },
        "ignored_inputs": model.ignored_inputs,
        "threshold": getattr(model, "threshold", 0.0),
        "categories": getattr(model, "categories", None),
        "calibration": getattr(model, "calibration", None),
        "recall": getattr(model, "recall", None),
    }
    for name in TEXTS:
        text = getattr(model, name, None)
        if text is not None:
            kind = keras.saving.get_registered_name(type(text))
            described[name] = {"class": kind, "config": text.get_config()}
    if isinstance(model, Answering):
        return described | {"answers": model.answers, "most": most}
    decoding = model.decoding.get_config()
    return described | {"generated": model.generated, "decoding": decoding}
