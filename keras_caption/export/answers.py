import tensorflow as tf
from keras import ops

from keras_caption.export.compiled_search import compiled_by_xla
from keras_caption.export.endpoint import Endpoint, inputs_of, photo_inputs
from keras_caption.export.photos import extract_photos
from keras_caption.inputs import read_served
from keras_caption.models.answering import Answering

BEST = 5  # answers to a question that an export returns


def answer_endpoints(
    model: Answering, jit_compile: bool = False
) -> dict[str, Endpoint]:
    """The signatures of the SavedModel of a model that answers questions, by name.

    Args:
        model: Classifier or ensemble.
        jit_compile: bool, whether XLA compiles the model.
    """
    count = min(BEST, len(model.answers))

    def search(feed):
        return tuple(ops.top_k(model.probabilities(feed["inputs"]), count))

    if jit_compile:
        search = compiled_by_xla(search, model.kinds)
    else:
        search = tf.function(search, autograph=False)  # one graph for all signatures

    def ids_of(inputs, valid):
        scores, ids = search({"inputs": inputs})  # (batch, count) each
        return ids, tf.where(valid[:, None], scores, float("-inf"))

    def answer(inputs, valid):
        ids, scores = ids_of(inputs, valid)
        texts = tf.gather(tf.constant(model.answers), ids)
        texts = tf.where(valid[:, None], texts, "")
        return {
            "answers": texts[:, 0],
            "scores": scores[:, 0],
            "best_answers": texts,
            "best_scores": scores,
        }

    def features(**served):
        return answer(*read_served(model.kinds, served))

    def tokens(**served):
        ids, scores = ids_of(*read_served(model.kinds, served))
        return {"best_ids": ids, "best_scores": scores}

    def photos(image_bytes, **served):
        features, decoded = extract_photos(model.extractor, image_bytes)
        inputs, valid = read_served(model.kinds, {**features, **served})
        return answer(inputs, valid & decoded)

    one, several = (None,), (None, count)
    best = {"best_scores": tf.TensorSpec(several, tf.float32)}
    texts = {
        "answers": tf.TensorSpec(one, tf.string),
        "scores": tf.TensorSpec(one, tf.float32),
        "best_answers": tf.TensorSpec(several, tf.string),
        **best,
    }
    ids = {"best_ids": tf.TensorSpec(several, tf.int32), **best}
    endpoints = {
        "features": Endpoint(features, inputs_of(model.kinds), texts),
        "tokens": Endpoint(tokens, inputs_of(model.kinds, as_tokens=True), ids),
    }
    extractor = model.extractor
    if extractor is not None and getattr(extractor, "in_graphs", True):
        others = [k for k in model.kinds if k.keys[0] not in extractor.made]
        inputs = {**photo_inputs(), **inputs_of(others)}
        endpoints["photos"] = Endpoint(photos, inputs, texts)
    return endpoints
