from typing import Any

import keras
import numpy as np
from jaxtyping import Float32, Int
from keras import ops

from keras_caption.apps.objects.place_words import PLACE_WORDS, names_of
from keras_caption.base.arguments import Tensor
from keras_caption.rewards.ngrams import check_tokens
from keras_caption.text import Vocabulary


class PlaceTruth(keras.layers.Layer):
    r"""Rewards captions that name places of the references, computed in the graph.

    Let a caption name the set P of places, and let the references of its image mention
    the set Q. The reward is

        |P & Q| - |P \ Q|

    A caption that names no place has 0. `place_words` lists the places, and for
    each the words that name it and those that mention it. The reward compiles with XLA:
    no strings, no Python.

    Args:
        vocabulary: `keras_caption.text.Vocabulary` of the captions.
        **kwargs: Further arguments of `keras.layers.Layer`.

    Call arguments:
        captions: int `(batch * C, T)`, C adjacent captions for each image: tokens, EOS,
            then PAD.
        references: int `(batch, R, T')`, in the same format.

    Returns:
        float32 `(batch * C,)`.

    Example:

    ```python
    places = kc.rewards.PlaceTruth(model.vocabulary)
    reward = kc.rewards.WeightedSum([cider_d, places], weights=[1.0, 0.5])
    ```
    """

    def __init__(self, vocabulary: Vocabulary, **kwargs: Any):
        super().__init__(dtype="float32", trainable=False, **kwargs)
        self.vocabulary = vocabulary
        # For each word, the places that it names, and those that it mentions.
        shape = len(vocabulary), len(PLACE_WORDS)
        self.names, self.mentions = np.zeros((2, *shape), "float32")
        number = {word: i for i, word in enumerate(vocabulary.words)}
        for i, place in enumerate(PLACE_WORDS):
            for table, words in (self.names, names_of(place)), (self.mentions, place):
                table[[number[word] for word in words if word in number], i] = 1.0
        self.built = True

    def call(
        self,
        captions: Int[Tensor, "batch*C T"],
        references: Int[Tensor, "batch R T_reference"],
    ) -> Float32[Tensor, " batch*C"]:
        check_tokens("captions", captions, "(batch * C, T)")
        check_tokens("references", references, "(batch, R, T)")
        batch = ops.shape(references)[0]
        named = ops.max(ops.take(self.names, captions, axis=0), axis=1)
        named = ops.reshape(named, (batch, -1, len(PLACE_WORDS)))
        mentioned = ops.max(ops.take(self.mentions, references, axis=0), axis=(1, 2))
        signs = 2.0 * ops.expand_dims(mentioned, 1) - 1.0
        return ops.reshape(ops.sum(named * signs, axis=-1), (-1,))
