"""Third-party region features and datasets prepared from them."""

import base64
import functools
import json
import os
import resource
import shutil
import unicodedata

import h5py
import numpy as np
import pytest
from conftest import random_boxes
from region_files import (
    HEIGHT,
    WIDTH,
    text,
    tsv_row,
    write_hdf5,
    write_lxmert,
    write_mcan,
    write_npz,
    write_tsv,
    write_vinvl,
)

import keras_caption as kc
from keras_caption.apps.prepare.matching import match

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
    "lxmert.tsv": write_lxmert,
    "mcan": write_mcan,
    "mcan_transposed": functools.partial(write_mcan, transposed=True),
    "karpathy.tsv": write_tsv,
    "vinvl.tsv": write_vinvl,
    "folder": write_npz,
    "features.h5": write_hdf5,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read(features, tmp_path, name):
    regions = kc.prepare.open_regions(WRITERS[name](tmp_path / name, features))
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
    elif what in ("float16", "float64"):
        values = np.maximum(np.random.default_rng(0).normal(size=(1, 64)), 0)
        row[5] = base64.b64encode(values.astype(what).tobytes()).decode()
    elif what == "box":
        row[4] = text([[0, 0, 2 * WIDTH, HEIGHT]])
    elif what == "divided":
        row[4] = text([[0, 0, 0.5, 1]])
    elif what == "width and height":
        row[4] = text([[150, 50, 50, 25]])
    elif what == "vinvl":
        rows[1] = [7, "{}"]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("cut", r"line 2 \(image 7\) has 4 fields, not 6 or 10: it is truncated"),
        ("base64", r"line 2 \(image 7\): its features cannot be decoded"),
        ("count", r"num_boxes is 2, but there are 4 numbers of boxes"),
        ("nan", "has features that are not finite"),
        ("float16", r"line 2 \(image 7\): its features look like float16; float32 is"),
        ("float64", "its features look like float64; float32 is expected"),
        ("box", "has boxes that exceed the image"),
        ("divided", "has boxes within one pixel: they should be in pixels"),
        ("width and height", "without area: boxes should be x1, y1, x2, y2"),
        ("vinvl", r"has 2 fields.* or VinVL's, whose \.lineidx should be beside it"),
    ],
)
def test_faults_of_a_tsv_are_named(features, tmp_path, what, message):
    path = tmp_path / "karpathy.tsv"
    path.write_text(spoil_tsv(features, what), "utf-8-sig")
    assert (
        kc.prepare.open_regions(path).ids[0] == IDS[0]
    )  # a byte order mark is no text
    with pytest.raises(kc.InputError, match=message):
        kc.prepare.open_regions(path).read(7)


def test_faults_of_other_formats_are_named(features, tmp_path):
    folder = write_npz(tmp_path / "folder", features)
    regions = kc.prepare.open_regions(folder)
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
        kc.prepare.open_regions(path).read(139)
    (tmp_path / "broken.h5").write_bytes(b"no HDF5")
    with pytest.raises(kc.InputError, match=r"broken\.h5 cannot be read"):
        kc.prepare.open_regions(tmp_path / "broken.h5")
    os.mkfifo(tmp_path / "pipe.tsv")  # which would be waited for
    for name in ("nowhere", "pipe.tsv"):
        with pytest.raises(kc.InputError, match="There is no file or folder"):
            kc.prepare.open_regions(tmp_path / name)


def test_records_without_a_valid_image_id_are_kept_as_problems(features, tmp_path):
    path = write_tsv(tmp_path / "karpathy.tsv", features)
    with open(path, "a") as file:
        file.write(f"{'9' * 300}\t1\n \t1\n13")  # too long, blank, truncated
    regions = kc.prepare.open_regions(path)
    assert regions.ids == IDS
    assert [problem.removeprefix(f"{path}, ") for problem in regions.problems] == [
        f"line 4: '{'9' * 20} ...' is not an image id.",
        "line 5: ' ' is not an image id.",
        "line 6: '13 ...' is not an image id.",
    ]
    listed = {"train": [kc.prepare.ListedImage("dog.jpg", "dog.jpg", ["A dog."])]}
    message = r"\.tsv: captions are of 'dog.jpg' and so on, features of 42 and so on"
    with pytest.raises(kc.InputError, match=message):
        kc.prepare.prepare_regions(listed, [regions], tmp_path / "out")
    path.write_text("image_id,features\n")
    regions = kc.prepare.open_regions(path)
    with pytest.raises(kc.InputError, match=r"tsv: .*line 1: 'image_id,features"):
        kc.prepare.prepare_regions(listed, [regions], tmp_path / "out")


