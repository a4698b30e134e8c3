"""`config.json` of a finished run whose model is to be scored on other data."""

from typing import NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict

from keras_caption.formats.json_files import read_json


class Decoding(TypedDict):
    beam_size: int
    max_length: int
    length_penalty: float


class Groups(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")
    decoding: Decoding


class TrainedRun(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")
    dataset: str
    data_dir: NotRequired[str | None]
    config: Groups


def read_trained_run(folder):
    """Reads what a run was configured as: all that its `config.json` holds.

    Args:
        folder: `pathlib.Path` of the run.

    Returns:
        dict.

    Raises:
        InputError: If the file is missing or wrong.
    """
    return read_json(folder / "config.json", TrainedRun)
