"""Exports: SavedModels of `keras_caption.serving.export` that hold their model.

`assets.extra/config.json` describes the model, and the checkpoint of the SavedModel has
its weights, in the order of `keras.Model.variables`.
"""

import math
import pathlib
from typing import TYPE_CHECKING

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.faults import reading
from keras_caption.formats.json_files import read_json
from keras_caption.formats.keras_files import (
    JSON_BYTES,
    SavedObject,
    check_config,
    deserialize,
)
from keras_caption.formats.weight_budget import WeightBudget

if TYPE_CHECKING:
    import keras

GRAPH, CONFIG = "saved_model.pb", "assets.extra/config.json"
WEIGHTS = "variables/variables.data-00000-of-00001"
KEY = "model_variables/{}/.ATTRIBUTES/VARIABLE_VALUE"  # of the exported module


def is_export(folder: pathlib.Path) -> bool:
    """Whether a folder holds a SavedModel."""
    return (folder / GRAPH).is_file()


def next_version(folder: pathlib.Path) -> pathlib.Path:
    """Returns the path of a model's next version in the folder of its versions.

    As in TensorFlow Serving, the name of a version is a number, and the greatest number
    is the newest version; the first version is 1.
    """
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    numbers = [int(name) for name in names if name.isascii() and name.isdigit()]
    return folder / str(max(numbers, default=0) + 1)


def read_export(folder: pathlib.Path) -> "keras.Model":
    """Loads the model of an export, which generates the same as the export.

    Args:
        folder: `pathlib.Path` of the SavedModel.

    Returns:
        `keras.Model`, not compiled.

    Raises:
        InputError: If the export holds no single model, such as that of an ensemble, or
            a file is damaged.
    """
    import keras

    from keras_caption.base.keras_overrides import bounded_weights

    with missing_extras():
        import tensorflow as tf
    config, weights = folder / CONFIG, folder / WEIGHTS
    for file in (config, weights):
        if not file.is_file():
            raise InputError(
                f"{folder} is a SavedModel without {file.relative_to(folder)}: only "
                "exports of a single model, by this version or later, can be loaded."
            )
    if config.stat().st_size > max(JSON_BYTES, weights.stat().st_size):
        raise InputError(f"{config} is larger than the weights, and not read.")
    saved = read_json(config, SavedObject)
    check_config(saved, str(config))
    with reading(folder):
        stored = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
        shapes = stored.get_variable_to_shape_map()
        budget = WeightBudget(len(shapes), sum(map(math.prod, shapes.values())))
        with bounded_weights(budget):
            model = deserialize(saved)
        if isinstance(model, keras.Model):
            names = [KEY.format(number) for number in range(len(model.variables))]
            if [shapes.get(n) for n in names] != [[*v.shape] for v in model.variables]:
                raise InputError(
                    f"{weights} has other weights than {config} describes."
                )
            for name, variable in zip(names, model.variables, strict=True):
                variable.assign(stored.get_tensor(name))
    return model
