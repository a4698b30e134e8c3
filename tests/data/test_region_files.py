"""Third-party region features and datasets prepared from them."""

import json
import resource
import shutil

import numpy as np
import pytest
from conftest import random_boxes
from region_files import (
    HEIGHT,
    WIDTH,
    text,
    tsv_row,
    write_hdf5,
    write_npz,
    write_tsv,
    write_vinvl,
)

import keras_caption as kc

DIM = 5
IDS = [42, 7, 139]


@pytest.fixture
def features(rng):
    """Features and boxes, divided by the image's size, of three images."""
    counts = dict(zip(IDS, (4, 1, 6), strict=True))
    return {
        i: (
            rng.normal(size=(n, DIM)).astype("float32"),
            random_boxes(rng, n),
        )
        for i, n in counts.items()
    }


WRITERS = {
    "karpathy.tsv": write_tsv,
    "vinvl.tsv": write_vinvl,
    "folder": write_npz,
    "features.h5": write_hdf5,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read(features, tmp_path, name):
    regions = kc.data.open_regions(WRITERS[name](tmp_path / name, features))
    assert sorted(regions.ids) == sorted(IDS)
    for image_id, (expected, boxes) in features.items():
        read_features, read_boxes = regions.read(image_id, (WIDTH, HEIGHT))
        np.testing.assert_array_equal(read_features, expected)
        np.testing.assert_allclose(read_boxes, boxes, atol=1e-6)
        assert read_boxes.dtype == np.float32


def spoil_tsv(features, what):
    rows = [tsv_row(i, *record) for i, record in features.items()]
    row = rows[1]
    if what == "cut":
        rows = [*rows[:1], row[:4]]
    elif what == "base64":
        row[5] = row[5][:-5]
    elif what == "count":
        row[3] = 2
    elif what == "nan":
        row[5] = text(np.full((1, DIM), np.nan))
    elif what == "box":
        row[4] = text([[0, 0, 2 * WIDTH, HEIGHT]])
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("cut", r"line 2 \(image 7\) has 4 fields, not 6: it is truncated"),
        ("base64", r"line 2 \(image 7\): its features cannot be decoded"),
        ("count", r"num_boxes is 2, but there are 4 numbers of boxes"),
        ("nan", "has features that are not finite"),
        ("box", "has boxes that exceed the image"),
    ],
)
def test_faults_of_a_tsv_are_named(features, tmp_path, what, message):
    path = tmp_path / "karpathy.tsv"
    path.write_text(spoil_tsv(features, what))
    with pytest.raises(kc.InputError, match=message):
        kc.data.open_regions(path).read(7)


def test_faults_of_other_formats_are_named(features, tmp_path):
    folder = write_npz(tmp_path / "folder", features)
    regions = kc.data.open_regions(folder)
    with pytest.raises(kc.InputError, match="the size of the image is unknown"):
        regions.read(7)
    half = folder / "bu_att" / "7.npz"
    half.write_bytes(half.read_bytes()[:100])
    with pytest.raises(
        kc.InputError, match=r"7\.npz cannot be read: File is not a zip"
    ):
        regions.read(7, (WIDTH, HEIGHT))
    (folder / "bu_box" / "42.npy").unlink()
    with pytest.raises(kc.InputError, match=r"There is no file .*42\.npy"):
        regions.read(42, (WIDTH, HEIGHT))
    path = write_vinvl(tmp_path / "vinvl.tsv", features)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(kc.InputError, match=r"line 3 \(image 139\): not valid JSON"):
        kc.data.open_regions(path).read(139)
    (tmp_path / "broken.h5").write_bytes(b"no HDF5")
    with pytest.raises(kc.InputError, match=r"broken\.h5 cannot be read"):
        kc.data.open_regions(tmp_path / "broken.h5")
    with pytest.raises(kc.InputError, match="There is no file or folder"):
        kc.data.open_regions(tmp_path / "nowhere")


def test_records_without_a_valid_image_id_are_kept_as_problems(features, tmp_path):
    path = write_tsv(tmp_path / "karpathy.tsv", features)
    with open(path, "a") as file:
        file.write(f"{IDS[0]}\t1\t1\n13")  # repeated, and truncated within its id
    regions = kc.data.open_regions(path)
    assert regions.ids == IDS
    assert regions.problems == [
        f"{path}, line 4: image 42 comes twice.",
        f"{path}, line 5: '13 ...' is not an image id.",
    ]
    folder = write_npz(tmp_path / "folder", features)
    (folder / "bu_att" / "42 copy.npz").touch()
    [reason] = kc.data.open_regions(folder).problems
    assert reason.endswith("42 copy.npz: '42 copy' is not an image id.")


