import functools
import json
import os
import pathlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_caption.atomic import replacing
from keras_caption.decoding import (
    Decoding,
    beam_search,
    greedy_search,
    with_decoding,
)
from keras_caption.decoding.beam import is_hypothesis
from keras_caption.errors import InputError, missing_extras
from keras_caption.features import Extractor, ObjectDetector
from keras_caption.formats.exports import CONFIG
from keras_caption.formats.preset_files import CARD
from keras_caption.inputs import read_served
from keras_caption.models import Ensemble, Seq2Seq
from keras_caption.models.answering import Answering
from keras_caption.models.cards import write_card
from keras_caption.models.input_reader import InputReader
from keras_caption.models.task_model import TaskModel
from keras_caption.serving.answers import answer_endpoints
from keras_caption.serving.photos import extract_photos
from keras_caption.text import BOS, PAD

# All files of an export: a folder that holds others is not replaced by one.
EXPORTED = (
    "saved_model.pb",
    "fingerprint.pb",
    "variables/variables.*",
    "assets.extra/tf_serving_warmup_requests",
    CONFIG,
    CARD,
)


@with_decoding
def export(
    model: Seq2Seq | Answering | Ensemble, path: str | os.PathLike, **options: Any
) -> None:
    """Writes a model as a SavedModel, ready for TensorFlow Serving.

    It needs neither keras_caption nor Keras to answer. Batch size and number of
    regions or frames are free in all signatures. Those of a captioner or translator:

    | signature | inputs | outputs |
    |---|---|---|
    | `features` | images, see below | as `greedy`, by beam search |
    | `greedy` | images | `captions`, `tokens`, `scores` |
    | `n_best` | images | the same of all hypotheses of the beam, best first |
    | `logits` | images and `tokens` | `logits` of the next token, everywhere |
    | `photos` | `image_bytes`: JPEG or PNG files | as `features` |

    Images are a `grid`; or `regions` with `boxes`; or, for models that do not depend
    on boxes, `regions` with `num_regions`, int32 `(batch,)`. Videos are `frames` with
    `num_frames`. Other kinds of input say what they take, see
    `keras_caption.inputs.InputKind.served_specs`. Only models of images with an
    `extractor` have `photos`, which turns photos by the orientation in their EXIF data,
    and composes what is transparent over white.

    Those of a model that answers questions:

    | signature | inputs | outputs |
    |---|---|---|
    | `features` | images, and `question`, strings | see below |
    | `photos` | `image_bytes` and `question` | as `features` |

    The outputs are `answers` and `scores`, `(batch,)`, the most probable answers and
    their probabilities; and `best_answers` and `best_scores`, `(batch, 5)`, of the five
    most probable. A question without words is answered by the image alone.

    `serving_default` is `photos` of models that have it, and `features` of others.

    **Padding.** A region whose box has no area is padding: images with fewer regions
    are padded with zeros, or as TensorFlow Serving's `pad_variable_length_inputs`
    does, with the first element of each tensor. Without `boxes`, regions from
    `num_regions` on are padding, and frames from `num_frames` on always are.

    **Images that cannot be captioned** have an empty caption, tokens of PAD and a
    score of -inf; in `logits`, NaN. So have places of `n_best` without a hypothesis.
    They are those without a valid region, with
    features that are not finite, or with boxes that are not x1, y1, x2, y2 divided by
    the image's width and height; videos without a valid frame, or with more than
    1,024; and photos that cannot be decoded, or have more
    pixels than `keras_caption.features.MAX_PIXELS`. Other images of the batch are
    answered as without them. Questions about such images have empty answers, and scores
    of -inf.

    Records that warm a server up are written beside the graph, into `assets.extra`,
    and the configuration of a single model, with which `keras_caption.models.load`
    loads it from the export; `README.md` is its card.
    The folder appears whole or not at all.

    Args:
        model: `keras_caption.models.Captioner` or `Translator` with a vocabulary, a
            `Classifier`, or an `Ensemble` or `ClassifierEnsemble` of them.
        path: Path of a folder; TensorFlow Serving expects `NAME/VERSION`, such as
            `saved_models/ngsan/1`.
        **options: Fields of `keras_caption.decoding.Decoding`, in place of the model's
            own. Models that answer questions have none.

    Raises:
        InputError: If the model has no vocabulary, or an option is unknown or has a
            wrong value.
    """
    if isinstance(model, Answering):
        if options:
            raise InputError(
                f"Answers are not decoded: there is no option {min(options)!r}."
            )
        endpoints = answer_endpoints(model)
    else:
        options = {"decoding": model.decoding.override(**options)}
        endpoints = generation_endpoints(model, options["decoding"])
    signatures = {
        name: tf.function(function, autograph=False).get_concrete_function(**specs)
        for name, (function, specs) in endpoints.items()
    }
    default = "photos" if "photos" in endpoints else "features"
    for named in (endpoints, signatures):
        named["serving_default"] = named[default]
    module = tf.Module()
    module.model_variables = [variable.value for variable in model.variables]
    module.tokenizers = [tokenizer.trackables() for tokenizer in model.tokenizers]
    with replacing(path, EXPORTED) as partial:
        tf.saved_model.save(module, str(partial), signatures=signatures)
        examples = examples_of(model)
        requests = {
            name: {key: examples[key] for key in specs}
            for name, (_, specs) in endpoints.items()
        }
        _write_warmup(partial, pathlib.Path(path).parent.name, requests)
        if isinstance(model, TaskModel):
            _write_config(partial, model, options)
            write_card(partial, model, replaced=path)


