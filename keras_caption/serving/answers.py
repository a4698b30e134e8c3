from typing import Any

import tensorflow as tf
from keras import ops

from keras_caption.inputs import read_served
from keras_caption.models import Classifier, ClassifierEnsemble
from keras_caption.serving.photos import extract_photos

BEST = 5  # answers of each question


def answer_endpoints(model: Classifier | ClassifierEnsemble) -> dict[str, Any]:
    """The functions of the SavedModel of a model that answers questions.

    Args:
        model: Classifier or ensemble.

    Returns:
        dict from a signature's name to a function and its inputs, a dict of
        `tf.TensorSpec`.
    """
    count = min(BEST, len(model.answers))

    @tf.function(autograph=False)  # one graph for all signatures
    def search(inputs):
        return ops.top_k(model.probabilities(inputs), count)

    def answer(inputs, valid):
        scores, ids = search(inputs)
        scores = tf.where(valid[:, None], scores, float("-inf"))
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

    def photos(image_bytes, **served):
        made, decoded = extract_photos(model.extractor, image_bytes)
        inputs, valid = read_served(model.kinds, {**made, **served})
        return answer(inputs, valid & decoded)

    specs, others = {}, {}
    for kind in model.kinds:
        own = {
            name: tf.TensorSpec(spec.shape, spec.dtype, name=name)
            for name, spec in kind.served_specs().items()
        }
        specs |= own
        if model.extractor is None or kind.keys[0] not in model.extractor.made:
            others |= own
    endpoints = {"features": (features, specs)}
    if model.extractor is not None:
        files = tf.TensorSpec((None,), tf.string, name="image_bytes")
        endpoints["photos"] = (photos, {"image_bytes": files, **others})
    return endpoints
