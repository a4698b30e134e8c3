"""Features in the files of others, which other code than ours has written."""

import base64
import csv
import json

import h5py
import numpy as np
import pytest
from conftest import random_boxes, run_script

import keras_caption as kc

DIM, WIDTH, HEIGHT = 5, 200, 100
IDS = [42, 7, 139]


@pytest.fixture
def features(rng):
    """Features and boxes (in shares of the image) of three images."""
    counts = dict(zip(IDS, (4, 1, 6), strict=True))
    return {
        i: (
            rng.normal(size=(n, DIM)).astype("float32"),
            random_boxes(rng, n),
        )
        for i, n in counts.items()
    }


def text(values):
    return base64.b64encode(np.asarray(values, "<f4").tobytes()).decode()


def in_pixels(boxes):
    return boxes * np.float32([WIDTH, HEIGHT, WIDTH, HEIGHT])


def tsv_row(image_id, regions, boxes):
    pixels = text(in_pixels(boxes))
    return [image_id, WIDTH, HEIGHT, len(regions), pixels, text(regions)]


def write_tsv(path, features):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerows(tsv_row(i, *of_image) for i, of_image in features.items())
    return path


def write_vinvl(path, features):
    offsets = []
    with open(path, "w") as file:
        for i, (regions, boxes) in features.items():
            size = boxes[:, 2:] - boxes[:, :2]
            values = np.concatenate([regions, boxes, size], axis=1)
            content = {"num_boxes": len(regions), "features": text(values)}
            offsets.append(file.tell())
            file.write(f"{i}\t{json.dumps(content)}\n")
    path.with_suffix(".lineidx").write_text("".join(f"{o}\n" for o in offsets))
    return path


def write_npz(path, features):
    for kind in ("att", "fc", "box"):
        (path / f"bu_{kind}").mkdir(parents=True)
    for i, (regions, boxes) in features.items():
        np.savez_compressed(path / "bu_att" / str(i), feat=regions)
        np.save(path / "bu_fc" / str(i), regions.mean(axis=0))
        np.save(path / "bu_box" / str(i), in_pixels(boxes))
    return path


def write_hdf5(path, features):
    with h5py.File(path, "w") as file:
        for i, (regions, boxes) in features.items():
            file[f"{i}_features"], file[f"{i}_boxes"] = regions, in_pixels(boxes)
    return path


WRITERS = {
    "karpathy.tsv": write_tsv,
    "vinvl.tsv": write_vinvl,
    "folder": write_npz,
    "features.h5": write_hdf5,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_is_read(features, tmp_path, name):
    regions = kc.data.open_regions(WRITERS[name](tmp_path / name, features))
    assert sorted(regions.ids) == sorted(IDS)
    for image_id, (expected, boxes) in features.items():
        found, found_boxes = regions.read(image_id, (WIDTH, HEIGHT))
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(found_boxes, boxes, atol=1e-6)
        assert found_boxes.dtype == np.float32


def spoil_tsv(features, what):
    rows = [tsv_row(i, *of_image) for i, of_image in features.items()]
    row = rows[1]
    if what == "cut":
        rows = [*rows[:1], row[:4]]
    elif what == "base64":
        row[5] = row[5][:-5]
    elif what == "count":
        row[3] = 2
    elif what == "nan":
        row[5] = text(np.full((1, DIM), np.nan))
    elif what == "twice":
        row[0] = IDS[0]
    elif what == "box":
        row[4] = text([[0, 0, 2 * WIDTH, HEIGHT]])
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("cut", r"line 2 \(image 7\) has 4 fields, not 6: it is cut short"),
        ("base64", r"line 2 \(image 7\): its features cannot be decoded"),
        ("count", r"num_boxes is 2, but there are 4 numbers of boxes"),
        ("nan", "has features that are not finite"),
        ("twice", r"karpathy\.tsv, line 2: image 42 comes twice"),
        ("box", "has boxes that reach out of the image"),
    ],
)
def test_what_is_wrong_with_a_tsv_is_named(features, tmp_path, what, message):
    path = tmp_path / "karpathy.tsv"
    path.write_text(spoil_tsv(features, what))
    with pytest.raises(kc.InputError, match=message):
        kc.data.open_regions(path).read(7)


def test_what_is_wrong_with_other_forms_is_named(features, tmp_path):
    folder = write_npz(tmp_path / "folder", features)
    regions = kc.data.open_regions(folder)
    with pytest.raises(kc.InputError, match="no file tells the size"):
        regions.read(7)
    half = folder / "bu_att" / "7.npz"
    half.write_bytes(half.read_bytes()[:100])
    with pytest.raises(kc.InputError, match=r"7\.npz or its boxes cannot be read"):
        regions.read(7, (WIDTH, HEIGHT))
    (folder / "bu_box" / "42.npy").unlink()
    with pytest.raises(kc.InputError, match=r"There is no file .*42\.npy"):
        regions.read(42, (WIDTH, HEIGHT))
    path = write_vinvl(tmp_path / "vinvl.tsv", features)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(kc.InputError, match=r"line 3 \(image 139\) is cut short"):
        kc.data.open_regions(path).read(139)
    (tmp_path / "broken.h5").write_bytes(b"no HDF5")
    with pytest.raises(kc.InputError, match=r"broken\.h5 cannot be read"):
        kc.data.open_regions(tmp_path / "broken.h5")
    with pytest.raises(kc.InputError, match="There is no file or folder"):
        kc.data.open_regions(tmp_path / "nowhere")


def test_a_dataset_of_them(features, tmp_path):
    """From the command line: what is wrong is counted, and the rest is there."""
    features[8] = features[7]
    rows = spoil_tsv(features, "nan")
    (tmp_path / "a.tsv").write_text(rows)
    sentences = [{"raw": "A dog."}, {"raw": "One dog."}]
    images = [
        {"cocoid": i, "filename": f"{i}.jpg", "split": split, "sentences": sentences}
        for i, split in zip(
            [*IDS, 1000], ["train", "train", "test", "val"], strict=True
        )
    ]
    (tmp_path / "captions.json").write_text(json.dumps({"images": images}))

    def prepare(*more):
        return run_script(
            "experiments/prepare.py",
            f"--features={tmp_path / 'a.tsv'}",
            f"--captions={tmp_path / 'captions.json'}",
            f"--output_dir={tmp_path / 'out'}",
            *more,
        )

    strict = prepare("--strict")
    assert strict.returncode == 1
    assert "image 7) has features that are not finite" in strict.stderr.splitlines()[-1]
    done = prepare()
    assert done.returncode == 0, done.stderr
    assert "1 images have features only" in done.stdout
    assert "train        1 of 2 images" in done.stdout
    assert "left out: image 7: " in done.stdout
    assert "left out: image 1000: image 1000 has captions, but no f" in done.stdout
    builder = kc.data.load("prepared", tmp_path / "out")
    [example] = kc.data.read(builder, "train").as_numpy_iterator()
    assert example["image_id"] == 42
    regions, boxes = features[42]
    np.testing.assert_allclose(example["regions"], regions, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(example["boxes"], boxes, atol=1e-6)
    assert kc.data.load_extractor(tmp_path / "out") is None
