import functools

import numpy as np
import tensorflow as tf

from keras_caption.apps.objects import ObjectDetector
from keras_caption.base.errors import InputError
from keras_caption.decoding import Decoding
from keras_caption.decoding.search import is_hypothesis
from keras_caption.export.compiled_search import compiled_by_xla
from keras_caption.export.endpoint import (
    Endpoint,
    Input,
    inputs_of,
    photo_inputs,
)
from keras_caption.export.photos import extract_photos
from keras_caption.export.request_options import RequestOptions
from keras_caption.features import Extractor
from keras_caption.inputs import read_served
from keras_caption.models import Ensemble, Seq2Seq
from keras_caption.text import BOS, PAD


def generation_endpoints(
    model: Seq2Seq | Ensemble, options: Decoding, jit_compile: bool = False
) -> dict[str, Endpoint]:
    """The signatures of the SavedModel of a model that generates, by name.

    Args:
        model: Captioner, translator or ensemble.
        options: `Decoding`.
        jit_compile: bool, whether XLA compiles the searches.

    Raises:
        InputError: If the model has no vocabulary, or `options` has some that only a
            request may set: a temperature or texts.
    """
    if options.temperature is not None:
        raise InputError(
            "An export searches for captions: it takes no `temperature`, which is an "
            "input of its signature `sample`."
        )
    if model.vocabulary is None:
        raise InputError(f"The model '{model.name}' has no vocabulary to answer with.")
    if options.prefix or options.forbidden or options.required:
        raise InputError(
            "An export takes no texts: `prefix` and `forbidden` are inputs of its "
            "signatures `search` and `sample`; `required` is not available."
        )

    # === Parts that signatures share, each traced as one graph ===
    graph = functools.partial(tf.function, autograph=False)
    encode = graph(model.encode)

    def search_by(options, only_best=False):
        def search(feed):
            found = model.search(options, **feed, only_best=only_best)
            tokens, scores = found.run(encode(feed["inputs"]))
            if len(scores.shape) == 1:  # one hypothesis of each example
                tokens, scores = tokens[:, None], scores[:, None]
            return tokens, scores

        return compiled_by_xla(search, model.kinds) if jit_compile else graph(search)

    @graph
    def extract(image_bytes):
        return extract_photos(model.extractor, image_bytes)

    # === Inputs of signatures: functions that return inputs and validity ===
    def features(served):
        return read_served(model.kinds, served)

    def photos(served):
        extracted, decoded = extract(served["image_bytes"])
        inputs, valid = read_served(model.kinds, extracted)
        if isinstance(model.extractor, ObjectDetector):  # nothing detected: no text
            decoded &= tf.reduce_any(extracted["scores"] > 0, axis=1)
        return inputs, valid & decoded

    # === Outputs of signatures: functions of inputs, validity and the request ===
    def hypotheses(search, requested=None):
        def answer(inputs, valid, served):
            feed = {"inputs": inputs}
            if requested is not None:
                request_feed, valid = requested.read(served, valid)
                feed |= request_feed
            tokens, scores = search(feed)  # (batch, n, T) and (batch, n)
            usable = valid[:, None] & is_hypothesis(scores)
            return {
                "tokens": tf.where(usable[..., None], tokens, PAD),
                "scores": tf.where(usable, scores, float("-inf")),
            }

        return answer

    def best(answer):
        return lambda *args: {name: x[:, 0] for name, x in answer(*args).items()}

    def in_words(answer):
        def with_texts(*args):
            answers = answer(*args)
            tokens = answers["tokens"]
            flat = tf.reshape(tokens, (-1, tokens.shape[-1]))  # (batch * n, T)
            texts = model.vocabulary.detokenize(flat)
            texts = tf.reshape(texts, tf.shape(tokens)[:-1])
            return {model.generated: texts, **answers}

        return with_texts

    def logits(inputs, valid, served):
        tokens = served["tokens"]
        known = (tokens >= 0) & (tokens < len(model.vocabulary))
        logits = model.logits(tf.where(known, tokens, PAD), encode(inputs))
        captions = tf.shape(logits)[0] // tf.maximum(tf.size(valid), 1)  # of each image
        valid = tf.repeat(valid, captions) & tf.reduce_all(known, axis=1)
        return {"logits": tf.where(valid[:, None, None], logits, float("nan"))}

    # === Signatures ===
    def endpoint(read, answer, inputs, outputs):
        return Endpoint(lambda **served: answer(*read(served), served), inputs, outputs)

    def outputs(*others, words=True):
        """Specs of outputs, whose first dimensions are the batch and `others`."""
        specs = {
            "tokens": tf.TensorSpec((None, *others, None), tf.int32),
            "scores": tf.TensorSpec((None, *others), tf.float32),
        }
        text = {model.generated: tf.TensorSpec((None, *others), tf.string)}
        return {**text, **specs} if words else specs

    beam = hypotheses(search_by(options))
    best_beam = hypotheses(search_by(options, only_best=True))
    greedy = hypotheses(search_by(options.override(beam_size=1)))
    by_request = {}
    for name, defaults in (
        ("search", options),
        ("sample", options.override(temperature=1.0)),
    ):
        requested = RequestOptions(defaults, model.vocabulary)
        answer = hypotheses(search_by(defaults), requested)
        more = requested.inputs
        if name == "search":
            by_request[name] = in_words(answer), more, outputs(None)
        else:
            by_request[name] = in_words(best(answer)), more, outputs()

    inputs = inputs_of(model.kinds)
    tokens = Input((None, None), tf.int32, np.full((1, 2), BOS))
    endpoints = {
        "features": endpoint(features, in_words(best(best_beam)), inputs, outputs()),
        "greedy": endpoint(features, in_words(best(greedy)), inputs, outputs()),
        "n_best": endpoint(features, in_words(beam), inputs, outputs(None)),
        "tokens": endpoint(
            features,
            best(best_beam),
            inputs_of(model.kinds, as_tokens=True),
            outputs(words=False),
        ),
        "logits": endpoint(
            features,
            logits,
            {"tokens": tokens, **inputs},
            {"logits": tf.TensorSpec((None, None, len(model.vocabulary)), tf.float32)},
        ),
    }
    for name, (answer, more, specs) in by_request.items():
        endpoints[name] = endpoint(features, answer, {**inputs, **more}, specs)
    extractor = getattr(model, "extractor", None)
    required = {name for kind in model.kinds for name in kind.required}
    if (
        isinstance(extractor, Extractor | ObjectDetector)
        and getattr(extractor, "in_graphs", True)
        and required <= {*extractor.made}
    ):
        files = photo_inputs()
        endpoints["photos"] = endpoint(
            photos, in_words(best(best_beam)), files, outputs()
        )
        for name, (answer, more, specs) in by_request.items():
            read = {**files, **more}
            endpoints[f"photos_{name}"] = endpoint(photos, answer, read, specs)
    return endpoints
