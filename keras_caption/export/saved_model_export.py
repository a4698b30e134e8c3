import json
import os
import pathlib
from typing import Unpack

import keras
import numpy as np
import tensorflow as tf

from keras_caption.base.atomic import naming_tensorflows, replacing
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.decoding import Decoding, DecodingOptions, with_decoding
from keras_caption.export.endpoint import default_of
from keras_caption.export.signatures import endpoints_of
from keras_caption.formats.exports import CONFIG
from keras_caption.formats.preset_files import CARD
from keras_caption.models import Ensemble, Seq2Seq
from keras_caption.models.answering import Answering
from keras_caption.models.cards import write_card
from keras_caption.models.task_model import TaskModel

# All files of an export. A folder with other files is not replaced.
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
    model: Seq2Seq | Answering | Ensemble,
    path: str | os.PathLike,
    *,
    jit_compile: bool = False,
    **options: Unpack[DecodingOptions],
) -> None:
    """Writes a model as a SavedModel, ready for TensorFlow Serving.

    The SavedModel needs neither keras_caption nor Keras to answer. Batch size and
    number of regions or frames are free in all signatures. The signatures of a
    captioner or translator:

    | signature | inputs | outputs |
    |---|---|---|
    | `features` | images, see below | as `greedy`, by beam search |
    | `greedy` | images | `captions`, `tokens`, `scores` |
    | `n_best` | images | the same of all hypotheses of the beam, best first |
    | `search` | images and options | as `n_best`, with options of the request |
    | `sample` | images and options | as `greedy`, sampled |
    | `tokens` | images; of text, tokens | as `features`, without `captions` |
    | `logits` | images and `tokens` | `logits` of the next token, everywhere |
    | `photos` | `image_bytes`: JPEG or PNG files | as `features` |
    | `photos_search` | `image_bytes` and options | as `search` |
    | `photos_sample` | `image_bytes` and options | as `sample` |

    Images are a `grid`; or `regions` with `boxes`; or, for models that do not depend
    on boxes, `regions` with `num_regions`, int32 `(batch,)`. Videos are `frames` with
    `num_frames`. Other kinds of input describe their tensors by
    `keras_caption.inputs.InputKind.served_specs`. Only models of images with an
    `extractor` have `photos`. It turns photos by the orientation in their EXIF data,
    and composes transparent pixels over white. `tokens` has no strings, for engines
    without strings.

    **Options** are `(batch,)`, one for each example, or `(1,)`, one for all. The
    options of `search` are `min_length`, `repetition_penalty`, `length_penalty` if
    there is a beam, and two strings in Unicode's NFC: `prefix`, and `forbidden`, whose
    phrases commas separate (at most 1,000). `sample` has `temperature`, `top_k`,
    `top_p` and `seed` in place of `length_penalty`. The samples of an example depend on
    its seed only, not on the rest of the batch; a seed of -1 stands for a new seed each
    time. If a request over gRPC lacks an option, TensorFlow Serving takes the option of
    the export, or else no limit, text or seed; other programs have to send all options.

    The signatures of a model that answers questions:

    | signature | inputs | outputs |
    |---|---|---|
    | `features` | images, and `question`, strings | see below |
    | `tokens` | images, and tokens of questions | `best_ids` and `best_scores` |
    | `photos` | `image_bytes` and `question` | as `features` |

    The outputs are `answers` and `scores`, `(batch,)`, the most probable answers and
    their probabilities; and `best_answers` and `best_scores`, `(batch, 5)`, those of
    the five most probable answers. `best_ids` are indices into the model's answers. A
    question without words is answered from the image alone.

    `serving_default` is `photos` if the model has it, and else `features`.

    **Padding.** A region whose box has no area is padding: images with fewer regions
    are padded with zeros, or as TensorFlow Serving's `pad_variable_length_inputs`
    does, with the first element of each tensor. Without `boxes`, regions from
    `num_regions` on are padding, and frames from `num_frames` on always are.

    **Images that cannot be captioned** have an empty caption, tokens of PAD, a score of
    -inf, and `logits` of NaN. These are

    - images without a valid region, with features that are not finite, or with boxes
      that are not x1, y1, x2, y2 divided by the image's width and height;
    - videos without a valid frame, or with more than 1,024 frames;
    - photos that cannot be decoded, or have more pixels than
      `keras_caption.features.MAX_PIXELS`;
    - images whose options `generate` would refuse, such as wrong values, or words that
      the model does not know.

    They do not affect other images of the batch. Questions about such images have empty
    answers, and scores of -inf. Rows of a beam without a hypothesis look the same.

    Further files are requests that warm a server up, in `assets.extra`; `README.md`, a
    model card; and the configuration of a single model, with which
    `keras_caption.models.load` loads it from the export. The folder appears whole or
    not at all.

    Args:
        model: `keras_caption.models.Captioner` or `Translator` with a vocabulary, a
            `Classifier`, or an `Ensemble` or `ClassifierEnsemble` of them.
        path: Path of a folder; TensorFlow Serving expects `NAME/VERSION`, such as
            `saved_models/ngsan/1`.
        jit_compile: bool, whether XLA compiles the searches of the export, once for
            each of few shapes: for a server with a GPU. Operators of strings and photos
            are not compiled.
        **options: Fields of `keras_caption.decoding.Decoding` that replace the model's
            own. Models that answer questions have no options.

    Raises:
        InputError: If the model has no vocabulary, or an option is unknown or has a
            wrong value, or the model's detector is of another engine.
    """
    if not getattr(getattr(model, "extractor", None), "in_graphs", True):
        raise InputError(
            f"The detector of '{model.name}' is of another engine, which runs outside "
            "of graphs: export the model with a detector in Keras, or without one."
        )
    decoding = None
    if isinstance(model, Answering):
        model.check_no_decoding(options)
    else:
        decoding = model.decoding.override(**options)
    endpoints = endpoints_of(model, decoding, jit_compile)
    signatures = {name: endpoint.traced() for name, endpoint in endpoints.items()}
    default = default_of(endpoints)
    for named in (endpoints, signatures):
        named["serving_default"] = named[default]
    # `model.export` would write each variable twice.
    module = tf.Module()
    module.model_variables = [variable.value for variable in model.variables]
    module.tokenizers = [tokenizer.trackables() for tokenizer in model.tokenizers]
    with replacing(path, EXPORTED) as partial, naming_tensorflows(path):
        tf.saved_model.save(module, str(partial), signatures=signatures)
        requests = {name: endpoint.example for name, endpoint in endpoints.items()}
        _write_warmup(partial, pathlib.Path(path).parent.name, requests)
        if isinstance(model, TaskModel):
            _write_config(partial, model, decoding)
            write_card(partial, model, replaced=path)


def _write_warmup(
    folder: pathlib.Path, name: str, requests: dict[str, dict[str, np.ndarray]]
) -> None:
    """Writes a request for each signature, which a server runs when it starts."""
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
    folder: pathlib.Path, model: TaskModel, decoding: Decoding | None
) -> None:
    """Writes the configuration of a model, with the options of its export."""
    saved = keras.saving.serialize_keras_object(model)
    saved.pop("compile_config", None)
    if decoding is not None:
        saved["config"]["decoding"] = keras.saving.serialize_keras_object(decoding)
    (folder / CONFIG).write_text(json.dumps(saved), encoding="utf-8")
