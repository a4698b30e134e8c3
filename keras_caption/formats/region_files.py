import os
import pathlib

from keras_caption.base.errors import InputError
from keras_caption.formats.array_files import (
    SAFETENSORS,
    ArrayRegions,
    SafetensorsRegions,
    has_arrays,
)
from keras_caption.formats.bottom_up_tsv import TsvRegions
from keras_caption.formats.faults import reading
from keras_caption.formats.grit_hdf5 import GritRegions, is_grit
from keras_caption.formats.hdf5_regions import Hdf5Regions
from keras_caption.formats.lmdb_regions import DATA, LmdbRegions
from keras_caption.formats.mcan_npz import McanRegions
from keras_caption.formats.npz_folder import NpzRegions
from keras_caption.formats.regions import RegionRecords
from keras_caption.formats.suffixes import suffix_of
from keras_caption.formats.vinvl import VinvlRegions


def open_regions(path: str | os.PathLike) -> RegionRecords:
    """Opens bottom-up attention features in any of the supported formats.

    | path | format |
    |---|---|
    | `*.tsv` | the original: image_id, image_w, image_h, num_boxes, boxes, features |
    | `*.tsv` | LXMERT's, with ten fields |
    | `*.tsv` with `*.lineidx` | VinVL: image id, JSON of num_boxes and features |
    | folder with `*_att/` | self-critical toolkits: `ID.npz`, and `*_box/ID.npy` |
    | folder | MCAN and OpenVQA: `ID.npz` with `x` and `bbox`, at any depth |
    | folder | `ID.npy`, `.npz`, `.safetensors` or `.pth`, of one array each |
    | folder with `data.mdb` | ViLBERT's LMDB |
    | `*.safetensors` | an array for each id |
    | `*.h5`, `*.hdf5` | `ID_features` and `ID_boxes`, or `ID_grids` |
    | `*.h5`, `*.hdf5` | GRIT: `image_ids`, `gri_feat` and `gri_mask` |

    Args:
        path: Path of a file or folder.

    Returns:
        `keras_caption.formats.regions.RegionRecords`, with `ids`, a list of int or str,
        and `read(image_id, size)`, which returns features and boxes.

    Raises:
        InputError: If the file is missing, has none of these formats, or cannot be
            read. A fault of a single record is raised by `read`.
    """
    path = pathlib.Path(path)
    if not (path.is_file() or path.is_dir()):
        raise InputError(f"There is no file or folder {path}.")
    with reading(path):
        return reader_for(path)(path)


def reader_for(path: pathlib.Path) -> type[RegionRecords]:
    """Chooses the reader of a file or folder of region features."""
    if path.is_dir():
        has_att = any(f.name.endswith("_att") and f.is_dir() for f in path.iterdir())
        if has_att:
            return NpzRegions
        if (path / DATA).is_file():
            return LmdbRegions
        return ArrayRegions if has_arrays(path) else McanRegions
    suffix = suffix_of(path)
    if suffix in (".h5", ".hdf5"):
        return GritRegions if is_grit(path) else Hdf5Regions
    if suffix == SAFETENSORS:
        return SafetensorsRegions
    if suffix == ".tsv":
        vinvl = path.with_suffix(".lineidx").is_file()
        return VinvlRegions if vinvl else TsvRegions
    raise InputError(
        f"{path} should be a .tsv, an .h5, a .safetensors, or a folder, such as one of "
        ".npz or .npy files: region features."
    )
