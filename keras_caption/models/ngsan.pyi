# Written by docs/signatures.py.
from typing import Any, Literal

from keras_caption.features.extractor import Extractor
from keras_caption.models.captioner import Captioner
from keras_caption.settings.decoding import Decoding
from keras_caption.text import Vocabulary

class NGSAN(Captioner):
    ignored_inputs: Any
    vocabulary_size: Any

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: int | None = None,
        region_dim: int = 2048,
        num_layers: int = 4,
        decoder_layers: int | None = None,
        model_dim: int = 512,
        num_heads: int = 8,
        feedforward_dim: int = 2048,
        dropout: float = 0.1,
        region_dropout: float | None = None,
        *,
        query_norm: str | None = None,
        key_norm: str | None = None,
        norm_affine: bool = False,
        attention_epsilon: float | None = None,
        score: str | None = None,
        geometry: str | None = None,
        geometry_dim: int = 80,
        geometry_layers: int | None = None,
        signed_geometry: bool = False,
        input_area: int = 1,
        output_area: int = 1,
        combined_features: bool = False,
        area_values: Literal["sum", "mean"] = "sum",
        area_output_scale: float | None = None,
        area_layers: int = 2,
        memory: str = "areas",
        temperature: str | None = None,
        output_length: int | None = 15,
        gate: str | None = None,
        norm_position: Literal["post", "pre"] = "post",
        norm: Literal["layer", "unbiased"] = "layer",
        norm_epsilon: float = 0.001,
        activation: Literal["relu", "swish", "gelu"] = "relu",
        activation_dropout: float = 0.0,
        initialization: Literal["small", "fairseq", "glorot"] | None = None,
        dtype: Any = None,
        extractor: Extractor | None = None,
        categories: list[str] | None = None,
        threshold: float = 0.0,
        calibration: list[list[float]] | None = None,
        decoding: Decoding | None = None,
        name: str | None = None,
        trainable: bool = True,
    ) -> None: ...
