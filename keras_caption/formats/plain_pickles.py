"""Pickles of plain data, read without executing any of their code."""

import collections
import pickle
import pickletools
from collections.abc import Callable
from typing import Any


class Options(dict):
    """Replaces an `argparse.Namespace`."""

    def __setstate__(self, state):
        self.update(state)


class Skipped:
    """Replaces a NumPy number, such as the best score so far, which is not read."""

    def __init__(self, *parts):
        pass

    def __setstate__(self, state):
        pass


PLAIN = {
    ("argparse", "Namespace"): Options,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("numpy", "dtype"): Skipped,
    ("numpy.core.multiarray", "scalar"): Skipped,
    ("numpy._core.multiarray", "scalar"): Skipped,
    ("_codecs", "encode"): Skipped,  # the bytes of a number
}


def as_list(load: Callable) -> Callable:
    """Wraps the function of an opcode to push a list instead of a tuple."""

    def load_list(unpickler):
        load(unpickler)
        unpickler.stack[-1] = list(unpickler.stack[-1])

    return load_list


DAMAGED = "it is no pickle, or damaged"


class NotPlain(pickle.UnpicklingError):
    """A pickle holds what is not read."""


def check_whole(content: bytes) -> None:
    """Raises `pickle.UnpicklingError` if a pickle is cut: it may claim any memory."""
    try:
        for _ in pickletools.genops(content):
            pass
    except Exception as error:
        raise pickle.UnpicklingError(DAMAGED) from error


class PlainUnpickler(pickle._Unpickler):
    """Reads plain containers and `argparse.Namespace`, and refuses all else.

    `load` raises `pickle.UnpicklingError`, whose message is the end of a sentence.

    NumPy's numbers, of which the authors' code saves one, are skipped. Tuples become
    lists: a nest of the same tuple is small, but the time to hash it doubles with every
    level. The unpickler in Python is used because its memo is a dict; the memo of the
    unpickler in C allocates memory up to its greatest index, which five bytes can set
    to billions.

    Attributes:
        names: dict from module and name to a replacement, for the only names that a
            pickle may contain.
    """

    names = PLAIN

    TUPLES = "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"
    dispatch = pickle._Unpickler.dispatch | {
        code: as_list(pickle._Unpickler.dispatch[code])
        for code in (getattr(pickle, name)[0] for name in TUPLES)
    }

    def find_class(self, module: str, name: str) -> Any:
        module = {"__builtin__": "builtins"}.get(module, module)
        if (module, name) in self.names:
            return self.names[module, name]
        raise NotPlain(f"it holds a {module}.{name}")

    def load(self) -> Any:
        try:
            return super().load()
        except NotPlain:
            raise
        except Exception as error:  # other files raise any, such as KeyError(31)
            raise pickle.UnpicklingError(DAMAGED) from error