def generation_endpoints(
    model: Seq2Seq | Ensemble, options: Decoding
) -> dict[str, Any]:
    """The functions of the SavedModel of a model that generates.

    Args:
        model: Captioner or ensemble.
        options: `Decoding`.

    Returns:
        dict from a signature's name to a function and its inputs, a dict of
        `tf.TensorSpec`.

    Raises:
        InputError: If the model has no vocabulary, or the options are of sampling.
    """
    if options.temperature is not None:
        raise InputError("An export searches for captions: it takes no `temperature`.")
    if model.vocabulary is None:
        raise InputError(f"The model '{model.name}' has no vocabulary to answer with.")

    if options.prefix or options.forbidden or options.required:
        raise InputError(
            "An export takes no texts: no `prefix`, `forbidden` or `required`."
        )

    # === Searches ===
    def limits_of(inputs):
        limits = model.limits(inputs, options)
        return None if limits is None else {"limits": limits}

    @functools.partial(tf.function, autograph=False)  # one graph for all signatures
    def beam(inputs):
        return beam_search(model, model.encode(inputs), options, limits_of(inputs))

    def one_by_one(inputs):
        return greedy_search(model, model.encode(inputs), options, limits_of(inputs))

    # === Signatures ===
    def answer(tokens, scores, valid):
        tokens = tf.where(valid[:, None], tokens, PAD)
        texts = model.vocabulary.detokenize(tokens)
        scores = tf.where(valid, scores, float("-inf"))
        return {model.generated: texts, "tokens": tokens, "scores": scores}

    def search(inputs, valid):
        tokens, scores = beam(inputs)
        return answer(tokens[:, 0], scores[:, 0], valid)

    def features(**served):
        return search(*read_served(model.kinds, served))

    def greedy(**served):
        inputs, valid = read_served(model.kinds, served)
        return answer(*one_by_one(inputs), valid)

    def n_best(**served):
        inputs, valid = read_served(model.kinds, served)
        tokens, scores = beam(inputs)
        shape = tf.shape(scores)
        usable = valid[:, None] & is_hypothesis(scores)
        tokens = tf.reshape(tokens, (-1, tokens.shape[-1]))
        flat = tf.reshape(scores, (-1,)), tf.reshape(usable, (-1,))
        answers = answer(tokens, *flat)
        return {
            name: tf.reshape(x, tf.concat([shape, tf.shape(x)[1:]], 0))
            for name, x in answers.items()
        }

    def logits(tokens, **served):
        inputs, valid = read_served(model.kinds, served)
        logits = model.logits(tokens, model.encode(inputs))
        captions = tf.shape(tokens)[0] // tf.maximum(tf.size(valid), 1)  # of each image
        valid = tf.repeat(valid, captions)[:, None, None]
        return {"logits": tf.where(valid, logits, float("nan"))}

    def photos(image_bytes):
        made, decoded = extract_photos(model.extractor, image_bytes)
        inputs, valid = read_served(model.kinds, made)
        return search(inputs, valid & decoded)

    # === Their inputs ===
    specs = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name=name)
        for kind in model.kinds
        for name, spec in kind.served_specs().items()
    }
    tokens = tf.TensorSpec((None, None), tf.int32, name="tokens")
    endpoints = {
        "features": (features, specs),
        "greedy": (greedy, specs),
        "n_best": (n_best, specs),
        "logits": (logits, {"tokens": tokens, **specs}),
    }
    extractor = getattr(model, "extractor", None)
    required = {name for kind in model.kinds for name in kind.required}
    reads_photos = isinstance(extractor, Extractor | ObjectDetector)
    if reads_photos and required <= {*extractor.made}:
        files = tf.TensorSpec((None,), tf.string, name="image_bytes")
        endpoints["photos"] = (photos, {"image_bytes": files})
    return endpoints


def examples_of(model: InputReader) -> dict[str, np.ndarray]:
    """Values of all inputs of the signatures, for one example."""
    grey = tf.fill((32, 32, 3), tf.constant(128, tf.uint8))
    examples = {
        "tokens": np.full((1, 2), BOS, "int32"),
        "image_bytes": np.array([tf.io.encode_png(grey).numpy()], object),
    }
    for kind in model.kinds:
        examples |= kind.example()
    return examples


def _write_warmup(
    folder: pathlib.Path, name: str, requests: dict[str, dict[str, np.ndarray]]
) -> None:
    """Writes a request of each signature, which a server runs to warm up."""
    with missing_extras():
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    extra = folder / "assets.extra"
    extra.mkdir()
    with tf.io.TFRecordWriter(str(extra / "tf_serving_warmup_requests")) as writer:
        for signature, values in requests.items():
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = signature
            for key, value in values.items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            writer.write(log.SerializeToString())


def _write_config(
    folder: pathlib.Path, model: TaskModel, options: dict[str, Any]
) -> None:
    """Writes the configuration of a model that has the options of its export."""
    saved = keras.saving.serialize_keras_object(model)
    saved.pop("compile_config", None)
    for name, value in options.items():
        saved["config"][name] = keras.saving.serialize_keras_object(value)
    (folder / CONFIG).write_text(json.dumps(saved), encoding="utf-8")
