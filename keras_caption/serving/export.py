import pathlib

import numpy as np
import tensorflow as tf

from keras_caption.atomic import replacing
from keras_caption.decoding import beam_search, greedy_search
from keras_caption.features import resize_photo
from keras_caption.text import BOS, EOS, PAD

# All files of an export: a folder that holds others is not replaced by one.
EXPORTED = (
    "saved_model.pb",
    "fingerprint.pb",
    "variables/variables.*",
    "assets.extra/tf_serving_warmup_requests",
)


def export(model, path, *, beam_size=3, max_length=20, length_penalty=0.0):
    """Writes a captioner as a SavedModel, ready for TensorFlow Serving.

    It needs neither keras_caption nor Keras to answer. Batch size and number of
    regions are free in all signatures:

    | signature | inputs | outputs |
    |---|---|---|
    | `serving_default` | `regions`, `boxes` (or `grid`) | as `greedy`, beam search |
    | `greedy` | the same | `captions`, `tokens`, `scores` |
    | `logits` | the same and `tokens` | `logits` of the next word, everywhere |
    | `photos` | `image_bytes`: JPEG or PNG files | as `serving_default` |

    The last one is there where the model has an `extractor`.
    A region whose box is all zeros is padding: images of different numbers of
    regions are padded with zeros, and no mask travels. An image without any other
    box, as of data that have none for AoANet, has all its regions. Records that warm
    a server up are written beside the graph, into `assets.extra`. The folder appears
    whole or not at all.

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
    specs = {
        name: tf.TensorSpec(spec.shape, tf.float32, name=name)
        for name, spec in model.image_specs.items()
        if name != "region_mask"
    }

    def memory(images):
        if "boxes" in images:
            mask = tf.reduce_any(images["boxes"] != 0.0, axis=-1)
            boxless = ~tf.reduce_any(mask, axis=1, keepdims=True)
            images = {**images, "region_mask": mask | boxless}
        return model.encode(images)

    def answer(tokens, scores):
        said = tf.reduce_all(tokens[..., None] != [PAD, BOS, EOS], axis=-1)
        captions = tf.where(said, tf.gather(words, tokens), "")
        captions = tf.strings.strip(tf.strings.reduce_join(captions, -1, separator=" "))
        return {"captions": captions, "tokens": tokens, "scores": scores}

    def best(memory):
        tokens, scores = beam_search(
            model,
            memory,
            beam_size=beam_size,
            max_length=max_length,
            length_penalty=length_penalty,
        )
        return answer(tokens[:, 0], scores[:, 0])

    def serving_default(**images):
        return best(memory(images))

    def greedy(**images):
        return answer(*greedy_search(model, memory(images), max_length))

    def logits(tokens, **images):
        return {"logits": model.logits(tokens, memory(images))}

    def photos(image_bytes):
        return best(model.encode(model.extractor(decode(image_bytes, model))))

    tokens = tf.TensorSpec((None, None), tf.int32, name="tokens")
    endpoints = {
        "serving_default": (serving_default, specs),
        "greedy": (greedy, specs),
        "logits": (logits, {"tokens": tokens, **specs}),
    }
    if model.extractor is not None:
        files = tf.TensorSpec((None,), tf.string, name="image_bytes")
        endpoints["photos"] = (photos, {"image_bytes": files})
    signatures = {
        name: tf.function(function, autograph=False).get_concrete_function(**inputs)
        for name, (function, inputs) in endpoints.items()
    }
    module = tf.Module()
    module.model_variables = [variable.value for variable in model.variables]
    with replacing(path, EXPORTED) as partial:
        tf.saved_model.save(module, str(partial), signatures=signatures)
        requests = {
            name: {key: example_of(spec) for key, spec in inputs.items()}
            for name, (_, inputs) in endpoints.items()
        }
        _write_warmup(partial, pathlib.Path(path).parent.name, requests)


def decode(image_bytes, model):
    """Photos as a model's extractor reads them, out of the bytes of their files."""
    size = model.extractor.image_size

    def decode_one(content):
        def jpeg():
            return tf.io.decode_jpeg(content, 3, dct_method="INTEGER_ACCURATE")

        def other():
            return tf.io.decode_image(content, 3, expand_animations=False)

        pixels = tf.cond(tf.io.is_jpeg(content), jpeg, other)
        return resize_photo(tf.ensure_shape(pixels, (None, None, 3)), size)

    photo = tf.TensorSpec((size, size, 3), tf.float32)
    return tf.map_fn(decode_one, image_bytes, fn_output_signature=photo)


def example_of(spec, regions=36):
    """An input for a signature: one image, with so many regions where it has any."""
    if spec.dtype == tf.string:
        grey = tf.fill((32, 32, 3), tf.constant(128, tf.uint8))
        return np.array([tf.io.encode_png(grey).numpy()], object)
    if spec.dtype == tf.int32:
        return np.full((1, 2), BOS, "int32")
    shape = [1, *(regions if side is None else side for side in spec.shape[1:])]
    example = np.zeros(shape, "float32")
    if spec.name == "boxes":
        example[:] = [0, 0, 1, 1]
    return example


def _write_warmup(folder, name, requests):
    """One request of each signature, for a server to run before it takes others."""
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
