"""Damaged or hostile binary files are refused; the memory they claim is bounded."""

import json
import multiprocessing
import pickle
import struct
import time
import zipfile

import h5py
import keras
import numpy as np
import pytest

import keras_caption as kc
from keras_caption.base.atomic import exclusive
from keras_caption.formats.faults import reason_of

SIZE = (200, 100)
FEATURES = np.ones((2, 5), "float32")
BOXES = np.float32([[10, 10, 90, 90], [20, 20, 50, 50]])


def hdf5_with(kind, path):
    """Writes an HDF5 file whose features of image 7 are of a wrong kind."""
    with h5py.File(path, "w") as file:
        file["7_boxes"] = BOXES
        file["other"] = FEATURES
        if kind == "group":
            file.create_group("7_features")
        elif kind == "soft link":
            file["7_features"] = h5py.SoftLink("/other")
        elif kind == "external link":
            file["7_features"] = h5py.ExternalLink("elsewhere.h5", "/7_features")
        elif kind == "virtual":
            layout = h5py.VirtualLayout((2, 5), "float32")
            layout[:] = h5py.VirtualSource("elsewhere.h5", "x", (2, 5))
            file.create_virtual_dataset("7_features", layout)
        elif kind == "no data":
            file["7_features"] = h5py.Empty("float32")
        elif kind == "huge":
            file.create_dataset("7_features", (10**7, 2048), "f4", chunks=(1, 2048))
        elif kind == "unwritten":
            file.create_dataset("7_features", (2, 5), "f4")
        else:
            values = {
                "strings": np.array([b"a", b"b"]),
                "complex": FEATURES.astype("complex64"),
                "compound": np.zeros(2, [("a", "f4"), ("b", "f4")]),
                "no dimensions": np.float32(1),
                "no regions": np.zeros((0, 5), "float32"),
                "one dimension": np.ones(5, "float32"),
            }
            file["7_features"] = values[kind]
    return path


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("group", "7_features is a Group"),
        ("soft link", "7_features is a link"),
        ("external link", "7_features is a link"),
        ("virtual", "7_features is stored in other files"),
        ("no data", "7_features is empty"),
        ("huge", "at most 16,777,216 are read"),
        ("unwritten", "7_features was never written"),
        ("strings", "it should be real numbers"),
        ("complex", "it should be real numbers"),
        ("compound", "it should be real numbers"),
        ("no dimensions", "has features of shape"),
        ("no regions", "is empty: its shape is"),
        ("one dimension", "has features of shape"),
    ],
)
def test_hdf5_of_a_wrong_kind_are_refused(kind, message, tmp_path):
    path = hdf5_with(kind, tmp_path / "a.h5")
    regions = kc.prepare.open_regions(path)
    assert regions.problems == [f"{path}, other: neither ID_features nor ID_boxes."]
    with pytest.raises(kc.InputError, match=rf"a\.h5, image 7.*{message}"):
        regions.read(7, SIZE)


def array_bytes(shape, values=b""):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode()
    header = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"feat": pickle.dumps([1])}, "cannot be read"),
        ({"feat": array_bytes((10**9, 2048))}, "takes 8,192,000,000,128"),
        ({"feat": array_bytes((2, 5), bytes(2**25))}, "at most 16,777,216 are read"),
        ({"other": array_bytes((1,), bytes(4))}, "has no array 'feat'"),
        ({"feat": array_bytes((2, 0))}, "is empty"),
        ({"feat": array_bytes((), bytes(4))}, "features of shape"),
    ],
)
def test_npz_of_a_wrong_kind_are_refused(content, message, tmp_path):
    (tmp_path / "a_att").mkdir()
    (tmp_path / "a_box").mkdir()
    np.save(tmp_path / "a_box" / "7.npy", BOXES)
    path = tmp_path / "a_att" / "7.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in content.items():
            archive.writestr(f"{name}.npy", value)
    with pytest.raises(kc.InputError, match=rf"7\.npz.*{message}"):
        kc.prepare.open_regions(tmp_path).read(7, SIZE)


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "pth"])
def test_checkpoints_of_sparse_files_are_refused(suffix, tmp_path):
    """A file of a few blocks may claim to hold all memory."""
    path, size = tmp_path / f"a.{suffix}", 5 * 2**30
    whole = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
    header = json.dumps({"x": whole}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with open(path, "ab") as file:
        file.truncate(8 + len(header) + size)
    with pytest.raises(kc.InputError, match=r"checkpoints of at most 4,294,967,296 "):
        kc.convert.read_tensors(path)


def vinvl_line(**changes):
    return f"7\t{json.dumps({'num_boxes': 1, 'features': 'AAAA', **changes})}\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (vinvl_line(num_boxes=True), "num_boxes: Input should be a valid integer"),
        (vinvl_line(num_boxes=1.5), "num_boxes: Input should be a valid integer"),
        (vinvl_line(num_boxes=-3, features=""), "num_boxes is -3"),
        (vinvl_line(features=None), "features: Input should be a valid string"),
        (vinvl_line(features="é"), "features cannot be decoded"),
        ("7\tnull\n", "content: Input should be an object"),
        ("7\t" + "[" * 200_000, "not valid JSON"),
        ("7\t{}\n", "Field required"),
    ],
)
def test_vinvl_of_a_wrong_kind_are_refused(line, message, tmp_path):
    (tmp_path / "a.tsv").write_text(line)
    (tmp_path / "a.lineidx").write_text("0\n")
    with pytest.raises(kc.InputError, match=rf"line 1 \(image 7\).*{message}"):
        kc.prepare.open_regions(tmp_path / "a.tsv").read(7)


