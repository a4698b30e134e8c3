from typing import Unpack

import keras

from keras_caption.base.arguments import KerasOptions, Tensor
from keras_caption.base.configs import ConfiguredLayer
from keras_caption.layers.feed_forward import BLOCK_NORMS, FeedForward


class BlockKeywords(KerasOptions, total=False):
    """Keywords of every Transformer block, which `FeedForward` describes."""

    norm_position: str
    norm: str
    norm_epsilon: float
    activation: str
    activation_dropout: float


class TransformerBlock(ConfiguredLayer):
    """Base class of Transformer encoder and decoder blocks.

    It holds the feed-forward part, and decides where branches are normalized:
    post-norm, as in the paper, or pre-norm, as in tensor2tensor. A pre-norm block does
    not normalize its output: a model normalizes that of the last block.

    Args:
        feedforward_dim: int, size of the hidden layer of the feed-forward part.
        dropout: float, dropout rate of all residual branches. Defaults to 0.1.
        kernel_initializer: Keras initializer, or its name, of the feed-forward part.
            Defaults to `"glorot_uniform"`.
        norm_position, norm, norm_epsilon, activation, activation_dropout: See
            `FeedForward`; the first three apply to attention branches too.
    """

    def __init__(
        self,
        feedforward_dim: int,
        dropout: float = 0.1,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        *,
        norm_position: str = "post",
        norm: str = "layer",
        norm_epsilon: float = 1e-3,
        activation: str = "relu",
        activation_dropout: float = 0.0,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.kernel_initializer = kernel_initializer
        self.norm_position = norm_position
        self.norm = norm
        self.norm_epsilon = norm_epsilon
        self.activation = activation
        self.activation_dropout = activation_dropout

    def make_norm(self) -> keras.layers.Layer:
        """Makes the norm of a branch."""
        return BLOCK_NORMS[self.norm](self.norm_epsilon, dtype=self.dtype_policy)

    def make_dropout(self) -> keras.layers.Layer:
        """Makes the dropout of a branch."""
        return keras.layers.Dropout(self.dropout, dtype=self.dtype_policy)

    def make_feedforward(self) -> FeedForward:
        """Makes the feed-forward part."""
        return FeedForward(
            self.feedforward_dim,
            self.dropout,
            self.kernel_initializer,
            self.norm_position,
            self.norm,
            self.norm_epsilon,
            self.activation,
            self.activation_dropout,
            dtype=self.dtype_policy,
        )

    def before(self, norm: keras.layers.Layer, x: Tensor) -> Tensor:
        """Returns the input of a branch, normalized if pre-norm."""
        return norm(x) if self.norm_position == "pre" else x

    def after(self, norm: keras.layers.Layer, x: Tensor) -> Tensor:
        """Returns the sum of a branch and its input, normalized if post-norm."""
        return x if self.norm_position == "pre" else norm(x)
