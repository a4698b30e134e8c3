"""What the self-critical toolkits save beside a checkpoint, a pickle."""

import collections
import io
import pathlib
import pickle
import pickletools

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from keras_caption.errors import InputError
from keras_caption.formats.faults import reading
from keras_caption.formats.json_files import read_json

INFOS_BYTES = 64 * 2**20


class Infos(TypedDict):
    """Words by index, as text from "1" on; and what the model was trained with."""

    vocab: dict[str, str]
    opt: dict[str, object]


class Options(dict):
    """What is read in place of an `argparse.Namespace`."""

    def __setstate__(self, state):
        self.update(state)


class Skipped:
    """What is read in place of a NumPy number, such as the best score so far."""

    def __init__(self, *parts):
        pass

    def __setstate__(self, state):
        pass


# All that a pickle may name, and what it gets.
PLAIN = {
    ("argparse", "Namespace"): Options,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("numpy", "dtype"): Skipped,
    ("numpy.core.multiarray", "scalar"): Skipped,
    ("numpy._core.multiarray", "scalar"): Skipped,
    ("_codecs", "encode"): Skipped,  # of a number's bytes
}


def as_list(load):
    """An opcode's function that leaves a list on the stack in place of a tuple."""

    def load_list(unpickler):
        load(unpickler)
        unpickler.stack[-1] = list(unpickler.stack[-1])

    return load_list


class PlainUnpickler(pickle._Unpickler):
    """Reads plain containers and `argparse.Namespace`, and refuses all else.

    Only NumPy's numbers are neither made nor refused: the authors' code saves one.
    Tuples become lists: tuples of the same tuples take no room, but to hash them
    takes time that doubles with each. The memo of the module's unpickler in C has
    room up to its greatest index, which five bytes can set to billions; this one's
    is a dict.
    """

    TUPLES = "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"
    dispatch = pickle._Unpickler.dispatch | {
        code: as_list(pickle._Unpickler.dispatch[code])
        for code in (getattr(pickle, name)[0] for name in TUPLES)
    }

    def find_class(self, module, name):
        module = {"__builtin__": "builtins"}.get(module, module)
        if (module, name) in PLAIN:
            return PLAIN[module, name]
        raise pickle.UnpicklingError(f"it holds a {module}.{name}")


def read_infos(path):
    """Reads what the self-critical toolkits save beside a checkpoint.

    Args:
        path: `infos_*.pkl`, or the same as JSON: `{"vocab": {"1": "a", ...},
            "opt": {"rnn_size": 1024, ...}}`.

    Returns:
        A pair: words, a list of str, the first of which has index 1; and options, a
        dict.

    Raises:
        InputError: If the file is missing, is neither, holds anything but plain
            data, or lacks the vocabulary or the options.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    infos = read_json(path, Infos) if path.suffix == ".json" else read_pickle(path)
    by_index = infos["vocab"]
    indices = [str(index) for index in range(1, len(by_index) + 1)]
    for index in indices:
        if index not in by_index:
            raise InputError(
                f"{path}: vocab has {len(by_index)} words, but none at index {index}."
            )
    options = {name: plain(value) for name, value in infos["opt"].items()}
    return [by_index[index] for index in indices], options


def read_pickle(path):
    """Infos out of a pickle, none of whose code runs.

    Raises:
        InputError: If the file is larger than `INFOS_BYTES`, is no pickle, holds
            anything but plain data, or no infos.
    """
    if path.stat().st_size > INFOS_BYTES:
        raise InputError(f"{path} is larger than {INFOS_BYTES:,} bytes: no infos.")
    content = path.read_bytes()
    with reading(path):
        for _ in pickletools.genops(content):  # raises where data are cut short
            pass
        infos = PlainUnpickler(io.BytesIO(content), encoding="latin1").load()
    try:
        return TypeAdapter(Infos).validate_python(infos, strict=True)
    except ValidationError:  # whose text could be of any length
        raise InputError(
            f"{path} holds no infos: `vocab`, a dict from index to word, and `opt`."
        ) from None


def plain(value):
    """An option's value, or the name of its type where that is no plain one."""
    is_plain = isinstance(value, (str, float, bool, type(None))) or (
        isinstance(value, int) and abs(value) < 2**63
    )
    return value if is_plain else type(value).__name__