def test_problems_are_counted_and_other_images_prepared(
    call_script, features, tmp_path
):
    features[8] = features[7]
    write_tsv(tmp_path / "b.tsv", {42: features[7], 9: features[7]})
    (tmp_path / "a.tsv").write_text(spoil_tsv(features, "nan") + "4\n")
    sentences = [{"raw": "A dog."}, {"raw": "One dog."}]
    images = [
        {"cocoid": i, "filename": f"{i}.jpg", "split": split, "sentences": sentences}
        for i, split in zip(
            [*IDS, 9, 1000], ["train", "train", "test", "train", "val"], strict=True
        )
    ]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images}))
    done = call_script(
        "experiments/prepare.py",
        f"--features={tmp_path / 'a.tsv'},{tmp_path / 'b.tsv'}",
        f"--captions={tmp_path / 'captions.json'}",
        f"--output_dir={tmp_path / 'out'}",
    )
    assert done.returncode == 0, done.stderr
    assert (
        "7 records of features: 3 prepared, 1 unreadable, 1 without captions, "
        "2 of no known image"
    ) in done.stdout
    assert "train        2 of 3 images" in done.stdout
    assert "test         1 of 1 images" in done.stdout
    assert "skipped: image 7: " in done.stdout
    assert "skipped: image 1000: image 1000 has captions, but no f" in done.stdout
    assert "a.tsv, line 5: '4\\n ...' is not an image id." in done.stdout
    assert f"b.tsv: image 42 is in {tmp_path / 'a.tsv'} too." in done.stdout
    builder = kc.data.load("prepared", tmp_path / "out")
    examples = {
        int(example["image_id"]): example
        for example in kc.data.read(builder, "train").as_numpy_iterator()
    }
    assert examples.keys() == {42, 9}
    regions, boxes = features[42]
    np.testing.assert_allclose(examples[42]["regions"], regions, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(examples[42]["boxes"], boxes, atol=1e-6)
    assert kc.data.load_extractor(tmp_path / "out") is None


def test_several_processes_write_the_same_dataset(features, tmp_path):
    sources = [kc.data.open_regions(write_hdf5(tmp_path / "a.h5", features))]
    size = (WIDTH, HEIGHT)
    images = [kc.data.ListedImage(i, f"{i}.jpg", ["A dog."], size) for i in IDS]
    images.append(kc.data.ListedImage(1000, "1000.jpg", ["No dog."], size))
    datasets = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        manifest = kc.data.prepare_regions(
            {"train": images}, sources, folder, shard_size=1, processes=processes
        )
        assert len(manifest.pop("shards")) == 4
        examples = kc.data.read(kc.data.load("prepared", folder), "train")
        datasets.append(
            (manifest, [e["image_id"] for e in examples.as_numpy_iterator()])
        )
    assert datasets[0] == datasets[1]
    assert datasets[0][0]["splits"]["train"] == {"listed": 4, "prepared": 3}


def test_strict_raises_the_first_problem(features, tmp_path):
    images = {i: kc.data.ListedImage(i, f"{i}.jpg", ["A dog."]) for i in IDS}

    def prepare(listed):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        sources = [kc.data.open_regions(tmp_path / "a.tsv")]
        listed = {"train": [images[i] for i in listed]}
        kc.data.prepare_regions(listed, sources, tmp_path / "out", strict=True)

    path = write_tsv(tmp_path / "a.tsv", features)
    with pytest.raises(kc.InputError, match="image 7 has no captions"):
        prepare([42, 139])
    path.write_text(spoil_tsv(features, "nan"))
    with pytest.raises(kc.InputError, match=r"\(image 7\) has features that are not"):
        prepare(IDS)
    write_tsv(path, {42: features[42], 7: features[7]})
    with pytest.raises(kc.InputError, match="image 139 has captions, but no features"):
        prepare(IDS)
    path.write_text(path.read_text() + "4")
    with pytest.raises(kc.InputError, match=r"line 3: '4 \.\.\.' is not an image"):
        prepare(IDS)


def test_a_full_disk_is_reported_and_preparation_resumed(features, tmp_path):
    captions = ["A dog. " * 50]
    listed = {"train": [kc.data.ListedImage(i, f"{i}.jpg", captions) for i in IDS]}
    sources = [kc.data.open_regions(write_tsv(tmp_path / "a.tsv", features))]
    # A limit on the size of files makes the same write fail.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.raises(OSError, match=r"-of-00001: cannot be written: "):
            kc.data.prepare_regions(listed, sources, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    kc.data.prepare_regions(listed, sources, tmp_path / "out")
    assert len(kc.data.read(kc.data.load("prepared", tmp_path / "out"), "train")) == 3
