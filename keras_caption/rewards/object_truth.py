from typing import Any

import keras
import numpy as np
from jaxtyping import Float, Float32, Int
from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.features.object_detector import CATEGORIES
from keras_caption.features.object_words import CATEGORY, NOUN
from keras_caption.rewards.ngrams import check_tokens
from keras_caption.text import PAD, Vocabulary


class ObjectTruth(keras.layers.Layer):
    """Whether captions name the objects that are there, computed in the graph.

    Let m_c be the number of times that a caption names a category c of COCO, and n_c
    how often it may: the number of the image's regions of c, or, where that is more,
    of times that one of its references names c. Let s be the number of mentions in the
    caption, and e the mean number in a reference. The reward is

        (2 t - s) / max(s, e, 1),  t = sum_c min(m_c, n_c)

    the true mentions less the others, as a share of all, or of those that people
    make: of a share alone the maximum is the shortest and safest caption. It is 0 if a
    caption names nothing. `keras_caption.features.object_words` lists the words that
    name a category. It compiles with XLA: no strings, no Python.

    Args:
        vocabulary: `keras_caption.text.Vocabulary` of the captions.
        **kwargs: Further arguments of `keras.layers.Layer`.

    Attributes:
        reads: Names of what the reward reads of a batch, besides references.

    Call arguments:
        captions: int `(batch * C, T)`, C captions for each image, next to each other:
            tokens, EOS, then PAD.
        references: int `(batch, R, T')`, in the same format. References that are all
            PAD are padding.
        regions: float `(batch, N, 80)`, one-hot categories of the image's objects, in
            the order of `keras_caption.features.CATEGORIES`. A region that is all
            zeros is none.

    Returns:
        float32 `(batch * C,)`, from -1 to 1.

    Example:

    ```python
    objects = kc.rewards.ObjectTruth(model.vocabulary)
    reward = kc.rewards.WeightedSum([cider_d, objects], weights=[1.0, 4.0])
    trainer = kc.training.SelfCritical(model, reward)
    ```
    """

    reads = ("regions",)

    def __init__(self, vocabulary: Vocabulary, **kwargs: Any):
        super().__init__(dtype="float32", trainable=False, **kwargs)
        self.vocabulary = vocabulary
        number = {word: i for i, word in enumerate(vocabulary.words)}
        # 0 is the number of no category.
        self.of_word = np.zeros(len(number), "int32")
        pairs = []
        for phrase, noun in NOUN.items():
            tokens = [number.get(word) for word in phrase.split()]
            if None in tokens:
                continue
            category = 1 + CATEGORIES.index(CATEGORY[noun])
            if len(tokens) == 1:
                self.of_word[tokens[0]] = category
            else:  # there are no names of three words
                pairs.append((*tokens, category))
        self.pairs = np.array(pairs, "int32").reshape(-1, 3)
        self.built = True

    def call(
        self,
        captions: Int[Tensor, "batch*C T"],
        references: Int[Tensor, "batch R T_reference"],
        regions: Float[Tensor, "batch N 80"],
    ) -> Float32[Tensor, " batch*C"]:
        check_tokens("captions", captions, "(batch * C, T)")
        check_tokens("references", references, "(batch, R, T)")
        batch = ops.shape(references)[0]
        named = ops.reshape(self.count(captions), (batch, -1, len(CATEGORIES)))
        by_people = self.count(references)
        regions = ops.cast(regions, "float32")
        there = ops.maximum(ops.sum(regions, axis=1), ops.max(by_people, axis=1))
        true = ops.sum(ops.minimum(named, ops.expand_dims(there, 1)), axis=-1)
        stated = ops.sum(named, axis=-1)
        valid = ops.cast(ops.any(references != PAD, axis=-1), "float32")
        expected = ops.sum(by_people, axis=(1, 2)) / ops.maximum(
            ops.sum(valid, axis=-1), 1.0
        )
        least = ops.maximum(ops.expand_dims(expected, 1), 1.0)
        return ops.reshape((2.0 * true - stated) / ops.maximum(stated, least), (-1,))

    def count(self, tokens: Int[Tensor, "... T"]) -> Float32[Tensor, "... 80"]:
        """How often texts name each category.

        Args:
            tokens: int `(..., T)`.

        Returns:
            float32 `(..., 80)`.
        """
        tokens = ops.cast(tokens, "int32")
        category = ops.take(self.of_word, tokens)
        no_padding = [(0, 0)] * (len(tokens.shape) - 1)
        following = ops.pad(tokens[..., 1:], [*no_padding, (0, 1)])
        first, second, of_pair = self.pairs.T
        is_pair = ops.logical_and(
            ops.expand_dims(tokens, -1) == first,
            ops.expand_dims(following, -1) == second,
        )
        pair = ops.sum(ops.where(is_pair, of_pair, 0), axis=-1)
        # The second word of a name is none itself: a hot dog is no dog. None begins
        # another name either.
        within = ops.pad(pair[..., :-1], [*no_padding, (1, 0)]) > 0
        category = ops.where(pair > 0, pair, ops.where(within, 0, category))
        one_hot = ops.one_hot(category, len(CATEGORIES) + 1, dtype="float32")
        return ops.sum(one_hot, axis=-2)[..., 1:]
