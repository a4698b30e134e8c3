import pathlib

from keras_caption.errors import InputError
from keras_caption.formats.bottom_up_tsv import TsvRegions
from keras_caption.formats.faults import reading
from keras_caption.formats.hdf5_regions import Hdf5Regions
from keras_caption.formats.npz_folder import NpzRegions
from keras_caption.formats.vinvl import VinvlRegions


def open_regions(path):
    """Opens bottom-up attention features, of whatever form a path has.

    | form | what it is |
    |---|---|
    | `*.tsv` | the original: image_id, image_w, image_h, num_boxes, boxes, features |
    | `*.tsv` with `*.lineidx` | VinVL: image id, JSON of num_boxes and features |
    | folder with `*_att/` | the self-critical toolkits': `ID.npz`, `*_box/ID.npy` |
    | `*.h5`, `*.hdf5` | `ID_features` and `ID_boxes` |

    Args:
        path: File or folder.

    Returns:
        `keras_caption.formats.regions.Regions`: its `path`; `ids`, a list of int;
        `wrong`, a list of what is wrong with records whose id cannot be told, or is
        another's; and `read(image_id, size)`, which returns features and boxes.

    Raises:
        InputError: If there is no such file, it has none of these forms, or it
            cannot be read at all. What is wrong with one record, `read` raises.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    with reading(path):
        return reader_for(path)(path)


def reader_for(path):
    """The class that reads a file or folder of region features."""
    if path.is_dir():
        return NpzRegions
    if path.suffix in (".h5", ".hdf5"):
        return Hdf5Regions
    if path.suffix == ".tsv":
        vinvl = path.with_suffix(".lineidx").exists()
        return VinvlRegions if vinvl else TsvRegions
    raise InputError(
        f"{path} should be a .tsv, an .h5, or a folder of .npz files: region features."
    )
