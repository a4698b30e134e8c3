"""Features of grids, of tokens and of whole images, and of regions without boxes."""

import base64
import json
import os
import pickle

import h5py
import lmdb
import numpy as np
import pytest
import torch_files
from conftest import random_boxes, tiny
from region_files import HEIGHT, WIDTH, in_pixels, write_hdf5, write_npz
from safetensors.numpy import save_file

import keras_caption as kc

DIM = 5
IDS = [42, 7]


@pytest.fixture
def grids(rng):
    """Grids of 2 rows and 2 columns, by image id."""
    return {i: rng.normal(size=(2, 2, DIM)).astype("float32") for i in IDS}


CELLS = [[0, 0, 0.5, 0.5], [0.5, 0, 1, 0.5], [0, 0.5, 0.5, 1], [0.5, 0.5, 1, 1]]


def att_folder(path, grids):
    """`cocotalk_att` of the self-critical toolkits, of grids."""
    (path / "cocotalk_att").mkdir(parents=True)
    for i, grid in grids.items():
        np.savez_compressed(path / "cocotalk_att" / str(i), feat=grid)
    return path


def hdf5_grids(path, grids):
    """`ID_grids` of RSTNet and others."""
    with h5py.File(path.with_suffix(".hdf5"), "w") as file:
        for i, grid in grids.items():
            file[f"{i}_grids"] = grid.reshape(-1, DIM)
    return path.with_suffix(".hdf5")


def torch_folder(path, grids):
    """`ID.pth` of grid-feats-vqa, `(1, D, height, width)`."""
    (path / "train2014").mkdir(parents=True)
    for i, grid in grids.items():
        channels_first = np.ascontiguousarray(np.moveaxis(grid, -1, 0)[None])
        tensor = torch_files.tensors_of({"a": channels_first})["a"]
        torch_files.write(path / "train2014" / f"{i}.pth", tensor, True)
    return path


def npy_folder(path, grids):
    path.mkdir()
    for i, grid in grids.items():
        np.save(path / f"COCO_train2014_{i:012}.npy", grid)
    return path


def safetensors_file(path, grids):
    save_file({str(i): x for i, x in grids.items()}, path.with_suffix(".safetensors"))
    return path.with_suffix(".safetensors")


@pytest.mark.parametrize(
    "write", [att_folder, hdf5_grids, torch_folder, npy_folder, safetensors_file]
)
def test_cells_of_grids_are_regions(write, grids, tmp_path):
    source = kc.prepare.open_regions(write(tmp_path / "grids", grids))
    assert (source.has_boxes, source.needs_sizes) == (True, False)
    assert sorted(source.ids) == sorted(IDS)
    for i, grid in grids.items():
        features, boxes = source.read(i)
        np.testing.assert_array_equal(features, grid.reshape(-1, DIM))
        np.testing.assert_allclose(boxes, CELLS)


def test_vectors_of_encoders_are_of_the_image_and_tokens_of_no_box(rng, tmp_path):
    """As CLIP's pooled vector, and DINO's tokens, in archives of one array."""
    vectors, tokens = rng.normal(size=(2, DIM)), rng.normal(size=(2, 7, DIM))
    for name, rows in ("pooled", vectors), ("tokens", tokens):
        (tmp_path / name).mkdir()
        for i, row in zip(IDS, rows, strict=True):
            np.savez(tmp_path / name / f"{i}.npz", image_embeds=row)
    pooled, patches = (
        kc.prepare.open_regions(tmp_path / x) for x in ("pooled", "tokens")
    )
    assert (pooled.has_boxes, patches.has_boxes) == (True, False)
    features, boxes = pooled.read(7)
    np.testing.assert_allclose(features, vectors[1:], rtol=1e-6)
    np.testing.assert_array_equal(boxes, [[0, 0, 1, 1]])
    features, boxes = patches.read(42)
    np.testing.assert_allclose(features, tokens[0], rtol=1e-6)
    assert boxes is None
    numbers = np.ones((2, 3)).astype("bfloat16")
    save_file({"1": numbers}, tmp_path / "half.safetensors")
    [features] = kc.prepare.open_regions(tmp_path / "half.safetensors").read(1)[:1]
    np.testing.assert_array_equal(features, np.ones((2, 3), "float32"), strict=True)
    large = {"1": np.ones(4, "f4"), "2": np.zeros((2**12 + 1, 2**11), "f4")}
    save_file(large, tmp_path / "one.safetensors")
    source = kc.prepare.open_regions(tmp_path / "one.safetensors")
    with pytest.raises(kc.InputError, match=r"2 has shape \(4097, 2048\); at most"):
        source.read(2)
    np.savez(tmp_path / "tokens" / "9.npz", a=np.ones(2), b=np.ones(2))
    with pytest.raises(kc.InputError, match=r"9\.npz should have one array.*: a, b"):
        kc.prepare.open_regions(tmp_path / "tokens").read(9)


