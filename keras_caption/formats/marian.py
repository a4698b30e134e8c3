"""Folders of Hugging Face's MarianMT."""

import os
from typing import NamedTuple

import numpy as np
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.checkpoints import read_tensors
from keras_caption.formats.faults import check_file, existing_folder, reading
from keras_caption.formats.json_files import read_json


class Config(TypedDict):
    model_type: str
    d_model: int
    encoder_layers: int
    decoder_layers: int
    encoder_attention_heads: int
    decoder_attention_heads: int
    encoder_ffn_dim: int
    decoder_ffn_dim: int
    activation_function: str
    dropout: float
    attention_dropout: float
    activation_dropout: float
    scale_embedding: bool
    pad_token_id: int
    eos_token_id: int
    decoder_start_token_id: int


class Flags(TypedDict, total=False):
    """Options that few configurations have."""

    share_encoder_decoder_embeddings: bool
    tie_word_embeddings: bool
    normalize_before: bool
    normalize_embedding: bool
    add_final_layer_norm: bool


class MarianFolder(NamedTuple):
    """The files of a folder.

    Attributes:
        tensors: dict from name to NumPy array.
        config: dict, `config.json`.
        ids: dict from piece to id, `vocab.json`.
        source, target: bytes, the SentencePiece models.
    """

    tensors: dict[str, np.ndarray]
    config: dict
    ids: dict[str, int]
    source: bytes
    target: bytes


class Kind(TypedDict):
    model_type: str


def read_marian(folder: str | os.PathLike) -> MarianFolder:
    """Reads a folder that `MarianMTModel.save_pretrained` wrote, and its tokenizer.

    Args:
        folder: Path. It holds `config.json`, `vocab.json`, `source.spm`, `target.spm`
            and `model.safetensors` or `pytorch_model.bin`.

    Raises:
        InputError: If a file is missing, damaged or has other content.
    """
    folder = existing_folder(folder)
    path = folder / "config.json"
    kind = read_json(path, Kind)["model_type"]
    if kind != "marian":
        raise InputError(f"{path} is of model_type {kind!r:.60}, not 'marian'.")
    config = {**read_json(path, Config), **read_json(path, Flags)}
    weights = [folder / name for name in ("model.safetensors", "pytorch_model.bin")]
    existing = [path for path in weights if path.exists()]
    if not existing:
        raise InputError(f"{folder} has no model.safetensors and no pytorch_model.bin.")
    return MarianFolder(
        read_tensors(existing[0]),
        config,
        read_json(folder / "vocab.json", dict[str, int]),
        _read_pieces(folder / "source.spm"),
        _read_pieces(folder / "target.spm"),
    )


def _read_pieces(path):
    """Reads and checks the bytes of a SentencePiece model."""
    from sentencepiece import SentencePieceProcessor

    check_file(path)
    with reading(path):
        content = path.read_bytes()
        if not SentencePieceProcessor(model_proto=content).get_piece_size():
            raise ValueError("it is empty")
        return content
