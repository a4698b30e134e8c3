# Written by docs/signatures.py.
from typing import Any, Literal

from keras_caption.models.translator import Translator
from keras_caption.settings.decoding import Decoding
from keras_caption.text import Tokenizer

class LSTMTranslator(Translator):
    source_size: Any
    target_size: Any

    def __init__(
        self,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        source_size: int | None = None,
        target_size: int | None = None,
        num_layers: int = 2,
        model_dim: int = 512,
        dropout: float = 0.1,
        num_heads: int = 1,
        projected: Literal["all", "keys"] = "all",
        reversed_source: bool = False,
        first_states: Literal["mean", "last"] = "mean",
        *,
        score: str | None = None,
        input_area: int = 1,
        combined_features: bool = False,
        area_values: Literal["sum", "mean"] = "sum",
        area_output_scale: float | None = None,
        area_layers: int = 2,
        memory: str = "areas",
        dtype: Any = None,
        decoding: Decoding | None = None,
        name: str | None = None,
        trainable: bool = True,
    ) -> None: ...
