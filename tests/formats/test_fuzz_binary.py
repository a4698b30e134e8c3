"""Damaged files: a reader returns, or raises one sentence that names the file."""

import argparse
import functools
import pathlib
import pickle
import sys
import zipfile

import keras
import numpy as np
import pytest

import keras_caption as kc
from keras_caption.formats.keras_files import load_keras

sys.path.append(str(pathlib.Path(__file__).parents[1] / "data"))
from test_region_files import (
    HEIGHT,
    WIDTH,
    write_hdf5,
    write_npz,
    write_tsv,
    write_vinvl,
)

MUTATIONS = 60  # of each reader


def region_features():
    rng = np.random.default_rng(0)
    boxes = np.float32([[0.1, 0.2, 0.8, 0.9]])
    return {
        i: (rng.normal(size=(n, 5)), boxes.repeat(n, 0)) for i, n in ((7, 1), (8, 3))
    }


def read_regions(path):
    regions = kc.data.open_regions(path)
    problems = list(regions.wrong)
    for image_id in regions.ids:
        try:
            features, boxes = regions.read(image_id, (WIDTH, HEIGHT))
            assert np.isfinite(features).all()
            assert boxes.shape == (len(features), 4)
        except kc.InputError as error:
            problems.append(str(error))
    return problems


def write_keras(path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    model.save(path)


def write_config(path):
    """A `.keras` file beside its config, which is what changes."""
    write_keras(path.with_name("whole.keras"))
    with zipfile.ZipFile(path.with_name("whole.keras")) as archive:
        path.write_bytes(archive.read("config.json"))


def write_weights(path):
    write_config(path)
    with zipfile.ZipFile(path.with_name("whole.keras")) as archive:
        path.write_bytes(archive.read("model.weights.h5"))


def read_member(path, name):
    changed = path.with_name("changed.keras")
    with (
        zipfile.ZipFile(path.with_name("whole.keras")) as whole,
        zipfile.ZipFile(changed, "w") as archive,
    ):
        for member in whole.namelist():
            content = path.read_bytes() if member == name else whole.read(member)
            archive.writestr(member, content)
    load_keras(changed)


def write_infos(path):
    vocabulary = {"1": "a", "2": "b"}
    options = argparse.Namespace(rnn_size=8, ids=(1, 2))
    infos = {"vocab": vocabulary, "opt": options, "best": np.float64(1)}
    path.write_bytes(pickle.dumps(infos, protocol=2))


def write_prepared(path):
    """A prepared folder, of whose files `path` names one."""
    source = write_tsv(path.parent / "a.tsv", region_features())
    listed = {"train": [kc.data.ListedImage(i, f"{i}.jpg", ["A dog."]) for i in (7, 8)]}
    folder = path.parent
    kc.data.prepare_regions(listed, [kc.data.open_regions(source)], folder)


def read_prepared(path):
    builder = kc.data.load("prepared", path.parent)
    for example in kc.data.read(builder, "train").as_numpy_iterator():
        assert np.isfinite(example["regions"]).all()


def beside(write):
    """Writes region features whose `path` is a part of them."""
    return lambda path: write(root_of(path), region_features())


def root_of(path):
    return next(p for p in (*path.parents, path) if p.name.startswith("root"))


READERS = {
    # name: file that changes, how it and others are written, how they are read
    "tsv": ("root.tsv", beside(write_tsv), read_regions),
    "vinvl": ("root.tsv", beside(write_vinvl), read_regions),
    "lineidx": (
        "root.lineidx",
        lambda path: write_vinvl(path.with_suffix(".tsv"), region_features()),
        lambda path: read_regions(path.with_suffix(".tsv")),
    ),
    "npz": (
        "root/bu_att/8.npz",
        beside(write_npz),
        lambda path: read_regions(root_of(path)),
    ),
    "npy": (
        "root/bu_box/8.npy",
        beside(write_npz),
        lambda path: read_regions(root_of(path)),
    ),
    "hdf5": ("root.h5", beside(write_hdf5), read_regions),
    "tensors": (
        "root.npz",
        lambda path: np.savez(path, a=np.ones((2, 3)), b=np.ones(2)),
        kc.convert.read_tensors,
    ),
    "infos": ("root.pkl", write_infos, kc.convert.read_infos),
    "keras": ("root.keras", write_keras, load_keras),
    "config": (
        "config.json",
        write_config,
        functools.partial(read_member, name="config.json"),
    ),
    "weights": (
        "model.weights.h5",
        write_weights,
        functools.partial(read_member, name="model.weights.h5"),
    ),
    **{
        name: (name, write_prepared, read_prepared)
        for name in (
            "manifest.json",
            "dataset_info.json",
            "features.json",
            "prepared-train.tfrecord-00000-of-00001",
            "prepared-train.tfrecord-00000-of-00001.json",
        )
    },
}


TEXTS = b"-1", b"null", b"true", b"1e99", b"9" * 30, b"[]", b"{}", b'""', b"\0", b"\xff"


def mutate(content, rng):
    """Content with one to three changes: bytes, a part gone or twice, its end cut."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        start = rng.integers(len(content) + 1)
        end = start + (1, 2, 4, 8, 100)[rng.integers(5)]
        match rng.integers(6):
            case 0:
                content[start:end] = rng.bytes(end - start)
            case 1:
                content[start:end] = TEXTS[rng.integers(len(TEXTS))]
            case 2:
                del content[start:end]
            case 3:
                content[start:start] = content[start:end]
            case 4:
                del content[start:]
            case 5 if start < len(content):
                content[start] ^= 1 << rng.integers(8)
    return bytes(content)


def fuzz(name, count, folder, seed=0):
    """Reads mutations of a reader's file, and returns the messages of its errors."""
    file, write, read = READERS[name]
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    read(path)
    content, messages = path.read_bytes(), []
    rng = np.random.default_rng(seed)
    for _ in range(count):
        changed = mutate(content, rng)
        path.write_bytes(changed)
        try:
            found = read(path)
            messages += found if isinstance(found, list) else []
        except kc.InputError as error:
            messages.append(str(error))
        except Exception:
            (folder / "failed").write_bytes(changed)
            raise
    return messages


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READERS)
def test_damage_ends_in_one_sentence(name, tmp_path):
    messages = fuzz(name, MUTATIONS, tmp_path)
    assert messages
    for message in messages:
        assert str(tmp_path) in message
        assert "\n" not in message
        assert len(message) < 1000
