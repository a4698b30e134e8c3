"""Options of Transformer blocks around attention, keywords of every Transformer."""

import dataclasses
from typing import Any, Literal, TypedDict

import keras

from keras_caption.base.arguments import Positive, ShareBelowOne
from keras_caption.layers.feed_forward import BLOCK_NORMS
from keras_caption.models.initializers import INITIALIZATIONS, Kernels
from keras_caption.models.options import Options

Activation = Literal["relu", "swish", "gelu"]
Initialization = Literal["small", "fairseq", "glorot"]  # keys of `INITIALIZATIONS`
DEFAULT = "small"


class Blocks(TypedDict, total=False):
    """Options of Transformer blocks; `BlockOptions` describes each."""

    norm_position: Literal["post", "pre"]
    norm: Literal["layer", "unbiased"]
    norm_epsilon: Positive
    activation: Activation
    activation_dropout: ShareBelowOne
    initialization: Initialization | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockOptions(Options):
    """Options of Transformer blocks beside attention, keywords of every Transformer.

    Attributes:
        norm_position: str, position of the norms. `"post"`, the default, normalizes
            the sum of branch and residual, as in the Transformer's paper; `"pre"`
            normalizes the input of each branch, as in tensor2tensor, and the output of
            the last block.
        norm: str, kind of layer normalization. `"unbiased"` divides by the unbiased
            standard deviation, as the released code of AoANet and Luo's toolkit do; the
            default is `"layer"`.
        norm_epsilon: float, number that `"layer"` adds to the variance.
        activation: str, activation of the feed-forward layers.
        activation_dropout: float, dropout rate after the activation.
        initialization: str, initializers of the kernels. `"fairseq"`, the default of
            translators, has those of fairseq. `"small"`, the default of models that
            read images, is ours: fairseq's, with the output projection of attention
            multiplied by 1/3. `"glorot"` is Keras's default of each kernel.
    """

    norm_position: Literal["post", "pre"] = "post"
    norm: Literal["layer", "unbiased"] = "layer"
    norm_epsilon: Positive = 1e-3
    activation: Activation = "relu"
    activation_dropout: ShareBelowOne = 0.0
    initialization: Initialization | None = None

    @property
    def kernels(self) -> Kernels:
        """Initializers of the kernels of a block."""
        return INITIALIZATIONS[self.initialization or DEFAULT]

    def for_block(self) -> dict[str, Any]:
        """Keywords of `keras_caption.layers.TransformerBlock`."""
        options = dataclasses.asdict(self)
        del options["initialization"]
        return {"kernel_initializer": self.kernels.feedforward, **options}

    def final_norm(self, name: str, dtype: Any) -> keras.layers.Layer | None:
        """The norm after the last pre-norm block; `None` for post-norm blocks."""
        if self.norm_position == "post":
            return None
        return BLOCK_NORMS[self.norm](self.norm_epsilon, dtype=dtype, name=name)
