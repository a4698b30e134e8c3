import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from jaxtyping import Int
from keras import ops

from keras_caption.base.arguments import Share, Tensor, check
from keras_caption.base.errors import InputError
from keras_caption.decoding import Decoding
from keras_caption.formats.engine_files import open_engine, read_description
from keras_caption.models.answering import Answering
from keras_caption.models.classifier import Threshold
from keras_caption.models.generation import Generated, Generation
from keras_caption.models.photo_reader import PhotoReader
from keras_caption.models.sentence_reader import SentenceReader
from keras_caption.text import Tokenizer
from keras_caption.text.saved_tokenizer import tokenizer_of

TEXTS = ("vocabulary", "source", "question")


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
    vocabulary: Tokenizer | None

    def __init__(self, file: pathlib.Path):
        described = read_description(file)
        try:
            self.name = str(described["name"])
            self.categories = described.get("categories")
            self.threshold = described["threshold"]
            self.calibration = described.get("calibration")
            self.ignored_inputs = map(str, described["ignored_inputs"])
            self.input_specs = {
                name: keras.KerasTensor((None, *shape), dtype, name=name)
                for name, (shape, dtype) in described["inputs"].items()
            }
            for name in TEXTS:
                setattr(self, name, tokenizer_of(described.get(name)))
            self._describe(described)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file.parent} is damaged: {error!r:.200}.") from None
        self.extractor = None
        self._run_engine = open_engine(file)

    def _describe(self, described: dict[str, Any]) -> None:
        """Sets the attributes of a subclass from the description."""

    def outputs(self, inputs: dict[str, Tensor]) -> dict[str, np.ndarray]:
        """Runs the engine.

        Args:
            inputs: dict of tensors, as `read` returns it.
        """
        served: dict[str, Any] = {}
        for kind in self.kinds:
            served |= kind.to_served(inputs)
        return self._run_engine({n: np.ascontiguousarray(x) for n, x in served.items()})


class EngineGenerator(SentenceReader, EngineModel, Generation):
    """A captioner or translator in a file of an engine, see `EngineModel`."""

    def _describe(self, described: dict[str, Any]) -> None:
        check(Share, threshold=self.threshold)
        self.generated = described["generated"]
        self.decoding = Decoding(**described["decoding"])

    def decoding_of(self, n: int | None, options: Mapping[str, Any]) -> Decoding:
        return self.decoding.fixed(self.name, n, options)

    def encode(self, inputs: dict[str, Tensor]) -> Any:
        raise self._is_whole()

    def _is_whole(self) -> InputError:
        return InputError(
            f"The file of '{self.name}' holds the whole search: it shows neither "
            "attention nor texts while they grow."
        )

    def generate_batch(
        self,
        inputs: dict[str, Tensor],
        places: Int[np.ndarray, " size"],
        n: int | None,
        options: Decoding,
        attention: bool = False,
    ) -> list[Generated]:
        """Generates captions of one batch, see `Generation.generate_batch`."""
        if attention:
            raise self._is_whole()
        outputs = self.outputs(inputs)
        tokens, scores = outputs["tokens"], outputs["scores"]
        masks = [kind.memory_mask(inputs) for kind in self.kinds]
        for mask in (ops.convert_to_numpy(x) for x in masks if x is not None):
            # An image without detected objects has no text, and no option is at fault.
            scores = np.where(mask.any(axis=1), scores, 0.0)
        self._check_scores(scores, places, options)
        return [
            (row[None], score[None], [None])
            for row, score in zip(tokens, scores, strict=True)
        ]


class EngineAnswerer(EngineModel, Answering):
    """A model that answers questions, in a file of an engine, see `EngineModel`."""

    answers: list[str]

    def _describe(self, described: dict[str, Any]) -> None:
        check(Threshold, threshold=self.threshold)
        self.recall = described.get("recall")
        check(dict[str, Share] | None, recall=self.recall)
        self.answers = [str(answer) for answer in described["answers"]]
        self.most = int(described["most"])

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