def test_a_wrong_index_never_finds_another_record(tmp_path):
    path, index = tmp_path / "a.tsv", tmp_path / "a.lineidx"
    path.write_text("10007\t{}\n8\t{}\n")
    # Byte offsets within an id, repeated, and beyond the file.
    index.write_text("2\n9\n9\n900\n")
    regions = kc.prepare.open_regions(path)
    assert regions.ids == [8]
    assert len(regions) == 4
    assert regions.problems == [
        f"{path}, line 1: no line starts at byte 2.",
        f"{path}, line 4: no line starts at byte 900.",
    ]
    for text, message in (
        ("-1", r"a\.lineidx, line 1: '-1' is not a byte offset"),
        ("9" * 5000, "is larger than"),
        ("0\n", r"continues after the last line of .*a\.lineidx"),
    ):
        index.write_text(text)
        with pytest.raises(kc.InputError, match=message):
            kc.prepare.open_regions(path)


def nested_pairs(depth):
    """A pickled tuple, nested `depth` times, whose hash takes time `2 ** depth`."""
    return b"K\x01" + b"2\x86" * depth


@pytest.mark.parametrize(
    "content",
    [
        b"\x96" + struct.pack("<Q", 9 * 2**30),  # an array of bytes
        b"\x80\x04\x95" + struct.pack("<Q", 9 * 2**30),  # a frame
        b"Nr\xff\xff\xff\x7f.",  # an index of the memo
        b"}" + nested_pairs(60) + b"Ns.",  # a key of a dict
        b"}(X\x05\0\0\0vocab" + nested_pairs(60) + b"X\x03\0\0\0opt}u.",
    ],
)
def test_small_pickles_claim_little_memory(content, tmp_path):
    (tmp_path / "infos.pkl").write_bytes(content)
    with pytest.raises(kc.InputError, match=r"infos\.pkl"):
        kc.convert.read_infos(tmp_path / "infos.pkl")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "whole.keras"
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)]).save(path)
    return path


def zip_members(source, **changes):
    """The members of a `.keras` file, some changed or, if `None`, removed."""
    with zipfile.ZipFile(source) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= {name.replace("_", "."): value for name, value in changes.items()}
    return {name: value for name, value in members.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config_json": None}, "has no config.json"),
        ({"metadata_json": None}, "has no metadata.json"),
        ({"model_weights_h5": None}, "has no model.weights.h5"),
        ({"config_json": b"null"}, "config.json: content: Input should be an object"),
        ({"config_json": b" " * 2**27}, "claims to hold"),
        ({"config_json": b" " * 2**25}, "at most 16,777,216 are read"),
        (
            {"config_json": b'{"module": null, "class_name": "X", "config": {}}'},
            "Could not locate class 'X'",
        ),
        (
            {
                "config_json": b'{"module": "keras_caption.features.extractor", '
                b'"class_name": "Extractor", "registered_name": '
                b'"keras_caption>Extractor", "config": {"weights": "imagenet"}}'
            },
            "would be downloaded",
        ),
        (
            {
                "config_json": b'{"module": "keras.layers", "class_name": "Dense", '
                b'"config": {"activation": {"module": "keras.applications"}}}'
            },
            "names a function of keras.applications",
        ),
        (
            {
                "config_json": b'{"module": "keras.layers", "class_name": '
                b'"StringLookup", "config": {"vocabulary": "gs://a/b"}}'
            },
            "has the address gs://a/b",
        ),
        (
            {
                "config_json": b'{"module": null, "class_name": "X", "config": {}, '
                b'"compile_config": {"loss": {"module": "keras.layers", "class_name": '
                b'"TFSMLayer", "config": {"filepath": "https://a"}}}}'
            },
            "has the address https://a",
        ),
        (
            {
                "config_json": b'{"module": null, "class_name": "X", "config": '
                b'{"nodes": [{"args": ["hf://a"], "kwargs": {}}]}}'
            },
            "has the address hf://a",
        ),
        (
            {
                "config_json": b'{"module": "keras", "class_name": "Sequential", '
                b'"config": {"layers": [' + b"0," * 128 + b"0]}}"
            },
            "lists 129 layers of Sequential; at most 128 are built",
        ),
        ({"model_weights_h5": b"none"}, "cannot be read"),
    ],
)
def test_saved_models_of_a_wrong_kind_are_refused(changes, message, saved, tmp_path):
    path = tmp_path / "best.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in zip_members(saved, **changes).items():
            archive.writestr(name, value)
    with pytest.raises(kc.InputError, match=rf"best\.keras.*{message}"):
        kc.models.load(tmp_path)


