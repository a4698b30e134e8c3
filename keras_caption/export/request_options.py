"""Options of decoding that a request sets, as inputs of a signature."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
from jaxtyping import Bool
from pydantic import TypeAdapter

from keras_caption.base.arguments import Tensor
from keras_caption.decoding import Decoding
from keras_caption.decoding.random_numbers import uniform_numbers
from keras_caption.decoding.text_options import can_come
from keras_caption.export.endpoint import Input
from keras_caption.settings.decoding import needs_of
from keras_caption.settings.limits import MAX_PHRASES, PLACE_BITS
from keras_caption.text import PAD, Tokenizer

# Options with a value for each example. The graph fixes all other options.
DTYPES = {
    "min_length": tf.int32,
    "length_penalty": tf.float32,
    "repetition_penalty": tf.float32,
    "prefix": tf.string,
    "forbidden": tf.string,
    "temperature": tf.float32,
    "top_k": tf.int32,
    "top_p": tf.float32,
    "seed": tf.int64,
}
NO_SEED = -1
BOUNDS = {
    "minimum": tf.greater_equal,
    "exclusiveMinimum": tf.greater,
    "maximum": tf.less_equal,
    "exclusiveMaximum": tf.less,
}


class RequestOptions:
    """Options of decoding as inputs of a signature, each `(batch,)` or `(1,)`.

    Options without effect are no inputs, such as `top_k` of a search.

    Args:
        options: `Decoding` without texts, whose values are the defaults.
        vocabulary: `keras_caption.text.Tokenizer` of the generated texts.

    Attributes:
        inputs: dict from name to `Input`, with defaults `(1,)`.
    """

    def __init__(self, options: Decoding, vocabulary: Tokenizer):
        self.options = options
        self.vocabulary = vocabulary
        fields = {field.name: field for field in dataclasses.fields(Decoding)}
        self.fields = {
            name: fields[name]
            for name in DTYPES
            if all(need.condition(options) for need in needs_of(fields[name]))
        }
        if options.temperature is None:
            del self.fields["temperature"]  # it would turn the search into sampling
        # Values with the effect of an omitted option.
        without = {"top_k": len(vocabulary), "top_p": 1.0, "seed": NO_SEED}
        self.inputs = {}
        for name in self.fields:
            value = getattr(options, name)
            value = without[name] if value is None else value
            value = value if value != () else ""
            self.inputs[name] = Input((None,), DTYPES[name], [value], has_default=True)

    def read(
        self, served: dict[str, Tensor], valid: Bool[Tensor, " batch"]
    ) -> tuple[dict[str, Any], Bool[Tensor, " batch"]]:
        """Makes arguments of a model's `search` from the inputs of a signature.

        Args:
            served: dict of tensors, the options.
            valid: bool `(batch,)`, False for examples with other faults.

        Returns:
            dict of `per_example` and, for sampling, `numbers`; and bool `(batch,)`,
            False for examples with a fault or with wrong options.
        """
        values = {}
        for name, field in self.fields.items():
            requested = tf.broadcast_to(served[name], tf.shape(valid))
            if name == "prefix":
                values[name], is_right = self._prefix(requested)
            elif name == "forbidden":
                values[name], is_right = self._forbidden(requested)
            else:
                default = self.inputs[name].tensor
                is_right = is_value(requested, field) | (requested == default)
                if name == "seed":  # 64 bits: more than the type of the option allows
                    is_right |= requested >= 0
                if name == "min_length":
                    is_right &= requested <= self.options.max_length
                # A wrong value must not fail the other examples of the batch.
                values[name] = tf.where(is_right, requested, default)
            valid &= is_right
        feed = {"per_example": values}
        if "seed" in values:
            feed["numbers"] = self._numbers(values.pop("seed"))
        return feed, valid

    def _numbers(self, seeds):
        """Uniform numbers for each example, equal to those of `numbers_of_samples`."""
        # Not of `tf.random`, which a program may have seeded.
        fresh = tf.raw_ops.NonDeterministicInts(shape=tf.shape(seeds), dtype=tf.int64)
        seeds = tf.where(seeds == NO_SEED, fresh, seeds)
        places = tf.bitwise.right_shift(seeds, PLACE_BITS)
        # The lower 32 bits of each.
        keys = [tf.bitcast(x, tf.int32)[:, 0] for x in (seeds, places)]
        seed, place = keys
        length = self.options.max_length
        return uniform_numbers(seed[:, None], 0, place, length)

    def _prefix(self, texts):
        """Tokens `(batch, max_length)` of prefixes, and which prefixes are possible."""
        length = self.options.max_length
        tokens = self.vocabulary.tokenize_nfc(texts)
        is_right = self._can_come(tokens) & (tokens.row_lengths() <= length)
        return tokens.to_tensor(PAD, shape=(None, length)), is_right

    def _forbidden(self, texts):
        """Tokens of phrases, `(batch, phrases, longest)`, and which texts are right.

        Phrases are padded at their beginning, as searches compare their ends.
        """
        # One phrase more than allowed, so that it is counted.
        phrases = tf.strings.split(texts, ",")[:, : MAX_PHRASES + 1]
        tokens = self.vocabulary.tokenize_nfc(tf.strings.strip(phrases.flat_values))
        can_come, has_words = self._can_come(tokens), self._have_words(tokens)
        is_right = phrases.with_flat_values(has_words | ~can_come)
        is_right = tf.reduce_all(is_right, axis=1) | (texts == "")
        is_right &= phrases.row_lengths() <= MAX_PHRASES
        # Outputs are shorter than a cut phrase: it forbids nothing, as the whole one.
        tokens = tokens[:, : self.options.max_length + 1]
        # Moves the padding from the end to the beginning: column 0 is PAD.
        padded = tf.pad(tokens.to_tensor(PAD), [[0, 0], [1, 0]], constant_values=PAD)
        longest = tf.shape(padded)[1]
        ends = tf.cast(tokens.row_lengths(), tf.int32)[:, None]
        columns = tf.maximum(tf.range(longest) - (longest - 1 - ends), 0)
        aligned = tf.gather(padded, columns, batch_dims=1)
        aligned = tf.where(can_come[:, None], aligned, PAD)
        return phrases.with_flat_values(aligned).to_tensor(PAD), is_right

    def _can_come(self, tokens):
        """Which rows of ragged tokens the model can generate, bool."""
        return tf.reduce_all(
            self._are(tokens, lambda i: can_come(self.vocabulary, [i])), axis=1
        )

    def _have_words(self, tokens):
        """Which rows of ragged tokens have more than white space, bool."""
        return tf.reduce_any(self._are(tokens, self.vocabulary.is_known), axis=1)

    def _are(self, tokens, condition):
        """Applies a condition on token ids to each token of ragged rows, bool."""
        values = [condition(i) for i in range(len(self.vocabulary))]
        return tf.ragged.map_flat_values(lambda i: tf.gather(values, i), tokens)


def is_value(values: Tensor, field: dataclasses.Field) -> Bool[Tensor, " batch"]:
    """Which numbers the type of an option allows, bool `(batch,)`."""
    kind: Any = field.type
    schema = TypeAdapter(kind).json_schema()
    schema = schema.get("anyOf", [schema])[0]  # a type that allows `None` too
    right = [
        compare(values, tf.cast(schema[bound], values.dtype))
        for bound, compare in BOUNDS.items()
        if bound in schema
    ]
    if values.dtype.is_floating:
        sizes = tf.abs(values)
        right += [tf.math.is_finite(values)]
        # TensorFlow's kernels flush subnormal numbers to 0.
        right += [(sizes == 0) | (sizes >= np.finfo("float32").tiny)]
    return tf.reduce_all(right, axis=0)
