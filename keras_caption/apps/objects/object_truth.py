from typing import Any

import keras
import numpy as np
from jaxtyping import Float, Float32, Int
from keras import ops

from keras_caption.apps.objects.object_words import CATEGORY, NOUN, PLURALS
from keras_caption.base.arguments import Tensor
from keras_caption.formats.coco_categories import CATEGORIES
from keras_caption.rewards.ngrams import check_tokens
from keras_caption.text import PAD, Vocabulary


class ObjectTruth(keras.layers.Layer):
    """Rewards captions that name objects of their image, computed in the graph.

    A noun in the singular states one object, in the plural two. Let s be the number of
    objects that all mentions in a caption state, d_c the number that distinct nouns of
    a category c of COCO state, and n_c the number of objects of c in the image: the
    number of regions of c or, if greater, the largest d_c of its references. Let e be
    the mean of sum_c d_c over the references. The reward is

        (2 t - s) / max(s, e, 1),  t = sum_c min(d_c, n_c)

    the true mentions minus the false ones, divided by the number of all mentions or, if
    greater, of those in a reference. (Divided by all mentions alone, the shortest and
    safest caption would score best.) A repeated noun earns nothing. The reward is 0 if
    a caption names no object.
    `keras_caption.apps.objects.object_words` lists the words that name a category. It
    compiles with XLA: no strings, no Python.

    Args:
        vocabulary: `keras_caption.text.Vocabulary` of the captions.
        **kwargs: Further arguments of `keras.layers.Layer`.

    Attributes:
        reads: Names of the tensors of a batch that the reward takes with references.

    Call arguments:
        captions: int `(batch * C, T)`, C adjacent captions for each image: tokens, EOS,
            then PAD.
        references: int `(batch, R, T')`, in the same format. References that are all
            PAD are padding.
        regions: float `(batch, N, 80)`, one-hot categories of the image's objects, in
            the order of `keras_caption.objects.CATEGORIES`. A region of zeros is
            padding.

    Returns:
        float32 `(batch * C,)`, from -1 to 1.

    Example:

    ```python
    objects = kc.rewards.ObjectTruth(model.vocabulary)
    reward = kc.rewards.WeightedSum([cider_d, objects], weights=[1.0, 3.0])
    trainer = kc.training.SelfCritical(model, reward)
    ```
    """

    reads = ("regions",)

    def __init__(self, vocabulary: Vocabulary, **kwargs: Any):
        super().__init__(dtype="float32", trainable=False, **kwargs)
        self.vocabulary = vocabulary
        ids = {word: i for i, word in enumerate(vocabulary.words)}
        nouns = {noun: 1 + i for i, noun in enumerate(CATEGORY)}  # 0: not a noun
        self.category = np.zeros((len(nouns), len(CATEGORIES)), "float32")
        for noun, row in zip(nouns, self.category, strict=True):
            row[CATEGORIES.index(CATEGORY[noun])] = 1.0
        # For each word: the noun that it is, and the number of objects that it states.
        self.noun = np.zeros(len(ids), "int32")
        self.number = np.ones(len(ids), "float32")
        pairs, number_of_pair = [], []
        for phrase, noun in NOUN.items():
            tokens = [ids.get(word) for word in phrase.split()]
            if None in tokens:
                continue
            objects = 2.0 if phrase in PLURALS else 1.0
            if len(tokens) == 1:
                self.noun[tokens[0]], self.number[tokens[0]] = nouns[noun], objects
            else:  # no name has three words
                pairs.append((*tokens, nouns[noun]))
                number_of_pair.append(objects)
        self.pairs = np.array(pairs, "int32").reshape(-1, 3)
        self.number_of_pair = np.array(number_of_pair, "float32")
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
        named, stated = self.count(captions)
        named = ops.reshape(named, (batch, -1, len(CATEGORIES)))
        stated = ops.reshape(stated, (batch, -1))
        referenced, _ = self.count(references)
        regions = ops.cast(regions, "float32")
        present = ops.maximum(ops.sum(regions, axis=1), ops.max(referenced, axis=1))
        true = ops.sum(ops.minimum(named, ops.expand_dims(present, 1)), axis=-1)
        valid = ops.cast(ops.any(references != PAD, axis=-1), "float32")
        expected = ops.sum(referenced, axis=(1, 2)) / ops.maximum(
            ops.sum(valid, axis=-1), 1.0
        )
        least = ops.maximum(ops.expand_dims(expected, 1), 1.0)
        return ops.reshape((2.0 * true - stated) / ops.maximum(stated, least), (-1,))

    def count(
        self, tokens: Int[Tensor, "... T"]
    ) -> tuple[Float32[Tensor, "... 80"], Float32[Tensor, "..."]]:
        """Counts the objects that texts state.

        Args:
            tokens: int `(..., T)`.

        Returns:
            Numbers stated by distinct nouns of each category, d_c, float32 `(..., 80)`;
            and by all mentions, s, float32 `(...)`.
        """
        tokens = ops.cast(tokens, "int32")
        no_padding = [(0, 0)] * (len(tokens.shape) - 1)
        following = ops.pad(tokens[..., 1:], [*no_padding, (0, 1)])
        first, second, noun_of_pair = self.pairs.T
        is_pair = ops.logical_and(
            ops.expand_dims(tokens, -1) == first,
            ops.expand_dims(following, -1) == second,
        )
        pair = ops.sum(ops.where(is_pair, noun_of_pair, 0), axis=-1)
        number = ops.sum(ops.where(is_pair, self.number_of_pair, 0.0), axis=-1)
        # The second word of a name is not a noun of its own: a hot dog is no dog. Nor
        # does any second word begin another name.
        within = ops.pad(pair[..., :-1], [*no_padding, (1, 0)]) > 0
        noun = ops.where(within, 0, ops.take(self.noun, tokens))
        noun = ops.where(pair > 0, pair, noun)
        number = ops.where(pair > 0, number, ops.take(self.number, tokens))
        one_hot = ops.one_hot(noun, len(self.category) + 1, dtype="float32")[..., 1:]
        numbers = one_hot * ops.expand_dims(number, -1)
        # The maximum over positions counts a repeated noun once; then nouns are summed
        # by category.
        named = ops.matmul(ops.max(numbers, axis=-2), self.category)
        return named, ops.sum(numbers, axis=(-2, -1))
