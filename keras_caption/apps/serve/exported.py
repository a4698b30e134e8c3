"""Predictions of exported models, which need TensorFlow only."""

import contextlib
import math
import os
import pathlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from jaxtyping import Int
from tensorflow.core.protobuf import saved_model_pb2

from keras_caption.apps.serve.rest_values import IMAGE_BYTES, check_items, to_array
from keras_caption.base.errors import InputError, NoTextError
from keras_caption.export.signature import DEFAULT, Signature
from keras_caption.features.photos import check_size
from keras_caption.formats.faults import reading
from keras_caption.formats.jpeg_scans import check_scans
from keras_caption.formats.photo_parts import PNG
from keras_caption.predict import Example, Prediction, RecordPredictor
from keras_caption.settings.limits import PLACE_BITS

TEXTS = ("captions", "translations", "answers")  # names of outputs
PHOTOS, FEATURES = "photos", "features"  # names of signatures
# From an input that counts items to the input that holds them.
COUNTS = {"num_regions": "regions", "num_frames": "frames"}


class ExportedPredictor(RecordPredictor):
    """Answers records by an exported model, as `Predictor` does by a saved one.

    No model of Keras is built. An export returns texts and scores, but no objects and
    no attention.

    Args:
        path: Path of the folder that `keras_caption.serving.export` wrote.

    Attributes:
        signatures: dict from name to `Signature`.

    Raises:
        InputError: If there is no export at `path`, or it is damaged.
    """

    def __init__(self, path: str | os.PathLike):
        super().__init__()
        with reading(path):
            content = (pathlib.Path(path) / "saved_model.pb").read_bytes()
            [graph] = saved_model_pb2.SavedModel.FromString(content).meta_graphs
            register_operators(graph)
            self._loaded = tf.saved_model.load(str(path))
        definitions = graph.signature_def
        self.signatures = {
            name: signature_of(function, definitions[name])
            for name, function in self._loaded.signatures.items()
        }
        if DEFAULT not in self.signatures:
            raise InputError(f"{path} has no signature {DEFAULT!r}.")
        # Exports of earlier versions have the default signature only.
        self._features = FEATURES if FEATURES in self.signatures else DEFAULT

    @property
    def reads(self) -> tuple[str, ...]:
        """Names that a record may have."""
        photo = ("photo",) if PHOTOS in self.signatures else ()
        return (*photo, *self.signatures[self._features].inputs)

    def read(
        self, record: Mapping[str, Any], place: int = 0, max_pixels: int = 2**26
    ) -> Example:
        """Reads and checks one record, see `Predictor.read`."""
        values = self.known_values(record, place)
        row = {}
        if "photo" in values:
            row[IMAGE_BYTES] = file_of(values.pop("photo"), place, max_pixels)
        signature = self.signatures[PHOTOS if row else self._features]
        for count, counted in COUNTS.items():
            items = values.get(counted)
            if count in signature.inputs and isinstance(items, list | np.ndarray):
                values.setdefault(count, len(items))
        signature.check_names({*row, *values})
        for name, value in values.items():
            value = value.tolist() if isinstance(value, np.ndarray) else value
            what = f"`{name}` of record {place}"
            row[name] = to_array(what, value, signature.inputs[name])
        check_items(f"Record {place}", row)
        return Example(place, row)

    def effort(
        self, records: Sequence[Any], n: int | None, options: dict[str, Any]
    ) -> int:
        """The effort of a call of `answer`, see `keras_caption.apps.serve.effort`."""
        outputs = self.signatures.get("n_best", self.signatures[DEFAULT]).outputs
        tokens = outputs.get("tokens")
        # Beam width and length of texts, as far as the graph has them.
        sizes = [] if tokens is None else tokens.shape[1:].as_list()
        return math.prod([len(records), *(size or 1 for size in sizes)])

    def check_options(self, n: int | None, options: dict[str, Any]) -> None:
        """Raises `InputError` if an option of `answer` is unknown or wrong."""
        self._values(options, self._signature(False, n, options))

    def run(
        self,
        inputs: dict[str, np.ndarray],
        places: Int[np.ndarray, " size"],
        n: int | None,
        attention: bool,
        options: dict[str, Any],
    ) -> list[Prediction]:
        """Predicts for one batch, see `RecordPredictor.run`.

        Options are inputs of the signatures `search` and `sample`.
        """
        if attention:
            raise InputError("An exported model has no attention to show.")
        signature = self._signature(IMAGE_BYTES in inputs, n, options)
        values = self._values(options, signature)
        if "seed" in values:
            # The signature reads the place of an example from the upper bits.
            values["seed"] = values["seed"] + (places.astype("int64") << PLACE_BITS)
        predictions = predictions_of(signature(inputs | values), n)
        self._check_texts(predictions, places, options)
        return predictions

    def _check_texts(self, predictions, places, options):
        """Raises `NoTextError` if there are options, and an example has no text."""
        for place, prediction in zip(places, predictions, strict=True):
            if options and not prediction.best:
                names = ", ".join(f"`{name}`" for name in options)
                raise NoTextError(
                    f"record {place}", f"it has a fault, or {names} leave none"
                )

    def warm_up(self, beam_sizes: Sequence[int] = ()) -> None:
        """Runs each signature once, on one example of zeros."""
        for signature in self.signatures.values():
            signature.warm_up()

    def _values(self, options, signature):
        """Converts options to inputs `(1,)` of a signature, a dict of arrays."""
        values = {}
        for name, value in options.items():
            if name == "forbidden" and not isinstance(value, str):
                value = ",".join(value)
            values[name] = to_array(f"`{name}`", value, signature.inputs[name])[None]
        return values

    def _signature(self, of_files, n, options):
        """The signature that reads these inputs and options.

        Args:
            of_files: bool, whether inputs are files of photos.
            n, options: As in `answer`.

        Raises:
            InputError: If the export has no such signature, or the signature lacks an
                option.
        """
        name = ""
        if options:
            name = "sample" if "temperature" in options else "search"
        elif (n or 1) > 1 and "n_best" in self.signatures:
            name = "search" if of_files else "n_best"  # photos have no `n_best`
        if of_files:
            name = f"{PHOTOS}_{name}" if name else PHOTOS
        name = name or self._features
        signature = self.signatures.get(name)
        known = set() if signature is None else {*signature.inputs}
        for option in options:
            if option not in known:
                raise InputError(
                    f"An exported model has no option {option!r:.60} of requests."
                )
        if signature is None:
            raise InputError(f"The exported model has no signature {name!r}.")
        return signature


