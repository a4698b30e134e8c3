"""Caption files and frame features of videos, for tests."""

import json

import h5py
import numpy as np

DIM = 6
NAMES = ["v0", "v1", "v2", "v3"]
SPLITS = ["train", "train", "val", "test"]


def write_json(path, content):
    path.write_text(json.dumps(content, ensure_ascii=False))
    return path


def plain(names=NAMES, splits=SPLITS):
    return [
        {"id": name, "split": split, "captions": [f"A dog, {name}.", "One dog."]}
        for name, split in zip(names, splits, strict=True)
    ]


def random_features(rng):
    """Features of four videos, of 3 to 24 frames."""
    lengths = zip(NAMES, (3, 10, 24, 5), strict=True)
    return {name: rng.normal(size=(n, DIM)).astype("float32") for name, n in lengths}


def write_npy(path, features):
    path.mkdir()
    for name, array in features.items():
        np.save(path / f"{name}.npy", array[None])  # a batch of one, as I3D's
    return path


def write_npz(path, features):
    path.mkdir()
    for name, array in features.items():
        np.savez(path / f"{name}.npz", feat=array, fps=25)
    return path


def write_hdf5(path, features):
    with h5py.File(path, "w") as file:
        for name, array in features.items():
            file[name] = array
    return path


WRITERS = {"npy": write_npy, "npz": write_npz, "features.h5": write_hdf5}
