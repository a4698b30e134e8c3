"""Base class of the readers of features: records by the id of an image or video."""

import pathlib
from collections.abc import Hashable
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import reading
from keras_caption.formats.fields import nfc


class FeatureRecords:
    """The records of a file or folder of features; an id may have several.

    A subclass fills `records` in its constructor, and implements `read_record`.

    Args:
        path: `pathlib.Path` of the file or folder.

    Attributes:
        path: `pathlib.Path` of the file or folder.
        file: What `open_file` returns.
        records: dict from id, see `keras_caption.formats.fields.nfc`, to a list of
            pairs of the location of a record and its name in messages.
        problems: List of str, a sentence for each record without a valid id.
        notes: List of str, sentences about content that is ignored on purpose.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.file = self.open_file(path)
        self.records: dict[Hashable, list[tuple[Any, str]]] = {}
        self.problems: list[str] = []
        self.notes: list[str] = []

    @staticmethod
    def open_file(path: pathlib.Path) -> Any:
        """Opens the file, which stays open, if the format is read from an open one."""

    def __getstate__(self):  # an open file cannot be pickled
        return {**self.__dict__, "file": None}

    def __setstate__(self, state):
        self.__dict__.update(state, file=self.open_file(state["path"]))

    def __len__(self):
        """Number of records, those without a valid id included."""
        return sum(map(len, self.records.values())) + len(self.problems)

    def __contains__(self, id_: Hashable) -> bool:
        return nfc(id_) in self.records

    @property
    def ids(self) -> list:
        """Ids of the records, in the order of the file."""
        return list(self.records)

    def add(self, id_: Hashable, place: Any, where: str) -> None:
        """Adds a record.

        Args:
            id_: int or str, of the image or video.
            place: Location of the record, for `read_record`.
            where: str, name of the record in messages.
        """
        self.records.setdefault(nfc(id_), []).append((place, where))

    def read(self, id_: Hashable, *size: Any) -> Any:
        """Reads the features of an image or video.

        If there are several records, the first readable one counts: features written by
        several processes often have a broken record and, later, a good one.

        Args:
            id_: int or str, one of the `ids`.
            *size: Further arguments of `read_record`.

        Raises:
            InputError: If no record can be read; the error is that of the first.
        """
        errors = []
        for place, where in self.records[nfc(id_)]:
            try:
                return self.read_checked(place, where, *size)
            except InputError as error:
                errors.append(error)
        raise errors[0]

    def read_checked(self, place: Any, where: str, *size: Any) -> Any:
        """Reads a record; any error is an `InputError` that names it."""
        with reading(where):
            return self.read_record(place, where, *size)

    def read_record(self, place: Any, where: str, *size: Any) -> Any:
        """Reads and checks a record.

        Args:
            place: Location of the record, as given to `add`.
            where: str, name of the record in messages.
            *size: Further arguments of a kind of reader, such as the image's size.
        """
        raise NotImplementedError
