# Written by docs/signatures.py.
import dataclasses
from typing import Any, Literal, overload

from keras_caption.models.aoanet import AoANet
from keras_caption.models.grid_transformer import GridTransformer
from keras_caption.models.lstm_translator import LSTMTranslator
from keras_caption.models.mcan import MCAN
from keras_caption.models.ngsan import NGSAN
from keras_caption.models.task_model import TaskModel
from keras_caption.models.transformer_translator import TransformerTranslator
from keras_caption.models.updown import UpDown
from keras_caption.models.video_aoanet import VideoAoANet
from keras_caption.models.video_transformer import VideoTransformer

@dataclasses.dataclass(frozen=True)
class Preset:
    model: type[TaskModel]
    arguments: dict

BEST_AREAS: dict

PRESETS: dict

def presets(model: type[TaskModel] = TaskModel) -> list[str]: ...
def arguments(name: str) -> dict[str, Any]: ...
def decoding(name: str) -> dict[str, Any]: ...
def argument_types(name: str) -> dict[str, Any]: ...
def data_arguments(name: str) -> list[str]: ...
@overload
def create(
    name: Literal[
        "san",
        "nsan_layer_affine",
        "nsan_batch_affine",
        "nsan_affine",
        "nsan",
        "nsan_key",
        "nsan_query_key",
        "gsan_absolute",
        "gsan_content_independent",
        "gsan_key",
        "gsan",
        "gsan_query_key",
        "gsan_all",
        "ngsan",
        "ngsan_key",
        "gsan_signed",
        "ngsan_signed",
        "ngsan_aoa",
    ],
    **arguments: Any,
) -> NGSAN: ...
@overload
def create(
    name: Literal[
        "aoanet_base",
        "aoanet_refine",
        "aoanet_refine_aoa",
        "aoanet_single_lstm",
        "aoanet_single_aoa",
        "aoanet_single_lstm_aoa",
        "aoanet_multi_linear",
        "aoanet_multi_lstm",
        "aoanet_multi_aoa",
        "aoanet",
    ],
    **arguments: Any,
) -> AoANet: ...
@overload
def create(name: Literal["updown"], **arguments: Any) -> UpDown: ...
@overload
def create(
    name: Literal["area_regular", "area_2x2", "area_3x3", "area", "spatial"],
    **arguments: Any,
) -> GridTransformer: ...
@overload
def create(
    name: Literal["video_transformer", "video_nsa"], **arguments: Any
) -> VideoTransformer: ...
@overload
def create(
    name: Literal["video_base", "video_aoa"], **arguments: Any
) -> VideoAoANet: ...
@overload
def create(
    name: Literal[
        "transformer_tiny",
        "transformer_tiny_area",
        "transformer_tiny_nsa",
        "transformer_tiny_area_nsa",
        "transformer_small",
        "transformer_small_area",
        "transformer_small_nsa",
        "transformer_small_area_nsa",
        "transformer_base",
        "transformer_base_area",
        "transformer_base_nsa",
        "transformer_base_area_nsa",
    ],
    **arguments: Any,
) -> TransformerTranslator: ...
@overload
def create(
    name: Literal[
        "lstm_256",
        "lstm_256_area",
        "lstm_512",
        "lstm_512_area",
        "lstm_1024",
        "lstm_1024_area",
    ],
    **arguments: Any,
) -> LSTMTranslator: ...
@overload
def create(
    name: Literal["mcan", "mcan_gsa", "mcan_gsa_signed"], **arguments: Any
) -> MCAN: ...
@overload
def create(name: str, **arguments: Any) -> Any: ...