def test_files_of_later_captioners_are_read(rng, tmp_path):
    """DLCT's HDF5 has the sizes of images, GRIT's a row for each."""
    regions, boxes = rng.normal(size=(3, DIM)).astype("f4"), random_boxes(rng, 3)
    path = write_hdf5(tmp_path / "dlct.hdf5", {7: (regions, boxes)})
    with h5py.File(path, "a") as file:
        file["7_size"] = [WIDTH, HEIGHT]
        file["7_grids"], file["7_mask"] = np.ones((49, DIM)), np.ones((3, 49))
    source = kc.prepare.open_regions(path)
    assert not source.needs_sizes
    features, found = source.read(7)
    np.testing.assert_array_equal(features, regions)
    np.testing.assert_allclose(found, boxes, atol=1e-6)
    assert len(source.notes) == 2
    assert not source.problems
    with h5py.File(tmp_path / "grit.hdf5", "w") as file:
        file["image_ids"] = IDS
        file["gri_feat"] = cells = rng.normal(size=(2, 6, DIM)).astype("f4")
        padding = np.zeros((2, 1, 1, 6), bool)
        padding[1, ..., 4:] = True
        file["gri_mask"], file["reg_feat"] = padding, np.ones((2, 3, DIM))
    source = kc.prepare.open_regions(tmp_path / "grit.hdf5")
    assert source.ids == IDS
    assert not source.has_boxes
    np.testing.assert_array_equal(source.read(7)[0], cells[1, :4])
    assert source.read(42)[0].shape == (6, DIM)
    (tmp_path / "secret").write_bytes(bytes(100))
    elsewhere = [(str(tmp_path / "secret"), 0, 100)]
    with h5py.File(tmp_path / "mask.hdf5", "w") as file:
        file["image_ids"], file["gri_feat"] = IDS, cells
        file.create_dataset("gri_mask", (2, 1, 1, 6), "i1", external=elsewhere)
    with pytest.raises(kc.InputError, match="gri_mask is stored in other files"):
        kc.prepare.open_regions(tmp_path / "mask.hdf5")
    with h5py.File(tmp_path / "link.hdf5", "w") as file:
        file["image_ids"] = IDS
        file["gri_feat"] = h5py.ExternalLink("grit.hdf5", "/gri_feat")
    with pytest.raises(kc.InputError, match="gri_feat is a link"):
        kc.prepare.open_regions(tmp_path / "link.hdf5")


