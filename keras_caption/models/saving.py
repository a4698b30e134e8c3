"""Saves models as presets: folders in the format of model hubs."""

import json
import os
import pathlib

import keras

from keras_caption.base.atomic import replacing
from keras_caption.base.errors import missing_extras
from keras_caption.formats.preset_files import CONFIG, PRESET_FILES, without_asset
from keras_caption.models.cards import write_card
from keras_caption.text import Tokenizer


def save_preset(model: keras.Model, folder: str | os.PathLike) -> None:
    """Saves a model as a preset, see `TaskModel.save_to_preset`."""
    with missing_extras():
        from keras_hub.src.utils.preset_utils import get_preset_saver

    with replacing(folder, PRESET_FILES) as partial:
        saver = get_preset_saver(str(partial))
        # One file of weights, in which `file_of` finds them all.
        saver.save_backbone(model.without_optimizer(), max_shard_size=None)
        _move_vocabularies(model, partial)
        write_card(partial, model, replaced=folder)


def _move_vocabularies(model: keras.Model, folder: pathlib.Path) -> None:
    """Moves vocabularies of tokenizers from the config to separate files."""
    path = folder / CONFIG
    saved = json.loads(path.read_text(encoding="utf-8"))
    for name, value in saved["config"].items():
        tokenizer = getattr(model, name, None)
        if isinstance(tokenizer, Tokenizer) and tokenizer.asset:
            asset, content = without_asset(name, value, tokenizer.asset)
            (folder / asset).parent.mkdir(parents=True, exist_ok=True)
            (folder / asset).write_bytes(content)
    path.write_text(json.dumps(saved, indent=4), encoding="utf-8")
