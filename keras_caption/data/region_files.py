"""Bottom-up attention features, in the files that people have them in."""

import base64
import itertools
import json
import pathlib

import numpy as np

from keras_caption.errors import InputError

TSV_FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")


def open_regions(path):
    """Region features of whatever form a path has.

    | form | what it is |
    |---|---|
    | `*.tsv` | the original: image_id, image_w, image_h, num_boxes, boxes, features |
    | `*.tsv` with `*.lineidx` | VinVL: image id, JSON of num_boxes and features |
    | folder with `*_att/` | the self-critical toolkits': `ID.npz`, `*_box/ID.npy` |
    | `*.h5`, `*.hdf5` | `ID_features` and `ID_boxes` |

    Args:
        path: File or folder.

    Returns:
        An object with its `path`; `ids`, a list of int; `wrong`, a list of what is
        wrong with records whose id cannot be told, or is another's; and
        `read(image_id, size)`, which returns features, float32 `(N, D)`, and boxes,
        float32 `(N, 4)`, x1, y1, x2, y2 divided by the image's width and height.
        `size`, width and height in pixels, is needed where the files do not tell.

    Raises:
        InputError: If there is no such file, or it has none of these forms.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    if path.is_dir():
        return NpzRegions(path)
    if path.suffix in (".h5", ".hdf5"):
        return Hdf5Regions(path)
    if path.suffix == ".tsv":
        vinvl = path.with_suffix(".lineidx").exists()
        return VinvlRegions(path) if vinvl else TsvRegions(path)
    raise InputError(
        f"{path} should be a .tsv, an .h5, or a folder of .npz files: region features."
    )


def check(features, boxes, where):
    """Features and boxes as float32, if they are what they should be.

    Raises:
        InputError: If they differ in number, or something is not finite, or a box is
            empty or not within the image.
    """
    features, boxes = (np.asarray(x, "float32") for x in (features, boxes))
    if features.ndim != 2 or boxes.shape != (len(features), 4):
        raise InputError(
            f"{where} has features of shape {features.shape} and boxes of shape "
            f"{boxes.shape}; they should be (N, D) and (N, 4)."
        )
    if not len(features):
        raise InputError(f"{where} has no regions.")
    if not np.isfinite(features).all():
        raise InputError(f"{where} has features that are not finite.")
    within = (boxes >= -0.01).all() and (boxes <= 1.01).all()
    if not (np.isfinite(boxes).all() and within):
        raise InputError(f"{where} has boxes that reach out of the image.")
    return features, np.clip(boxes, 0.0, 1.0)


def divide(boxes, size, where):
    """Boxes in pixels, divided by the image's width and height."""
    if size is None:
        raise InputError(
            f"{where} has boxes in pixels, and no file tells the size of the image: "
            "give COCO's captions JSON too."
        )
    width, height = size
    return np.asarray(boxes, "float32") / [width, height, width, height]


def decode(text, where, what):
    """float32 values out of base64."""
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), "float32")
    except ValueError as error:
        raise InputError(f"{where}: its {what} cannot be decoded: {error}.") from None


class Records:
    """The records of a file or folder, by image id.

    Attributes:
        path: The file or folder.
        places: dict from image id to where its record is.
        wrong: List of str, what is wrong with all other records.
    """

    def __init__(self, path):
        self.path = path
        self.places = {}
        self.wrong = []

    @property
    def ids(self):
        return list(self.places)

    def add(self, name, place, where):
        """Another record: the text of its id, its place, what to call it."""
        if not name.isdecimal():
            self.wrong.append(f"{where}: {name!r} is not an image id.")
        elif int(name) in self.places:
            self.wrong.append(f"{where}: image {name} comes twice.")
        else:
            self.places[int(name)] = place


class LinesOfImages(Records):
    """A file with a line for each image, which begins with the image's id and a tab.

    Args:
        path: The file.
        starts: Where its lines start, an iterable of numbers of bytes.
    """

    def __init__(self, path, starts):
        super().__init__(path)
        with open(path, "rb") as file:
            for number, start in enumerate(starts, start=1):
                where = f"{path}, line {number}"
                file.seek(start)
                # A line that is cut short within its id is no record of another id.
                name, tab, _ = file.read(40).decode("latin1").partition("\t")
                name = name if tab else f"{name[:20]} ..."
                self.add(name, (start, f"{where} (image {name})"), where)

    def line(self, image_id):
        """The fields of an image's line, bytes, and what to call it in messages."""
        start, where = self.places[image_id]
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.readline().rstrip(b"\r\n").split(b"\t"), where