def test_lmdb_of_vilbert_is_read(rng, tmp_path):
    regions, boxes = rng.normal(size=(3, DIM)).astype("f4"), random_boxes(rng, 3)
    record = {"image_id": "7", "image_h": HEIGHT, "image_w": WIDTH, "num_boxes": 3}
    record |= {"boxes": encoded(in_pixels(boxes)), "features": encoded(regions)}
    path = tmp_path / "coco_trainval.lmdb"
    with lmdb.open(str(path), map_size=2**20) as file, file.begin(write=True) as txn:
        txn.put(b"7", pickle.dumps(record, protocol=3))
        txn.put(b"8", pickle.dumps({**record, "num_boxes": 2}, protocol=3))
        txn.put(b"9", pickle.dumps(os.system))
        txn.put(b"10", regions.tobytes())
        txn.put(b"keys", pickle.dumps([b"7"]))
    source = kc.prepare.open_regions(path)
    assert source.ids == [10, 7, 8, 9]
    features, found = pickle.loads(pickle.dumps(source)).read(7)
    np.testing.assert_array_equal(features, regions)
    np.testing.assert_allclose(found, boxes, atol=1e-6)
    with pytest.raises(kc.InputError, match=r"image 8: num_boxes is 2"):
        source.read(8)
    with pytest.raises(kc.InputError, match=r"image 9 .* it holds a posix.system"):
        source.read(9)
    with pytest.raises(kc.InputError, match=r"image 10 .* it is no pickle, or damaged"):
        source.read(10)
    lying = tmp_path / "lying"  # of the size of a record on pages of its own
    large = {**record, "features": encoded(rng.normal(size=(3, 500)))}
    with lmdb.open(str(lying), map_size=2**20) as file, file.begin(write=True) as txn:
        txn.put(b"7", pickle.dumps(large, protocol=3))
        txn.put(b"8", pickle.dumps(record, protocol=3))
    content = (lying / "data.mdb").read_bytes()
    at = content.rindex(b"\1\0\1\0" + b"7")  # flags, length of the key, and the key
    assert content[at - 2 : at] == b"\0\0"  # upper bytes of the size
    (lying / "data.mdb").write_bytes(content[: at - 2] + b"\xff\0" + content[at:])
    source = kc.prepare.open_regions(lying)
    with pytest.raises(kc.InputError, match=r"lying.* ended the process by SIG"):
        source.read(7)
    np.testing.assert_array_equal(source.read(8)[0], regions)
    for damage, problem in ((8192, "is truncated: it has 8,192 of"), (0, "cannot be")):
        folder = tmp_path / str(damage)
        folder.mkdir()
        content = bytearray((path / "data.mdb").read_bytes())
        content[8192:] = b"" if damage else b"\xff" * (len(content) - 8192)
        (folder / "data.mdb").write_bytes(content)
        with pytest.raises(kc.InputError, match=problem):
            kc.prepare.open_regions(folder)


def encoded(values):
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes())


@pytest.mark.parametrize("write", [write_hdf5, write_npz])
def test_a_dataset_without_boxes_is_for_models_that_read_none(
    write, rng, tmp_path, capsys
):
    """M2's features, whose boxes are in pixels, with Karpathy's JSON alone."""
    records = {
        i: (rng.normal(size=(n, DIM)).astype("float32"), random_boxes(rng, n))
        for i, n in ((42, 4), (7, 2), (139, 3))
    }
    images = [
        {"cocoid": i, "filename": f"{i}.jpg", "split": x, "sentences": [{"raw": "A."}]}
        for i, x in zip(records, ("train", "val", "test"), strict=True)
    ]
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": images}))
    path = write(tmp_path / "features.hdf5", records)
    kc.prepare.prepare_regions(
        kc.prepare.list_images([tmp_path / "dataset_coco.json"]),
        [kc.prepare.open_regions(path)],
        tmp_path / "out",
    )
    printed = capsys.readouterr().out
    assert "the sizes of 3 images unknown, which COCO's captions JSON has" in printed
    assert "The dataset has no boxes: it is for models that read none" in printed
    builder = kc.datasets.load("prepared", tmp_path / "out")
    config = kc.tasks.Captioning.get_config("ngsan")
    config["data"] |= {"dataset": "prepared", "data_dir": str(tmp_path / "out")}
    del config["model"]["embedding_dim"]  # which this model does not have
    vocabularies = {"vocabulary": kc.text.Vocabulary(["dog"])}
    with pytest.raises(kc.InputError, match=r"boxes\. Missing from"):
        kc.tasks.Captioning(config).create_model(vocabularies)
    model = kc.models.create("san", vocabulary_size=9, **tiny("san", region_dim=DIM))
    [batch] = kc.batches.image_batches(
        kc.datasets.read(builder, "train"), 1, model.input_specs
    )
    assert {"regions", "region_mask"} <= {*model.read(batch)}
