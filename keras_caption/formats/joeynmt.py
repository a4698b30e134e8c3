"""Training folders of JoeyNMT."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired

import numpy as np
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.checkpoints import read_tensors
from keras_caption.formats.faults import check_file, existing_folder, reading

SPECIAL = "<unk>", "<pad>", "<s>", "</s>"


class Side(TypedDict):
    """The section of the encoder or of the decoder in a configuration."""

    type: str
    num_layers: int
    num_heads: int
    hidden_size: int
    ff_size: int
    embeddings: dict[str, Any]
    dropout: NotRequired[float]
    layer_norm: NotRequired[str]
    activation: NotRequired[str]
    alpha: NotRequired[float]


class Model(TypedDict):
    """The section `model` of a configuration."""

    encoder: Side
    decoder: Side
    initializer: NotRequired[str]
    tied_embeddings: NotRequired[bool]
    tied_softmax: NotRequired[bool]


class JoeyFolder(NamedTuple):
    """The files of a folder.

    Attributes:
        tensors: dict from name to NumPy array.
        model: dict, the section `model` of `config.yaml`.
        source, target: Lists of str, tokens by id.
    """

    tensors: dict[str, np.ndarray]
    model: Mapping[str, Any]
    source: list[str]
    target: list[str]


def read_joeynmt(folder: str | os.PathLike) -> JoeyFolder:
    """Reads a folder that JoeyNMT trained in.

    Args:
        folder: Path. It holds `best.ckpt`, `config.yaml`, `src_vocab.txt` and
            `trg_vocab.txt`.

    Raises:
        InputError: If a file is missing, damaged or has other content.
    """
    with missing_extras():
        import yaml

    folder = existing_folder(folder)
    path = folder / "config.yaml"
    with reading(path):
        content = yaml.safe_load(_read_text(path))
    try:
        model = TypeAdapter(Model).validate_python((content or {}).get("model"))
    except (AttributeError, ValidationError):
        raise InputError(
            f"{path} has no section `model` with a Transformer as encoder and decoder."
        ) from None
    tokens = []
    for name in ("src_vocab.txt", "trg_vocab.txt"):
        tokens.append(_read_text(folder / name).split())
        missing = [token for token in SPECIAL if token not in tokens[-1]]
        if missing:
            raise InputError(f"{folder / name} lacks {missing[0]}.")
    return JoeyFolder(read_tensors(folder / "best.ckpt"), model, *tokens)


def _read_text(path):
    check_file(path)
    with reading(path):
        return path.read_text("utf-8")
