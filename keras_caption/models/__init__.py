"""Models of all tasks, and the published configurations of them."""

from keras_caption.models.aoa_decoder import AoADecoder
from keras_caption.models.aoanet import AoANet
from keras_caption.models.attention import AttentionOptions, make_attention
from keras_caption.models.blocks import BlockOptions
from keras_caption.models.captioner import Captioner
from keras_caption.models.classifier import Classifier
from keras_caption.models.classifier_ensemble import ClassifierEnsemble
from keras_caption.models.engine_model import EngineModel
from keras_caption.models.ensemble import Ensemble
from keras_caption.models.grid_transformer import GridTransformer
from keras_caption.models.load_ensemble import load_ensemble
from keras_caption.models.loading import file_of, from_preset, load, upload_preset
from keras_caption.models.lstm_decoder import LSTMDecoder
from keras_caption.models.lstm_translator import LSTMTranslator
from keras_caption.models.mcan import MCAN
from keras_caption.models.ngsan import NGSAN
from keras_caption.models.presets import (
    argument_types,
    arguments,
    create,
    data_arguments,
    decoding,
    presets,
)
from keras_caption.models.seq2seq import Seq2Seq
from keras_caption.models.transformer_decoder import TransformerDecoder
from keras_caption.models.transformer_translator import TransformerTranslator
from keras_caption.models.translator import Translator
from keras_caption.models.updown import UpDown
from keras_caption.models.video_aoanet import VideoAoANet
from keras_caption.models.video_transformer import VideoTransformer

__all__ = [
    "MCAN",
    "NGSAN",
    "AoADecoder",
    "AoANet",
    "AttentionOptions",
    "BlockOptions",
    "Captioner",
    "Classifier",
    "ClassifierEnsemble",
    "EngineModel",
    "Ensemble",
    "GridTransformer",
    "LSTMDecoder",
    "LSTMTranslator",
    "Seq2Seq",
    "TransformerDecoder",
    "TransformerTranslator",
    "Translator",
    "UpDown",
    "VideoAoANet",
    "VideoTransformer",
    "argument_types",
    "arguments",
    "create",
    "data_arguments",
    "decoding",
    "file_of",
    "from_preset",
    "load",
    "load_ensemble",
    "make_attention",
    "presets",
    "upload_preset",
]
