# Written by docs/signatures.py.
from typing import Any, Literal

from keras_caption.features.extractor import Extractor
from keras_caption.inputs import InputKind
from keras_caption.models.captioner import Captioner
from keras_caption.settings.decoding import Decoding
from keras_caption.text import Vocabulary

class UpDown(Captioner):
    ignored_inputs: Any
    vocabulary_size: Any

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: int | None = None,
        region_dim: int = 2048,
        image_vector_dim: int | None = None,
        model_dim: int = 1000,
        embedding_dim: int = 1000,
        attention_dim: int = 512,
        dropout: float = 0.5,
        *,
        input_area: int = 1,
        combined_features: bool = False,
        area_values: Literal["sum", "mean"] = "sum",
        area_output_scale: float | None = None,
        area_layers: int = 2,
        memory: str = "areas",
        dtype: Any = None,
        extractor: Extractor | None = None,
        categories: list[str] | None = None,
        threshold: float = 0.0,
        calibration: list[list[float]] | None = None,
        decoding: Decoding | None = None,
        name: str | None = None,
        trainable: bool = True,
    ) -> None: ...
    @property
    def memory_kind(self) -> InputKind: ...
