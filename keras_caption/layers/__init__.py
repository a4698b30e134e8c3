"""Attention mechanisms, and the blocks that use them."""

from keras_caption.layers.additive_score import AdditiveScore
from keras_caption.layers.area_attention import AreaAttention
from keras_caption.layers.area_memory import AreaMemory
from keras_caption.layers.attention_on_attention import AttentionOnAttention
from keras_caption.layers.attention_pooling import AttentionPooling
from keras_caption.layers.box_encoding import BoxEncoding
from keras_caption.layers.cell_boxes import CellBoxes
from keras_caption.layers.co_attention_block import CoAttentionBlock
from keras_caption.layers.feed_forward import FeedForward
from keras_caption.layers.geometry_aware_self_attention import (
    GeometryAwareSelfAttention,
)
from keras_caption.layers.geometry_bias import (
    GEOMETRIES,
    GeometryBias,
    relative_geometry,
)
from keras_caption.layers.grid_encoding import GridEncoding
from keras_caption.layers.instance_normalization import InstanceNormalization
from keras_caption.layers.length_temperature import LengthTemperature
from keras_caption.layers.matrix_dense import MatrixDense
from keras_caption.layers.multi_head_attention import MultiHeadAttention
from keras_caption.layers.normalized_self_attention import NormalizedSelfAttention
from keras_caption.layers.product_score import ProductScore
from keras_caption.layers.refining_block import RefiningBlock
from keras_caption.layers.sine_position_encoding import SinePositionEncoding
from keras_caption.layers.sockets import NORMS
from keras_caption.layers.transformer_decoder_block import TransformerDecoderBlock
from keras_caption.layers.transformer_encoder_block import TransformerEncoderBlock
from keras_caption.layers.unbiased_layer_normalization import (
    UnbiasedLayerNormalization,
)
from keras_caption.layers.word_embedding import WordEmbedding

__all__ = [
    "GEOMETRIES",
    "NORMS",
    "AdditiveScore",
    "AreaAttention",
    "AreaMemory",
    "AttentionOnAttention",
    "AttentionPooling",
    "BoxEncoding",
    "CellBoxes",
    "CoAttentionBlock",
    "FeedForward",
    "GeometryAwareSelfAttention",
    "GeometryBias",
    "GridEncoding",
    "InstanceNormalization",
    "LengthTemperature",
    "MatrixDense",
    "MultiHeadAttention",
    "NormalizedSelfAttention",
    "ProductScore",
    "RefiningBlock",
    "SinePositionEncoding",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "UnbiasedLayerNormalization",
    "WordEmbedding",
    "relative_geometry",
]
