"""`.keras` files, checked completely before Keras loads them."""

import collections
import io
import os
import pathlib
import re
from typing import TYPE_CHECKING, Any, BinaryIO

import h5py
from pydantic import ConfigDict
from typing_extensions import TypedDict

import keras_caption
from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import open_zip
from keras_caption.formats.faults import reading
from keras_caption.formats.hdf5 import plain_dataset
from keras_caption.formats.json_files import parse_json
from keras_caption.formats.weight_budget import WeightBudget

if TYPE_CHECKING:
    import keras

CONFIG, METADATA, WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
# Greatest size of a JSON member, or the size of the file if that is greater: Keras does
# not compress members, so that what it saved is never larger than its file.
JSON_BYTES = 16 * 2**20
# Greatest numbers of layers in a configuration, for each class of models: Keras takes a
# millisecond to make a layer, and adding one to a Sequential takes time for all others.
LAYERS, SEQUENTIAL_LAYERS = 5000, 128
# Functions of this module of Keras download weights; our layers do not need them.
ONLINE = "keras.applications"
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://")


class SavedObject(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    module: str | None
    class_name: str
    config: dict[str, object]


def load_keras(path: str | os.PathLike) -> "keras.Model":
    """Loads a saved Keras model, in Keras's safe mode and without going online.

    The whole file is read and checked first, because Keras allocates gigabytes if a
    small file claims them.

    Args:
        path: Path of a `.keras` file.

    Returns:
        `keras.Model`.

    Raises:
        InputError: If the file is missing, damaged or claims too much memory, or
            Keras cannot load a model from it.
    """
    import keras

    from keras_caption.base.keras_overrides import bounded_weights

    keras_caption.register()  # the process may have imported a part only
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"There is no saved model {path}.")
    if path.suffix != ".keras":  # in lower case, as Keras needs it
        raise InputError(f"{path} should end in .keras: a saved model.")
    with reading(path):
        budget = check(path)
        try:
            with bounded_weights(budget):
                return keras.models.load_model(path, safe_mode=True)
        except InputError as error:  # from a layer of ours, without the path
            raise ValueError(str(error)) from None


def check(path: pathlib.Path) -> WeightBudget:
    """Refuses damaged files, and files that claim too much memory.

    Returns:
        `WeightBudget` of the weights in the file.
    """
    with open_zip(path) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        limit = max(JSON_BYTES, path.stat().st_size)
        for name in (CONFIG, METADATA, WEIGHTS):
            if name not in sizes:
                raise InputError(f"{path} has no {name}: it is not a saved model.")
        for name in (CONFIG, METADATA):
            if sizes[name] > limit:
                raise InputError(
                    f"{path}: {name} takes {sizes[name]:,} bytes; at most "
                    f"{limit:,} are read."
                )
        # Reading a member to its end verifies its checksum.
        parse_json(archive.read(METADATA), dict, f"{path}, {METADATA}")
        config = archive.read(CONFIG)
        saved = parse_json(config, SavedObject, f"{path}, {CONFIG}")
        check_config(saved, f"{path}, {CONFIG}")
        weights = io.BytesIO(archive.read(WEIGHTS))
        budget = check_weights(weights, sizes[WEIGHTS], f"{path}, {WEIGHTS}")
        for name in sizes.keys() - {CONFIG, METADATA, WEIGHTS}:
            with archive.open(name) as file:
                while file.read(2**20):
                    pass
    return budget


def deserialize(saved: dict[str, Any]) -> Any:
    """Builds the object of a checked configuration, of any class, without weights."""
    import keras

    keras_caption.register()
    try:
        return keras.saving.deserialize_keras_object(saved)
    except InputError as error:  # from a layer of ours, without the file
        raise ValueError(str(error)) from None


def check_config(saved: dict[str, Any], where: str) -> None:
    """Refuses unsafe configurations, see `check_offline` and `count_layers`.

    Args:
        saved: dict, a serialized object.
        where: str, name of the file in messages.
    """
    check_offline(saved, where)
    for kind, count in count_layers(saved).items():
        most = SEQUENTIAL_LAYERS if kind == "Sequential" else LAYERS
        if count > most:
            raise InputError(
                f"{where} lists {count:,} layers of {kind}; at most {most:,} are built."
            )


def count_layers(config: Any) -> collections.Counter:
    """Counts the layers that a configuration lists, by the class that lists them."""
    counts: collections.Counter[str] = collections.Counter()
    waiting = [config]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
            arguments = value.get("config")
            layers = arguments.get("layers") if isinstance(arguments, dict) else None
            if isinstance(layers, list):
                counts[str(value.get("class_name"))[:40]] += len(layers)
        elif isinstance(value, list):
            waiting += value
    return counts


def check_offline(config: Any, where: str) -> None:
    """Refuses addresses, and functions that could download files.

    An address that is an argument of an object may be opened: Keras's `StringLookup`
    reads its vocabulary from an address. In a list of strings, an address is a word of
    a vocabulary or an answer.
    """
    if isinstance(config, str) and ADDRESS.match(config):
        raise InputError(f"{where} has the address {config[:60]}.")
    if isinstance(config, dict):
        module = config.get("module")
        if isinstance(module, str) and ONLINE in module.replace(".src.", "."):
            raise InputError(f"{where} names a function of {module}.")
        for key, value in config.items():
            if key == "config" and "class_name" in config:
                value = without_texts(value)
            check_offline(value, where)
    elif isinstance(config, list):
        for value in config:
            check_offline(value, where)


def without_texts(arguments: Any) -> Any:
    """Returns the arguments of an object that are not lists of strings."""
    if not isinstance(arguments, dict):
        return arguments
    return {name: x for name, x in arguments.items() if not is_texts(x)}


def is_texts(value: Any) -> bool:
    """Returns whether a value of a configuration is a list of strings."""
    return isinstance(value, list) and all(isinstance(x, str) for x in value)


def check_weights(
    weights: BinaryIO | pathlib.Path, size: int, where: str
) -> WeightBudget:
    """Refuses weights stored in other files or larger than their file.

    Args:
        weights: Path of an HDF5 file, or the file.
        size: int, number of bytes of the file.
        where: str, name of the file in messages.

    Returns:
        `WeightBudget` of the weights in the file.
    """
    sizes = []
    with h5py.File(weights, "r") as file:

        def refuse_link(name, link):
            if not isinstance(link, h5py.HardLink):
                raise InputError(f"{where}: {name} is a link, not a dataset.")

        def visit(name, item):
            if isinstance(item, h5py.Dataset) and item.size:
                parent, _, child = name.rpartition("/")
                plain_dataset(file[parent or "/"], child, where, size)
                sizes.append(item.size)

        file.visititems_links(refuse_link)
        file.visititems(visit)  # it does not follow links
    return WeightBudget(len(sizes), sum(sizes))
