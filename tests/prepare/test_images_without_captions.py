import json

import h5py
import numpy as np
import pytest

import keras_caption as kc


def test_images_without_captions_are_skipped_and_counted(tmp_path):
    images = [
        {"id": i, "file_name": f"{i}.jpg", "width": 9, "height": 9} for i in (1, 2)
    ]
    captions = [{"image_id": 1, "caption": "A dog."}]
    path = tmp_path / "captions_train.json"
    path.write_text(json.dumps({"images": images, "annotations": captions}))
    with h5py.File(tmp_path / "features.h5", "w") as file:
        for i in (1, 2):
            file[f"{i}_features"] = np.ones((1, 4), "float32")
            file[f"{i}_boxes"] = np.array([[0, 0, 9, 9]], "float32")
    manifest = kc.prepare.prepare_regions(
        kc.prepare.list_images([path]),
        [kc.prepare.open_regions(tmp_path / "features.h5")],
        tmp_path / "out",
    )
    assert manifest["splits"]["train"] == {"listed": 2, "prepared": 1}
    assert manifest["features"]["with_captions"] == 1
    assert manifest["features"]["without_captions"] == 1
    assert f"{path}: image 2 has no captions." in json.dumps(manifest)


def write_coco(folder, *names):
    """COCO files of four images each, in JSON, with ids of their own."""
    for number, name in enumerate(names):
        ids = range(4 * number, 4 * number + 4)
        content = {"images": [{"id": i, "file_name": f"{i}.jpg"} for i in ids]}
        if "info" not in name:
            content["annotations"] = [{"image_id": i, "caption": "A dog."} for i in ids]
        (folder / name).write_text(json.dumps(content))


def splits_of(folder, *names):
    """Number of images by split, given the names of files."""
    paths = [name if "=" in name else folder / name for name in names]
    return {s: len(x) for s, x in kc.prepare.list_images(paths).items()}


def test_what_files_of_coco_are_for_is_said_and_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["captions_train2017.json", "captions_val2017.json", "captions_test.json"]
    write_coco(tmp_path, *names, "a.json", "image_info_val.json", "minival2014.json")
    halves = {"train": 4, "val": 2, "test": 2}
    assert splits_of(tmp_path, *names[:2]) == halves
    assert f"{tmp_path / names[1]}: images: 2 for val, 2 for test" in (
        capsys.readouterr().out
    )
    whole = dict.fromkeys(halves, 4)
    assert splits_of(tmp_path, *names) == whole
    given = [f"test={names[0]}", f"train={names[1]}", "val=a.json"]
    assert splits_of(tmp_path, *given) == whole
    assert splits_of(tmp_path, "val=a.json", "image_info_val.json") == {
        **{"train": 0, "val": 4, "test": 4}
    }
    (tmp_path / "trainval.json").write_bytes((tmp_path / "a.json").read_bytes())
    (tmp_path / "train_val.json").write_bytes((tmp_path / "a.json").read_bytes())
    (tmp_path / "list.json").write_text('[{"image": "1.jpg", "caption": "A dog."}]')
    (tmp_path / "dataset.json").write_text(
        json.dumps(
            {"images": [{"imgid": 1, "filename": "1", "split": "val", "sentences": []}]}
        )
    )
    for files, message in {
        (
            names[0],
            "a.json",
        ): r"a\.json has no split as a word of its name: say what it "
        r"is for, as in --captions train=\S*a\.json \(or val=, test=\)\.",
        ("a.json",): "has no split as a word of its name",
        ("minival2014.json",): "has no split as a word of its name",
        ("trainval.json",): "has no split as a word of its name",
        ("train_val.json",): "has train and val in its name",
        ("train=image_info_val.json",): "cannot be for train: it has no captions",
        ("train=a.json", "val=a.json"): "a.json is given twice",
        ("dev=a.json",): "dev=a.json: a split is train, val or test",
        ("list.json",): r"list\.json is a list: .* are JSON Lines, \.jsonl",
        ("captions.xlsx",): r"xlsx should be \.json, of COCO's or Karpathy's .* \.csv,",
        ("train=dataset.json",): "cannot be for train only: dataset.json says the",
    }.items():
        with pytest.raises(kc.InputError, match=message):
            splits_of(tmp_path, *files)