class TsvRegions(LinesOfImages):
    """The original bottom-up attention TSV, found by one pass over its lines."""

    def __init__(self, path):
        with open(path, "rb") as file:
            ends = list(itertools.accumulate(map(len, file)))
        super().__init__(path, [0, *ends[:-1]])

    def read(self, image_id, size=None):
        values, where = self.line(image_id)
        if len(values) != len(TSV_FIELDS):
            raise InputError(
                f"{where} has {len(values)} fields, not {len(TSV_FIELDS)}: it is cut "
                "short."
            )
        of_image = dict(zip(TSV_FIELDS, values, strict=True))
        try:
            width, height = float(of_image["image_w"]), float(of_image["image_h"])
            count = int(of_image["num_boxes"])
        except ValueError as error:
            raise InputError(f"{where}: {error}.") from None
        features, boxes = (
            decode(of_image[name], where, name) for name in ("features", "boxes")
        )
        if count < 1 or len(boxes) != 4 * count or len(features) % count:
            raise InputError(
                f"{where}: num_boxes is {count}, but there are {len(boxes)} numbers of "
                f"boxes and {len(features)} of features."
            )
        boxes = divide(boxes.reshape(count, 4), (width, height), where)
        return check(features.reshape(count, -1), boxes, where)


class VinvlRegions(LinesOfImages):
    """VinVL's TSV: a line is an image id and JSON; `.lineidx` says where lines start.

    The JSON has `num_boxes` and `features`, base64 of float32, whose last six numbers
    of a region are x1, y1, x2, y2, width and height, divided by the image's.
    """

    def __init__(self, path):
        index = path.with_suffix(".lineidx")
        try:
            starts = list(map(int, index.read_text().split()))
        except ValueError as error:
            raise InputError(f"{index} is no lineidx: {error}.") from None
        super().__init__(path, starts)

    def read(self, image_id, size=None):
        values, where = self.line(image_id)
        try:
            of_image = json.loads(values[1])
            count, text = int(of_image["num_boxes"]), of_image["features"]
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(f"{where} is cut short, or no VinVL: {error}.") from None
        numbers = decode(text, where, "features")
        if count < 1 or len(numbers) % count or len(numbers) < 7 * count:
            raise InputError(
                f"{where}: num_boxes is {count}, but there are {len(numbers)} numbers."
            )
        numbers = numbers.reshape(count, -1)
        return check(numbers[:, :-6], numbers[:, -6:-2], where)


class NpzRegions(Records):
    """The self-critical toolkits' folders: `*_att/ID.npz` and `*_box/ID.npy`."""

    def __init__(self, path):
        super().__init__(path)
        self.folders = {}
        for kind in ("att", "box"):
            found = sorted(f for f in path.iterdir() if f.name.endswith(f"_{kind}"))
            if len(found) != 1:
                raise InputError(f"{path} should hold one folder *_{kind}.")
            self.folders[kind] = found[0]
        for file in sorted(self.folders["att"].glob("*.npz")):
            self.add(file.stem, file, str(file))

    def read(self, image_id, size=None):
        path = self.places[image_id]
        boxes_path = self.folders["box"] / f"{image_id}.npy"
        try:
            with np.load(path, allow_pickle=False) as content:
                features = content["feat"]
            boxes = np.load(boxes_path, allow_pickle=False)
        except FileNotFoundError as error:
            raise InputError(f"There is no file {error.filename}.") from None
        except Exception as error:  # zipfile and NumPy have many
            raise InputError(f"{path} or its boxes cannot be read: {error}.") from None
        features = features.reshape(-1, features.shape[-1])
        return check(features, divide(boxes, size, str(boxes_path)), str(path))


def open_hdf5(path):
    import h5py

    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}.") from None


class Hdf5Regions(Records):
    """HDF5 files of `ID_features` and `ID_boxes`."""

    def __init__(self, path):
        super().__init__(path)
        self.file = open_hdf5(path)
        for name in self.file:
            if name.endswith("_features"):
                self.add(name.removesuffix("_features"), name, f"{path}, {name}")

    def __getstate__(self):
        return {**self.__dict__, "file": None}

    def __setstate__(self, state):
        self.__dict__.update(state, file=open_hdf5(state["path"]))

    def read(self, image_id, size=None):
        where = f"{self.path}, image {image_id}"
        try:
            features = self.file[self.places[image_id]][:]
            boxes = self.file[f"{image_id}_boxes"][:]
        except (OSError, KeyError) as error:
            raise InputError(f"{where} cannot be read: {error}.") from None
        return check(features, divide(boxes, size, where), where)
