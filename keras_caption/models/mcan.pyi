# Written by docs/signatures.py.
import os
from typing import Any, Literal

from jaxtyping import Float32

from keras_caption.arguments import Tensor
from keras_caption.features.extractor import Extractor
from keras_caption.models.classifier import Classifier
from keras_caption.text import Tokenizer

class MCAN(Classifier):
    ignored_inputs: Any
    question_size: Any

    def __init__(
        self,
        answers: list[str],
        question: Tokenizer | None = None,
        question_size: int | None = None,
        region_dim: int = 2048,
        num_layers: int = 6,
        model_dim: int = 512,
        num_heads: int = 8,
        feedforward_dim: int = 2048,
        embedding_dim: int = 300,
        pooling_dim: int = 512,
        fusion_dim: int = 1024,
        dropout: float = 0.1,
        multi_label: bool = True,
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
        combined_features: bool = False,
        area_values: Literal["sum", "mean"] = "sum",
        area_output_scale: float | None = None,
        area_layers: int = 2,
        memory: str = "areas",
        temperature: str | None = None,
        gate: str | None = None,
        dtype: Any = None,
        extractor: Extractor | None = None,
        categories: list[str] | None = None,
        threshold: float | dict[Literal["yes/no", "number", "other"], float] = 0.0,
        recall: dict[str, float] | None = None,
        calibration: list[list[float]] | None = None,
        name: str | None = None,
        trainable: bool = True,
    ) -> None: ...
    def attention(self, inputs: dict[str, Tensor]) -> Float32[Tensor, "batch N T"]: ...
    def load_word_vectors(self, path: str | os.PathLike) -> int: ...
