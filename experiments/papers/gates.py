r"""A decoder with AoA, and with what could explain its gain, as the model "gated".

    python experiments/run.py --import experiments/papers/gates.py --model gated \
        --config.model.context=query_gate

The model is the preset aoanet_single_aoa: regions that nothing refines, an LSTM and
attention of one head. Its context vector, of the attended v and the LSTM's output h, is

    linear      ReLU(W [v; h]), of AoANet's base
    aoa         sigmoid(W_g [v; h]) * W_i [v; h]       (AoANet, Eq. 3 to 5)
    query_gate  sigmoid(W_g h) * W_i [v; h]: the gate does not see what was attended to
    wide        W_2 ReLU(W_1 [v; h]), of as many parameters as aoa
    lstm        that of a second LSTM, which reads [v; h]

`normalized` puts layer normalization behind the embedding of regions, which is all the
normalization that refining blocks would bring. `words_scale` multiplies the first
values of the projection to words: an LSTM's outputs begin small, and with many words so
does the projection (Glorot), so that nothing below it learns for long.
"""

import functools
from typing import Any, Literal

import keras
from keras import ops

import keras_caption as kc
from keras_caption.base.arguments import Count, Positive, ShareBelowOne
from keras_caption.inputs import Regions
from keras_caption.layers import AttentionOnAttention, MatrixDense
from keras_caption.models.aoa_decoder import AoADecoder
from keras_caption.models.attention import make_attention
from keras_caption.models.initializers import ScaledInitializer
from keras_caption.models.presets import PRESETS, Preset
from keras_caption.models.sizes import resolve_size


class Gate(keras.layers.Layer):
    """What fills the decoder's gate: called with v and h, of size `dim` each."""

    def build(self, attended_shape, query_shape):
        self.dim = query_shape[-1]
        self.both_shape = (*query_shape[:-1], 2 * self.dim)

    def dense(self, units, shape, name, activation=None):
        layer = MatrixDense(units, activation, dtype=self.dtype_policy, name=name)
        layer.build(shape)
        return layer


@keras.saving.register_keras_serializable("keras_caption_experiments")
class QueryGate(Gate):
    """AoA whose gate reads the query alone."""

    def build(self, attended_shape, query_shape):
        super().build(attended_shape, query_shape)
        self.information = self.dense(self.dim, self.both_shape, "information")
        self.gate = self.dense(self.dim, query_shape, "gate", "sigmoid")

    def call(self, attended, query):
        both = ops.concatenate([attended, query], axis=-1)
        return self.information(both) * self.gate(query)


@keras.saving.register_keras_serializable("keras_caption_experiments")
class Wide(Gate):
    """Two linear layers of as many parameters as AoA: 3 d (4 d / 3) = 4 d^2."""

    def build(self, attended_shape, query_shape):
        super().build(attended_shape, query_shape)
        inner = round(4 * self.dim / 3)
        self.hidden = self.dense(inner, self.both_shape, "hidden", "relu")
        self.output_dense = self.dense(self.dim, (*query_shape[:-1], inner), "output")

    def call(self, attended, query):
        both = ops.concatenate([attended, query], axis=-1)
        return self.output_dense(self.hidden(both))


GATES = {"aoa": AttentionOnAttention, "query_gate": QueryGate, "wide": Wide}


@keras.saving.register_keras_serializable("keras_caption_experiments")
class GatedDecoder(AoADecoder):
    """`AoADecoder` with a gate of `GATES`."""

    def __init__(self, *args, gate, **kwargs):
        super().__init__(*args, context="aoa", **kwargs)
        self.gate_name = gate
        self.gate = GATES[gate](dtype=self.dtype_policy)

    def get_config(self):
        config = {**super().get_config(), "gate": self.gate_name}
        del config["context"]
        return config


@keras.saving.register_keras_serializable("keras_caption_experiments")
class Gated(kc.models.Captioner):
    """AoANet without refining, whose decoder has one of several contexts.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a vocabulary.
        region_dim: int, size of a region's feature vector.
        model_dim: int, size of embedded regions and of the LSTM.
        embedding_dim: int, size of a token's embedding.
        context: str, how the context vector is computed.
        normalized: bool, whether embedded regions are normalized.
        words_scale: float, what multiplies the first values of the words' projection.
        dropout: float, dropout rate of embeddings and output.
    """

    def __init__(
        self,
        vocabulary: kc.text.Vocabulary | None = None,
        vocabulary_size: Count | None = None,
        region_dim: Count = 2048,
        model_dim: Count = 1024,
        embedding_dim: Count = 1024,
        context: Literal["linear", "aoa", "query_gate", "wide", "lstm"] = "aoa",
        normalized: bool = False,
        words_scale: Positive = 1.0,
        dropout: ShareBelowOne = 0.5,
        dtype: Any = None,
        **kwargs,
    ):
        vocabulary_size = resolve_size("vocabulary", vocabulary, vocabulary_size)
        # === Encoder ===
        inputs = Regions.symbolic(region_dim)
        x = MatrixDense(model_dim, "relu", dtype=dtype)(inputs["regions"])
        if normalized:
            x = keras.layers.LayerNormalization(dtype=dtype)(x)
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        encoder = keras.Model(inputs, x, name="encoder")
        # === Decoder ===
        attention = functools.partial(
            make_attention, 1, model_dim, output_projection=False, dtype=dtype
        )
        sizes = (vocabulary_size, model_dim, embedding_dim, attention)
        same = {"dropout": dropout, "dtype": dtype, "name": "decoder"}
        if context in GATES:
            decoder = GatedDecoder(*sizes, gate=context, **same)
        else:
            decoder = AoADecoder(*sizes, context=context, **same)
        decoder.output_dense.kernel_initializer = ScaledInitializer(
            "glorot_uniform", words_scale
        )
        super().__init__(encoder, decoder, vocabulary, dtype=dtype, **kwargs)
        self.ignored_inputs = ("boxes",)


PRESETS["gated"] = Preset(Gated, {})
