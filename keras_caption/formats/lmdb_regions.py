import functools
import io
import pathlib
from typing import Any

import numpy as np

from keras_caption.errors import InputError, missing_extras
from keras_caption.formats.faults import reading
from keras_caption.formats.plain_pickles import PlainUnpickler
from keras_caption.formats.region_lines import counted_regions, decode
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords

DATA = "data.mdb"  # LMDB's file in its folder
KEYS = "keys"  # key of a list of all other keys
FIELDS = ("image_h", "image_w", "num_boxes", "boxes", "features")


@functools.cache  # a process may open an environment once
def open_lmdb(path: pathlib.Path) -> Any:
    """Opens the environment of a folder for reading.

    Raises:
        InputError: If it is damaged or truncated: reading beyond its end would end the
            process.
    """
    with missing_extras():
        import lmdb
    with reading(path):
        environment = lmdb.open(str(path), readonly=True, lock=False, readahead=False)
        pages = 1 + environment.info()["last_pgno"]
    size, expected = (path / DATA).stat().st_size, pages * environment.stat()["psize"]
    if size < expected:
        environment.close()
        raise InputError(
            f"{path / DATA} is truncated: it has {size:,} of {expected:,} bytes. If it "
            "is complete, `mdb_copy -c` rewrites it without unused pages."
        )
    return environment


class LmdbRegions(RegionRecords):
    """Reader of ViLBERT's LMDB, whose records are pickles with image ids as keys.

    A record is a dict of `image_h`, `image_w`, `num_boxes`, and of `boxes`, in pixels,
    and `features`, base64 of float32. The pickles are read as plain data.

    Args:
        path: `pathlib.Path` of the folder.

    Raises:
        InputError: If the folder is damaged.
    """

    open_file = staticmethod(open_lmdb)

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        with reading(path), self.file.begin() as transaction:
            keys = list(transaction.cursor().iternext(keys=True, values=False))
        for key in keys:
            name = key.decode("utf-8", "replace")
            if name != KEYS:
                where = f"{path}, image {name[:40]}"
                self.add_named(name, key, where)

    def read_regions(
        self, place: bytes, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        with self.file.begin() as transaction:
            content = transaction.get(place)
        if len(content) > 2 * RECORD_BYTES:  # base64 takes four thirds
            raise InputError(f"{where} has {len(content):,} bytes, which is too much.")
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
