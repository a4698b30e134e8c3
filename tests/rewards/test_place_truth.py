import numpy as np
import tensorflow as tf

import keras_caption as kc
from keras_caption.text import EOS, PAD

VOCABULARY = kc.text.Vocabulary.build(
    ["a cat on the street streets road near water lake beach in kitchen room oven"],
    min_count=1,
)


def tokens_of(*texts, length=8):
    rows = np.full((len(texts), length), PAD, "int32")
    for row, text in zip(rows, texts, strict=True):
        tokens = [*VOCABULARY.encode(text)[1:-1], EOS] if text else []
        row[: len(tokens)] = tokens
    return rows


def test_places_that_no_reference_mentions_cost_what_others_earn():
    references = [
        ("a cat on the road", "a cat near a lake"),
        ("a cat near the oven", ""),  # one reference, and padding
    ]
    captions = {
        "a cat": (0, 0),
        "a cat on the street": (1, -1),
        "a street near the streets": (1, -1),  # one place
        "street near the water": (2, -2),  # a lake is water
        "a cat in a kitchen": (-1, 1),  # where an oven is
        "a kitchen on the street": (0, 0),
        "a lake": (0, 0),  # says more than water: no place's name
        "the beach": (-1, -1),
    }
    reward = kc.rewards.PlaceTruth(VOCABULARY)
    function = tf.function(reward, jit_compile=True)
    found = function(
        tf.constant(np.tile(tokens_of(*captions), (2, 1))),
        tf.constant(np.stack([tokens_of(*texts) for texts in references])),
    )
    expected = np.array([*captions.values()], "float32").T
    np.testing.assert_array_equal(np.reshape(found, (2, -1)), expected)
