# Written by docs/signatures.py.
from typing import Any, Literal

from keras_caption.features.extractor import Extractor
from keras_caption.models.captioner import Captioner
from keras_caption.settings.decoding import Decoding
from keras_caption.text import Vocabulary

class VideoAoANet(Captioner):
    vocabulary_size: Any

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: int | None = None,
        frame_dim: int = 2048,
        num_layers: int = 1,
        model_dim: int = 1024,
        embedding_dim: int = 1024,
        context: str = "aoa",
        decoder_heads: int = 8,
        dropout: float = 0.5,
        attention_dropout: float | None = 0.1,
        *,
        score: str | None = None,
        input_area: int = 1,
        combined_features: bool = False,
        area_values: Literal["sum", "mean"] = "sum",
        area_output_scale: float | None = None,
        area_layers: int = 2,
        memory: str = "areas",
        temperature: str | None = None,
        dtype: Any = None,
        extractor: Extractor | None = None,
        categories: list[str] | None = None,
        threshold: float = 0.0,
        calibration: list[list[float]] | None = None,
        decoding: Decoding | None = None,
        name: str | None = None,
        trainable: bool = True,
    ) -> None: ...