def test_further_datasets_of_an_image_are_no_faults(features, tmp_path):
    """As in the features of Meshed-Memory Transformers, and others."""
    features["COCO_val2014_000000000012"] = features.pop(139)
    path = write_hdf5(tmp_path / "coco_detections.hdf5", features)
    with h5py.File(path, "a") as file:
        for i in features:
            file[f"{i}_cls_prob"] = np.ones((2, 1601), "float32")
        file["attributes"] = file["8_cls_prob"] = np.ones(2)
    regions = kc.prepare.open_regions(path)
    assert {*regions.ids} == {42, 7, 12}
    assert regions.notes == [f"{path}: ID_cls_prob of 3 images is not read."]
    assert [problem.removeprefix(f"{path}, ") for problem in regions.problems] == [
        "8_cls_prob: neither ID_features nor ID_boxes.",
        "attributes: neither ID_features nor ID_boxes.",
    ]
    with h5py.File(tmp_path / "train36.hdf5", "w") as file:
        file["image_features"] = file["image_bb"] = np.ones((2, 36, 4))
    others = tmp_path / "others.hdf5"
    with h5py.File(others, "w") as file:
        file["42_attributes"] = np.ones((49, 8))
    with pytest.raises(kc.InputError, match=r"no dataset ID_features .* '42_attri"):
        kc.prepare.open_regions(others)


@pytest.mark.parametrize(
    "name", ["karpathy.tsv", "vinvl.tsv", "folder", "mcan", "features.h5"]
)
def test_a_readable_record_replaces_a_damaged_one(features, tmp_path, name):
    """As for three images of COCO's official test2014 features."""
    damaged = {i: (x, boxes[:, [2, 1, 0, 3]]) for i, (x, boxes) in features.items()}
    names = {i: f"{i:04}" for i in IDS}  # another name of the same image
    write = WRITERS[name]
    path = write(tmp_path / name, {names[7]: damaged[7], **features})
    other = write(tmp_path / f"other_{name}", {7: features[7], 42: damaged[42]})
    size = WIDTH, HEIGHT
    images = [kc.prepare.ListedImage(i, f"{i}.jpg", ["A dog."], size) for i in IDS]
    sources = [kc.prepare.open_regions(p) for p in (other, path)]
    manifest = kc.prepare.prepare_regions({"train": images}, sources, tmp_path / "out")
    assert manifest["splits"]["train"] == {"listed": 3, "prepared": 3}
    assert not manifest["left_out"]
    wrong = "\n".join(manifest["features"]["wrong"])
    assert len(manifest["features"]["wrong"]) == 3
    assert wrong.count("comes twice, and is read from") == 2
    assert "has a box without area" in wrong
    np.testing.assert_array_equal(sources[1].read(7, size)[0], features[7][0])


def test_ids_are_numbers_of_64_bits_or_names(features, tmp_path):
    ids = [2**63 - 1, "COCO_val2014_000000000042", "mine/dog.jpg", "0007", "9" * 20]
    ids.append("000000000139.jpg")  # of COCO 2017
    record = features[7]
    path = write_tsv(tmp_path / "a.tsv", dict.fromkeys(ids, record))
    regions = kc.prepare.open_regions(path)
    assert regions.ids == [2**63 - 1, 42, "mine/dog.jpg", 7, "9" * 20, 139]
    assert not regions.problems


def test_images_with_names_for_ids_keep_them_to_the_score(features, tmp_path):
    ids = ["a1f0", "COCO_val2014_000000000042", "2.jpg"]
    images = [{"id": i, "file_name": f"{i}.png"} for i in ids]
    captions = [{"image_id": i, "caption": "A dog."} for i in ids]
    (tmp_path / "captions_test.json").write_text(
        json.dumps({"images": images, "annotations": captions})
    )
    path = write_tsv(tmp_path / "a.tsv", dict(zip(ids, features.values(), strict=True)))
    kc.prepare.prepare_regions(
        kc.prepare.list_images([tmp_path / "captions_test.json"]),
        [kc.prepare.open_regions(path)],
        tmp_path / "out",
    )
    builder = kc.datasets.load("prepared", tmp_path / "out")
    given = kc.datasets.given_ids(builder)
    assert given == {-1: "a1f0", -2: "2.jpg"}
    references = kc.datasets.references(kc.datasets.read(builder, "test"))
    results = {given.get(i, i): texts[0] for i, texts in references.items()}
    kc.evaluation.write_results(tmp_path / "results.json", results)
    scores, _ = kc.evaluation.score_files(
        tmp_path / "captions_test.json", tmp_path / "results.json"
    )
    assert scores["BLEU-1"] == pytest.approx(1)


