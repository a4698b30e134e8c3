import functools
import pathlib

import numpy as np
import tensorflow as tf

from keras_caption.atomic import replacing
from keras_caption.decoding import beam_search, greedy_search
from keras_caption.text import BOS, EOS, PAD


def export(model, path, *, beam_size=3, max_length=20, length_penalty=0.0):
    """Writes a captioner as a SavedModel, ready for TensorFlow Serving.

    It needs neither keras_caption nor Keras to answer. Batch size and number of
    regions are free in all signatures:

    | signature | inputs | outputs |
    |---|---|---|
    | `serving_default` | `regions`, `boxes` | `captions`, `tokens`, `scores`: beam |
    | `greedy` | the same | the same, of greedy search |
    | `logits` | the same and `tokens` | `logits` of the next word, everywhere |

    A region whose box is all zeros is padding: images of different numbers of
    regions are padded with zeros, and no mask travels. Records that warm a server
    up are written beside the graph, into `assets.extra`. The folder appears whole
    or not at all.

    Args:
        model: `keras_caption.models.Captioner` with a vocabulary, or an `Ensemble`.
        path: Folder; TensorFlow Serving wants `NAME/VERSION`, such as
            `saved_models/ngsan/1`.
        beam_size, max_length, length_penalty: Of the beam search.

    Raises:
        ValueError: If the model has no vocabulary.
    """
    if model.vocabulary is None:
        raise ValueError(f"The model '{model.name}' has no vocabulary to answer with.")
    words = tf.constant(model.vocabulary.words)
    region_dim = model.image_specs["regions"].shape[-1]
    specs = {
        "regions": tf.TensorSpec((None, None, region_dim), tf.float32),
        "boxes": tf.TensorSpec((None, None, 4), tf.float32),
    }

    def memory(regions, boxes):
        mask = tf.reduce_any(boxes != 0.0, axis=-1)
        return model.encode({"regions": regions, "boxes": boxes, "region_mask": mask})

    def answer(tokens, scores):
        said = tf.reduce_all(tokens[..., None] != [PAD, BOS, EOS], axis=-1)
        captions = tf.where(said, tf.gather(words, tokens), "")
        captions = tf.strings.strip(tf.strings.reduce_join(captions, -1, separator=" "))
        return {"captions": captions, "tokens": tokens, "scores": scores}

    endpoint = functools.partial(tf.function, autograph=False)

    @endpoint(input_signature=list(specs.values()))
    def serving_default(regions, boxes):
        tokens, scores = beam_search(
            model,
            memory(regions, boxes),
            beam_size=beam_size,
            max_length=max_length,
            length_penalty=length_penalty,
        )
        return answer(tokens[:, 0], scores[:, 0])

    @endpoint(input_signature=list(specs.values()))
    def greedy(regions, boxes):
        return answer(*greedy_search(model, memory(regions, boxes), max_length))

    @endpoint(input_signature=[tf.TensorSpec((None, None), tf.int32), *specs.values()])
    def logits(tokens, regions, boxes):
        return {"logits": model.logits(tokens, memory(regions, boxes))}

    module = tf.Module()
    module.model_variables = [variable.value for variable in model.variables]
    signatures = {
        "serving_default": serving_default,
        "greedy": greedy,
        "logits": logits,
    }
    with replacing(path) as partial:
        tf.saved_model.save(module, str(partial), signatures=signatures)
        _write_warmup(partial, pathlib.Path(path).parent.name, region_dim)


def _write_warmup(folder, name, region_dim, regions=36):
    """One request of each signature, for a server to run before it takes others."""
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    inputs = {
        "regions": np.zeros((1, regions, region_dim), "float32"),
        "boxes": np.tile(np.float32([0, 0, 1, 1]), (1, regions, 1)),
    }
    requests = {
        "serving_default": inputs,
        "greedy": inputs,
        "logits": {**inputs, "tokens": np.full((1, 2), BOS, "int32")},
    }
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
