# Written by docs/signatures.py.
from typing import Any, Literal

from keras_caption.models.translator import Translator
from keras_caption.settings.decoding import Decoding
from keras_caption.text import Tokenizer

class TransformerTranslator(Translator):
    source_size: Any
    target_size: Any

    def __init__(
        self,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        source_size: int | None = None,
        target_size: int | None = None,
        num_layers: int = 6,
        decoder_layers: int | None = None,
        model_dim: int = 512,
        num_heads: int = 8,
        feedforward_dim: int = 2048,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        shared_embeddings: bool = False,
        tied_softmax: bool = False,
        logit_bias: bool = False,
        decoder_heads: int | None = None,
        decoder_feedforward_dim: int | None = None,
        decoder_activation: Literal["relu", "swish", "gelu"] | None = None,
        *,
        query_norm: str | None = None,
        key_norm: str | None = None,
        norm_affine: bool = False,
        attention_epsilon: float | None = None,
        score: str | None = None,
        input_area: int = 1,
        output_area: int = 1,
        combined_features: bool = False,
        area_values: Literal["sum", "mean"] = "sum",
        area_output_scale: float | None = None,
        area_layers: int = 2,
        memory: str = "areas",
        gate: str | None = None,
        norm_position: Literal["post", "pre"] = "post",
        norm: Literal["layer", "unbiased"] = "layer",
        norm_epsilon: float = 0.001,
        activation: Literal["relu", "swish", "gelu"] = "relu",
        activation_dropout: float = 0.0,
        initialization: Literal["small", "fairseq", "glorot"] | None = None,
        dtype: Any = None,
        decoding: Decoding | None = None,
        name: str | None = None,
        trainable: bool = True,
    ) -> None: ...
