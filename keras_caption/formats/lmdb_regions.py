import io
import itertools
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.apart import Apart
from keras_caption.formats.plain_pickles import PlainUnpickler
from keras_caption.formats.region_lines import counted_regions, decode
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords

DATA = "data.mdb"  # LMDB's file in its folder
KEYS = "keys"  # key of a list of all other keys
MAX_BYTES = 2 * RECORD_BYTES  # of a record: base64 takes four thirds
FIELDS = ("image_h", "image_w", "num_boxes", "boxes", "features")


def open_lmdb(path: str) -> Callable[[bytes | None], Any]:
    """Opens the environment of a folder for reading.

    Returns:
        Function from a key to the size and the first bytes of its value; from `None` to
        all keys.

    Raises:
        InputError: If it is damaged or truncated.
    """
    with missing_extras():
        import lmdb
    environment = lmdb.open(path, readonly=True, lock=False, readahead=False)
    file = pathlib.Path(path) / DATA
    pages = 1 + environment.info()["last_pgno"]
    size, expected = file.stat().st_size, pages * environment.stat()["psize"]
    if size < expected:
        raise InputError(
            f"{file} is truncated: it has {size:,} of {expected:,} bytes. If it is "
            "complete, `mdb_copy -c` rewrites it without unused pages."
        )

    def read(key):
        with environment.begin(buffers=key is not None) as transaction:
            if key is not None:
                content = transaction.get(key)
                return len(content), bytes(content[:MAX_BYTES])
            count = environment.stat()["entries"]
            cursor = transaction.cursor().iternext(keys=True, values=False)
            return [*itertools.islice(cursor, count)]  # a damaged tree has no end

    return read


class LmdbRegions(RegionRecords):
    """Reader of ViLBERT's LMDB, whose records are pickles with image ids as keys.

    A record is a dict of `image_h`, `image_w`, `num_boxes`, and of `boxes`, in pixels,
    and `features`, base64 of float32. The pickles are read as plain data.

    Args:
        path: `pathlib.Path` of the folder.

    Raises:
        InputError: If the folder is damaged.
    """

    @staticmethod
    def open_file(path: pathlib.Path) -> Apart:
        return Apart(open_lmdb, path)

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        for key in self.file(None):
            name = key.decode("utf-8", "replace")
            if name != KEYS:
                where = f"{path}, image {name[:40]}"
                self.add_named(name, key, where)

    def read_regions(
        self, place: bytes, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        length, content = self.file(place)
        if length > MAX_BYTES:
            raise InputError(f"{where} has {length:,} bytes, which is too much.")
        record = PlainUnpickler(io.BytesIO(content)).load()
        height, width, count, *texts = fields_of(record, where)
        boxes, features = (
            decode(text, where, name)
            for text, name in zip(texts, ("boxes", "features"), strict=True)
        )
        return counted_regions(features, boxes, count, (width, height), where)


def fields_of(record: Any, where: str) -> list[Any]:
    """The values of `FIELDS` in a record.

    Raises:
        InputError: If one is missing, or of another type.
    """
    if not isinstance(record, dict):
        raise InputError(f"{where} holds no record of features.")
    for name in FIELDS:
        kinds = (str, bytes) if name in ("boxes", "features") else (int,)
        if not isinstance(record.get(name), kinds):
            raise InputError(f"{where}: its {name} is missing, or of an unknown type.")
    return [record[name] for name in FIELDS]
