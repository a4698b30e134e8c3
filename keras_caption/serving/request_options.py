"""Options of decoding that a server's client sets, as inputs of a signature."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
from jaxtyping import Bool
from pydantic import TypeAdapter

from keras_caption.arguments import Tensor
from keras_caption.decoding import Decoding
from keras_caption.decoding.random_numbers import uniform_numbers
from keras_caption.decoding.text_options import can_come
from keras_caption.serving.endpoint import Input
from keras_caption.serving.limits import MAX_PHRASES, PLACE_BITS
from keras_caption.settings.decoding import needs_of
from keras_caption.text import PAD, Tokenizer

# A search takes a value of these for each example; of others the graph is made.
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
    """The options that have an effect beside others, as inputs of a signature.

    Each is a tensor `(batch,)`, or `(1,)` for all examples alike.

    Args:
        options: `Decoding`, of which the defaults are; it has no texts.
        vocabulary: `keras_caption.text.Tokenizer` of what is generated.

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
            del self.fields["temperature"]  # a search stays one
        # What has the effect of an option that is not given.
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
        """Arguments of a model's `search`, from the inputs of a signature.

        Args:
            served: dict of tensors, the options.
            valid: bool `(batch,)`, which examples have no other fault.

        Returns:
            dict of `per_example` and, if outputs are sampled, `numbers`; and which
            examples have no fault, wrong options included, bool `(batch,)`.
        """
        values = {}
        for name, field in self.fields.items():
            own = tf.broadcast_to(served[name], tf.shape(valid))
            if name == "prefix":
                values[name], is_right = self._prefix(own)
            elif name == "forbidden":
                values[name], is_right = self._forbidden(own)
            else:
                default = self.inputs[name].tensor
                is_right = is_value(own, field) | (own == default)
                if name == "seed":
                    is_right |= own >= 0
                if name == "min_length":
                    is_right &= own <= self.options.max_length
                values[name] = tf.where(is_right, own, default)
            valid &= is_right
        feed = {"per_example": values}
        if "seed" in values:
            feed["numbers"] = self._numbers(values.pop("seed"))
        return feed, valid

    def _numbers(self, seeds):
        """Uniform numbers of each example, as `numbers_of_samples` has them."""
        own = tf.raw_ops.NonDeterministicInts(shape=tf.shape(seeds), dtype=tf.int64)
        seeds = tf.where(seeds == NO_SEED, own, seeds)
        places = tf.bitwise.right_shift(seeds, PLACE_BITS)
        keys = [tf.bitcast(x, tf.int32)[:, 0] for x in (seeds, places)]
        seed, place = keys
        length = self.options.max_length
        return uniform_numbers(seed[:, None], 0, place, length)

    def _prefix(self, texts):
        """Tokens `(batch, max_length)`, then PAD, and which of the texts can come."""
        length = self.options.max_length
        tokens = self.vocabulary.tokenize_nfc(texts)
        is_right = self._can_come(tokens) & (tokens.row_lengths() <= length)
        return tokens.to_tensor(PAD, shape=(None, length)), is_right

    def _forbidden(self, texts):
        """Phrases `(batch, phrases, longest)`, after PAD, and which texts are right."""
        phrases = tf.strings.split(texts, ",")[:, : MAX_PHRASES + 1]
        tokens = self.vocabulary.tokenize_nfc(tf.strings.strip(phrases.flat_values))
        can_come, has_words = self._can_come(tokens), self._have_words(tokens)
        is_right = phrases.with_flat_values(has_words | ~can_come)
        is_right = tf.reduce_all(is_right, axis=1) | (texts == "")
        is_right &= phrases.row_lengths() <= MAX_PHRASES
        # No output has more tokens: nothing is forbidden by a phrase that is cut.
        tokens = tokens[:, : self.options.max_length + 1]
        after = tf.pad(tokens.to_tensor(PAD), [[0, 0], [1, 0]], constant_values=PAD)
        longest = tf.shape(after)[1]
        ends = tf.cast(tokens.row_lengths(), tf.int32)[:, None]
        places = tf.maximum(tf.range(longest) - (longest - 1 - ends), 0)
        before = tf.gather(after, places, batch_dims=1)
        before = tf.where(can_come[:, None], before, PAD)
        return phrases.with_flat_values(before).to_tensor(PAD), is_right

    def _can_come(self, tokens):
        """Which rows of tokens, ragged, the model may generate, bool."""
        return tf.reduce_all(
            self._are(tokens, lambda i: can_come(self.vocabulary, [i])), axis=1
        )

    def _have_words(self, tokens):
        """Which rows of tokens, ragged, have more than white space, bool."""
        return tf.reduce_any(self._are(tokens, self.vocabulary.is_known), axis=1)

    def _are(self, tokens, condition):
        """What a function of a token id says of each token of ragged rows, bool."""
        values = [condition(i) for i in range(len(self.vocabulary))]
        return tf.ragged.map_flat_values(lambda i: tf.gather(values, i), tokens)


def is_value(values: Tensor, field: dataclasses.Field) -> Bool[Tensor, " batch"]:
    """Which numbers the type of an option allows."""
    schema = TypeAdapter(field.type).json_schema()
    schema = schema.get("anyOf", [schema])[0]
    right = [
        compare(values, tf.cast(schema[bound], values.dtype))
        for bound, compare in BOUNDS.items()
        if bound in schema
    ]
    if values.dtype.is_floating:
        sizes = tf.abs(values)
        right += [tf.math.is_finite(values)]
        right += [(sizes == 0) | (sizes >= np.finfo("float32").tiny)]
    return tf.reduce_all(right, axis=0)
