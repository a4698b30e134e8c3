import pathlib

import numpy as np
import tensorflow as tf

from keras_caption.atomic import replacing
from keras_caption.decoding import beam_search, check_options, greedy_search
from keras_caption.errors import InputError
from keras_caption.models.image_inputs import find_faults
from keras_caption.serving.photos import decode_photos
from keras_caption.text import BOS, EOS, PAD

# All files of an export: a folder that holds others is not replaced by one.
EXPORTED = (
    "saved_model.pb",
    "fingerprint.pb",
    "variables/variables.*",
    "assets.extra/tf_serving_warmup_requests",
)


def export(model, path, **decoding):
    """Writes a captioner as a SavedModel, ready for TensorFlow Serving.

    It needs neither keras_caption nor Keras to answer. Batch size and number of
    regions are free in all signatures:

    | signature | inputs | outputs |
    |---|---|---|
    | `serving_default` | images, see below | as `greedy`, by beam search |
    | `greedy` | images | `captions`, `tokens`, `scores` |
    | `logits` | images and `tokens` | `logits` of the next token, everywhere |
    | `photos` | `image_bytes`: JPEG or PNG files | as `serving_default` |

    An image is a `grid`; or `regions` with `boxes`; or, for models that do not read
    boxes, `regions` with `num_regions`, int32 `(batch,)`. Only models with an
    `extractor` have `photos`, which respects a JPEG's EXIF orientation.

    **Padding.** A region whose box has no area is padding: images with fewer regions
    are padded with zeros, or as TensorFlow Serving's `pad_variable_length_inputs`
    does, with the first element of each tensor. Without `boxes`, regions from
    `num_regions` on are padding.

    **Images that cannot be captioned** have an empty caption, tokens of PAD and a
    score of -inf; in `logits`, NaN. They are those without a valid region, with
    features that are not finite, or with boxes that are not x1, y1, x2, y2 divided by
    the image's width and height; and photos that cannot be decoded, or have more
    pixels than `keras_caption.features.MAX_PIXELS`. Other images of the batch are
    answered as without them.

    Records that warm a server up are written beside the graph, into `assets.extra`.
    The folder appears whole or not at all.

    Args:
        model: `keras_caption.models.Captioner` with a vocabulary, or an `Ensemble`.
        path: Folder; TensorFlow Serving expects `NAME/VERSION`, such as
            `saved_models/ngsan/1`.
        **decoding: Options of `keras_caption.decoding.beam_search`: `beam_size`,
            `max_length`, `length_penalty`, `block_trigrams`, `keep_greedy`.

    Raises:
        InputError: If the model has no vocabulary, or an option has a wrong value.
    """
    check_options(decoding)
    if "temperature" in decoding:
        raise InputError("An export searches for captions: it takes no `temperature`.")
    if model.vocabulary is None:
        raise InputError(f"The model '{model.name}' has no vocabulary to answer with.")
    words = tf.constant(model.vocabulary.words)
    specs = image_specs(model)

    def answer(tokens, scores, good):
        tokens = tf.where(good[:, None], tokens, PAD)
        is_word = tf.reduce_all(tokens[..., None] != [PAD, BOS, EOS], axis=-1)
        captions = tf.where(is_word, tf.gather(words, tokens), "")
        captions = tf.strings.strip(tf.strings.reduce_join(captions, -1, separator=" "))
        scores = tf.where(good, scores, float("-inf"))
        return {"captions": captions, "tokens": tokens, "scores": scores}

    def search(images, good):
        tokens, scores = beam_search(model, model.encode(images), **decoding)
        return answer(tokens[:, 0], scores[:, 0], good)

    def serving_default(**images):
        return search(*without_faults(images))

    def greedy(**images):
        images, good = without_faults(images)
        length = {k: x for k, x in decoding.items() if k == "max_length"}
        return answer(*greedy_search(model, model.encode(images), **length), good)

    def logits(tokens, **images):
        images, good = without_faults(images)
        logits = model.logits(tokens, model.encode(images))
        captions = tf.shape(tokens)[0] // tf.maximum(tf.size(good), 1)  # of each image
        good = tf.repeat(good, captions)[:, None, None]
        return {"logits": tf.where(good, logits, float("nan"))}

    def photos(image_bytes):
        pixels, decoded = decode_photos(image_bytes, model.extractor.image_size)
        features = model.extractor(pixels)
        images = {name: features[name] for name in model.image_specs}
        images, good = without_faults(images)
        return search(images, good & decoded)

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


def image_specs(model):
    """The signature's inputs that are an image, a dict of `tf.TensorSpec`."""
    specs = {
        name: tf.TensorSpec(spec.shape, tf.float32, name=name)
        for name, spec in model.image_specs.items()
        if name != "region_mask"
    }
    if "boxes" in specs and not model.reads_boxes:
        del specs["boxes"]
        specs["num_regions"] = tf.TensorSpec((None,), tf.int32, name="num_regions")
    return specs


def without_faults(images):
    """A batch with zeros in place of images that cannot be captioned.

    Args:
        images: dict of a signature's inputs.

    Returns:
        dict of a model's inputs; and which images can be captioned, bool `(batch,)`.
    """
    images = dict(images)
    num_regions = images.pop("num_regions", None)
    if num_regions is not None:
        most = tf.shape(images["regions"])[1]
        num_regions = tf.where(num_regions <= most, num_regions, 0)
        images["region_mask"] = tf.sequence_mask(num_regions, most)
    faults = tf.stack(list(find_faults(images).values()))
    good = ~tf.reduce_any(faults, axis=0)

    def blank(values):
        shape = tf.concat([tf.shape(good), tf.ones(values.shape.rank - 1, tf.int32)], 0)
        return tf.where(tf.reshape(good, shape), values, tf.zeros_like(values))

    return {name: blank(values) for name, values in images.items()}, good


def example_of(spec, regions=36):
    """An input for a signature: one image, with so many regions if it has any."""
    if spec.name == "num_regions":
        return np.array([regions], "int32")
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