def test_ids_are_the_same_however_accents_are_written(features, tmp_path):
    first, second = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    for ours, theirs in ((first, second), (second, first)):
        path = write_tsv(tmp_path / "a.tsv", {theirs: features[7]})
        source = kc.prepare.open_regions(path)
        found, counts = match({ours: (None,)}, [source], "image", strict=True)
        assert found == {ours: source}
        assert counts["with_captions"] == 1
        assert ours in source
        np.testing.assert_array_equal(source.read(ours)[0], source.read(theirs)[0])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones((4, 4))}, "its axes cannot be told apart"),
        ({"x": np.ones((3, 5))}, r"x has the shape \(3, 5\) and bbox \(4, 4\)"),
        ({"image_w": np.ones(2)}, "image_w and image_h should be numbers"),
        ({"image_w": np.array("a")}, "image_w has type <U1"),
    ],
)
def test_faults_of_features_of_mcan_are_named(tmp_path, arrays, message):
    valid = {"x": np.ones((5, 4)), "bbox": [[0, 0, 9, 9]] * 4}
    valid |= {"image_w": 10, "image_h": 10}
    np.savez(tmp_path / "COCO_test2015_000000000007.jpg.npz", **valid | arrays)
    with pytest.raises(kc.InputError, match=rf"7\.jpg\.npz.*{message}"):
        kc.prepare.open_regions(tmp_path).read(7)
    (tmp_path / "COCO_test2015_000000000007.jpg.npz").unlink()
    with pytest.raises(kc.InputError, match=r"should hold a folder \*_att, or files"):
        kc.prepare.open_regions(tmp_path)


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
        "keras-caption",
        "prepare",
        *("--features", tmp_path / "a.tsv", tmp_path / "b.tsv"),
        f"--captions={tmp_path / 'captions.json'}",
        f"--output_dir={tmp_path / 'out'}",
    )
    assert done.returncode == 0, done.stderr
    assert (
        "7 records of features: 3 prepared, 1 unreadable, 1 without captions, "
        "2 repeated or of no known image"
    ) in done.stdout
    assert "train        2 of 3 images" in done.stdout
    assert "test         1 of 1 images" in done.stdout
    assert "image 7" in done.stderr
    assert "skipped: image 1000 has captions, but no features" in done.stderr
    assert "a.tsv, line 5: '4\\n ...' is not an image id." in done.stderr
    first = f"{tmp_path / 'a.tsv'}, line 1 (image 42)"
    assert (
        f"b.tsv, line 1 (image 42): image 42 comes twice, and is read from {first}."
    ) in done.stderr
    builder = kc.datasets.load("prepared", tmp_path / "out")
    examples = {
        int(example["image_id"]): example
        for example in kc.datasets.read(builder, "train").as_numpy_iterator()
    }
    assert examples.keys() == {42, 9}
    regions, boxes = features[42]
    np.testing.assert_allclose(examples[42]["regions"], regions, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(examples[42]["boxes"], boxes, atol=1e-6)
    assert kc.prepare.load_extractor(tmp_path / "out") is None


def test_several_processes_write_the_same_dataset(features, tmp_path):
    sources = [kc.prepare.open_regions(write_hdf5(tmp_path / "a.h5", features))]
    size = (WIDTH, HEIGHT)
    images = [kc.prepare.ListedImage(i, f"{i}.jpg", ["A dog."], size) for i in IDS]
    images.append(kc.prepare.ListedImage(1000, "1000.jpg", ["No dog."], size))
    datasets = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        manifest = kc.prepare.prepare_regions(
            {"train": images}, sources, folder, shard_size=1, processes=processes
        )
        assert len(manifest.pop("shards")) == 4
        examples = kc.datasets.read(kc.datasets.load("prepared", folder), "train")
        datasets.append(
            (manifest, [e["image_id"] for e in examples.as_numpy_iterator()])
        )
    assert datasets[0] == datasets[1]
    assert datasets[0][0]["splits"]["train"] == {"listed": 4, "prepared": 3}


def test_strict_raises_the_first_problem(features, tmp_path):
    images = {i: kc.prepare.ListedImage(i, f"{i}.jpg", ["A dog."]) for i in IDS}

    def prepare(listed):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        sources = [kc.prepare.open_regions(tmp_path / "a.tsv")]
        listed = {"train": [images[i] for i in listed]}
        kc.prepare.prepare_regions(listed, sources, tmp_path / "out", strict=True)

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
    listed = {"train": [kc.prepare.ListedImage(i, f"{i}.jpg", captions) for i in IDS]}
    sources = [kc.prepare.open_regions(write_tsv(tmp_path / "a.tsv", features))]
    # A limit on the size of files makes the same write fail.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.raises(OSError, match=r"-of-00001: cannot be written: "):
            kc.prepare.prepare_regions(listed, sources, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    kc.prepare.prepare_regions(listed, sources, tmp_path / "out")
    assert (
        len(kc.datasets.read(kc.datasets.load("prepared", tmp_path / "out"), "train"))
        == 3
    )