def register_operators(graph: Any) -> None:
    """Imports the operators of subword tokenizers if a `MetaGraphDef` needs them.

    They are not always imported, since their package imports Keras.
    """
    used = graph.meta_info_def.stripped_op_list.op
    if not all(hasattr(tf.raw_ops, operator.name) for operator in used):
        with contextlib.suppress(ModuleNotFoundError):
            import tensorflow_text  # noqa: F401


def signature_of(function: Any, definition: Any) -> Signature:
    """A signature of a loaded SavedModel.

    Args:
        function: Value of the loaded model's `signatures`.
        definition: `SignatureDef` of the function, which has default values of inputs.
    """
    defaults = {
        name: tf.make_ndarray(value) for name, value in definition.defaults.items()
    }
    inputs = dict(function.structured_input_signature[1])
    return Signature(inputs, defaults, lambda: function)


def predictions_of(outputs: dict[str, np.ndarray], n: int | None) -> list[Prediction]:
    """Converts the outputs of a signature to predictions.

    Raises:
        InputError: If the model has fewer than `n` answers.
    """
    name = next(name for name in TEXTS if name in outputs)
    texts, scores = (outputs.get(f"best_{x}", outputs[x]) for x in (name, "scores"))
    if name == "answers" and (n or 1) > texts.shape[1]:
        raise InputError(f"The exported model has {texts.shape[1]} answers, not {n}.")
    tokens = outputs.get("tokens")
    if texts.ndim == 1:
        texts, scores = texts[:, None], scores[:, None]
        tokens = None if tokens is None else tokens[:, None]
    predictions = []
    for i, row in enumerate(texts):
        best = [
            (text.decode(), float(score))
            for text, score in zip(row, scores[i], strict=True)
            if np.isfinite(score)  # -inf is no text
        ][: n or 1]
        if not best:
            predictions.append(Prediction())
            continue
        confidence = best[0][1]
        if tokens is not None:  # the geometric mean of the tokens' probabilities
            confidence = float(np.exp(confidence / np.count_nonzero(tokens[i, 0])))
        prediction = Prediction(*best[0], confidence, False, best)
        prediction.tokens = None if tokens is None else tokens[i, 0]
        predictions.append(prediction)
    return predictions


def file_of(value: Any, place: int, max_pixels: int) -> np.ndarray:
    """The bytes of a record's photo, as a NumPy scalar of type object.

    Args:
        value: bytes of a JPEG or PNG file; or uint8 array `(height, width, 3)`.
        place: int, place of the record, for messages.
        max_pixels: int, greatest number of pixels.

    Raises:
        InputError: If `value` is neither, or has more pixels.
    """
    if isinstance(value, np.ndarray) and value.dtype == "uint8" and value.ndim == 3:
        value = tf.io.encode_png(value).numpy()
    what = f"The photo of record {place}"
    if not isinstance(value, bytes):
        raise InputError(f"{what} should be the bytes of an image file.")
    try:
        if value.startswith(PNG):
            # The header chunk: signature, length and name of the chunk, then sizes.
            width, height = struct.unpack(">2I", value[16:24])
        else:
            height, width, _ = tf.io.extract_jpeg_shape(value).numpy().tolist()
    except (struct.error, tf.errors.InvalidArgumentError):
        raise InputError(
            f"{what} is not an image (JPEG or PNG), or is damaged."
        ) from None
    check_size((width, height), what, max_pixels)
    check_scans(value, width, height, what)
    return np.array(value, object)