HUGE = {
    # Millions of layers or of words, and constants that weights do not tell of.
    "num_layers": 10**7,
    "decoder_layers": 30,
    "model_dim": 2**16,
    "feedforward_dim": 2**24,
    "vocabulary_size": 2**30,
    "region_dim": 2**30,
    "geometry_dim": 2**30,
}


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "whole.keras"
    sizes = {"vocabulary_size": 9, "region_dim": 4, "num_layers": 1, "model_dim": 8}
    sizes |= {"num_heads": 2, "feedforward_dim": 8, "geometry_dim": 4}
    kc.models.create("ngsan", **sizes).save(path)
    return path


@pytest.mark.parametrize("argument", HUGE)
def test_small_files_describe_no_huge_models(argument, model_file, tmp_path):
    members = zip_members(model_file)
    config = json.loads(members["config.json"])
    config["config"][argument] = HUGE[argument]
    members["config.json"] = json.dumps(config).encode()
    preset, path = tmp_path / "preset", tmp_path / "huge.keras"
    preset.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in members.items():
            archive.writestr(name, value)
            (preset / name).write_bytes(value)
    start = time.monotonic()
    for huge in (path, preset):
        with pytest.raises(
            kc.InputError,
            match=f"{huge}.*(more weights than it has|less than or equal)",
        ):
            kc.models.load(huge)
    assert time.monotonic() - start < 40


def test_damaged_saved_models_are_refused(saved, tmp_path):
    content = bytearray(saved.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "flipped.keras").write_bytes(content)
    with pytest.raises(kc.InputError, match=r"flipped\.keras cannot be read: Bad CRC"):
        kc.models.load(tmp_path / "flipped.keras")
    (tmp_path / "last.keras").write_bytes(content[: len(content) // 2])
    with pytest.raises(kc.InputError, match=r"last\.keras cannot be read: .*not a zip"):
        kc.models.load(tmp_path / "last.keras")


@pytest.fixture
def listed():
    image = [kc.prepare.ListedImage(i, f"{i}.jpg", ["A dog."], SIZE) for i in (7, 8)]
    return {"train": image}


def prepare(folder, listed, largest=1.0):
    path = folder / "a.h5"
    with h5py.File(path, "w") as file:
        for i in (7, 8):
            file[f"{i}_features"], file[f"{i}_boxes"] = FEATURES, BOXES
        file["8_features"][0, 0] = largest
    sources = [kc.prepare.open_regions(path)]
    return kc.prepare.prepare_regions(listed, sources, folder / "out", shard_size=1)


def test_features_beyond_half_precision_are_skipped(listed, tmp_path):
    manifest = prepare(tmp_path, listed, largest=70_000)
    assert manifest["splits"]["train"] == {"listed": 2, "prepared": 1}
    [[name, reason]] = manifest["left_out"]
    assert name == "image 8"
    assert "a.h5, image 8 has a feature of 70,000; features are kept in half" in reason


def test_damaged_shards_are_named_and_prepared_again(listed, tmp_path):
    prepare(tmp_path, listed)
    out = tmp_path / "out"
    shard = sorted(out.glob("*-of-00002"))[1]
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(kc.InputError, match=f"{shard.name} is damaged, its checksum"):
        kc.datasets.load("prepared", out)
    prepare(tmp_path, listed)
    assert shard.read_bytes() == content
    assert len(kc.datasets.read(kc.datasets.load("prepared", out), "train")) == 2
    info = out / "dataset_info.json"
    info.write_text(info.read_text().replace("prepared", "Prepared"))
    with pytest.raises(kc.InputError, match=r"dataset_info\.json is missing or damag"):
        kc.datasets.load("prepared", out)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shards": None}, "shards: Input should be an object"),
        ({"splits": {"train": {"listed": 2}}}, "splits.train.prepared: Field required"),
        ({"splits": {"train": {"listed": 2, "prepared": 3}}}, "train has 3 images"),
        ({"shards": {}}, "has 0 images; dataset_info"),
    ],
)
def test_manifests_of_a_wrong_kind_are_refused(change, message, listed, tmp_path):
    prepare(tmp_path, listed)
    path = tmp_path / "out" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(kc.InputError, match=message):
        kc.datasets.load("prepared", tmp_path / "out")


def hold(folder, ready):
    with exclusive(folder):
        ready.set()
        time.sleep(60)


def test_a_second_writer_is_refused(listed, tmp_path):
    context = multiprocessing.get_context("fork")  # starts at once
    ready = context.Event()
    first = context.Process(target=hold, args=(tmp_path / "out", ready))
    first.start()
    try:
        assert ready.wait(30)
        with pytest.raises(kc.InputError, match=r"Another process is writing .*out"):
            prepare(tmp_path, listed)
    finally:
        first.kill()
        first.join()
    assert prepare(tmp_path, listed)["splits"]["train"]["prepared"] == 2


def test_errors_of_libraries_are_cut_to_a_reason():
    assert reason_of(AssertionError()) == "AssertionError"
    assert (
        reason_of(ValueError("No such name. One of:\n  a\n")) == "No such name. One of"
    )
