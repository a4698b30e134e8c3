"""A captioner of ten words, and all that may be said of some images in them."""

import itertools

import numpy as np
from conftest import tiny
from keras_caption.objects import CATEGORIES

import keras_caption as kc
from keras_caption.text import BOS, EOS

FEW = kc.text.Vocabulary(
    ["a", "and", "cat", "cats", "cup", "dog", "green", "on", "table", "two"]
)
EVIDENCE = {"evidence": True, "max_length": 8}
TALL = (0.4, 0.1, 0.6, 0.9)
LEFT, RIGHT = (0.0, 0.3, 0.3, 0.9), (0.32, 0.3, 0.6, 0.9)
WIDE = (0.1, 0.5, 0.9, 1.0)  # what things lie on
ON_IT = (0.4, 0.4, 0.5, 0.6)
LAID = [("dining table", WIDE), ("cup", ON_IT)]
# From the objects of an image to its sentences.
SENTENCES = {
    (("cat", TALL),): {"a cat"},
    (("cat", LEFT), ("cat", RIGHT)): {"a cat", "cats", "two cats"},
    (("cat", (0.0, 0.1, 0.1, 0.4)), ("dog", (0.8, 0.7, 0.9, 0.9))): {
        *("a cat", "a dog", "a cat and a dog", "a dog and a cat")
    },
    tuple(LAID): {
        *("a cup", "a table", "a cup on a table"),
        *("a cup and a table", "a table and a cup"),
    },
}


def captioner_of_few(vocabulary=FEW, signed_geometry=False, **decoding):
    """A captioner of objects, with random weights."""
    sizes = tiny("ngsan", num_layers=1, region_dim=len(CATEGORIES))
    sizes["signed_geometry"] = signed_geometry
    model = kc.models.create(
        "ngsan", vocabulary=vocabulary, categories=[*CATEGORIES], **sizes
    )
    model.decoding = kc.decoding.Decoding(**EVIDENCE, **decoding)
    model.jit_compile = False
    return model


def images_of(*images):
    """Inputs of images that are lists of a category and a box."""
    longest = max(2, *(len(objects) for objects in images))
    inputs = {
        "regions": np.zeros((len(images), longest, len(CATEGORIES)), "float32"),
        "boxes": np.zeros((len(images), longest, 4), "float32"),
        "region_mask": np.zeros((len(images), longest), "bool"),
    }
    for row, objects in enumerate(images):
        for i, (category, box) in enumerate(objects):
            inputs["regions"][row, i, CATEGORIES.index(category)] = 1.0
            inputs["boxes"][row, i] = box
            inputs["region_mask"][row, i] = True
    return inputs


def possible(sentences, options):
    """The sentences of an image that options leave."""
    prefix = options.get("prefix", "")
    if prefix == "dog":  # a user's words need no evidence
        begun = [text for text in sentences if text.startswith("a dog")]
        sentences = {"dog", *(text.removeprefix("a ") for text in begun)}
    pairs = {text: [*itertools.pairwise(text.split())] for text in sentences}
    return {
        text
        for text in sentences
        if text.startswith(prefix)
        and options.get("min_length", 0) <= len(text.split())
        and len(text.split()) < options.get("max_length", 8)
        and all(words in text for words in options.get("required", ()))
        and {*options.get("forbidden", ())}.isdisjoint(text.split())
        and (
            "no_repeat_ngram" not in options or len({*pairs[text]}) == len(pairs[text])
        )
    }


def ranked(model, image, texts):
    """Pairs of texts about one image and their log-probabilities, the best first.

    Args:
        model: Captioner.
        image: dict of arrays, inputs of one image.
        texts: Set of str.
    """
    texts = sorted(texts)
    tokens = np.zeros((len(texts), 20), "int32")
    for row, text in zip(tokens, texts, strict=True):
        ids = [BOS, *model.vocabulary.to_ids(text), EOS]
        row[: len(ids)] = ids
    inputs = {name: np.repeat(x, len(texts), axis=0) for name, x in image.items()}
    scores = np.array(model.log_probabilities(tokens, model.read(inputs))).tolist()
    return sorted(zip(texts, scores, strict=True), key=lambda pair: -pair[1])
