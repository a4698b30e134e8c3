import json

import coco_files
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

import keras_caption as kc
from keras_caption.datasets import coco_objects, region_features


def test_objects_captions_and_split_of_coco_files(tmp_path):
    captions, instances, split = coco_files.contents()
    instances["annotations"] = [
        o for o in instances["annotations"] if o["image_id"] != 12
    ]
    instances["annotations"][0]["iscrowd"] = 1  # image 10's only object
    folder = coco_files.write(tmp_path / "coco", captions, instances, split)
    builder = kc.datasets.load("coco_objects", folder, data_dir=tmp_path / "tfds")
    counts = {name: builder.info.splits[name].num_examples for name in ("train", "val")}
    assert counts == {"train": 6, "val": 3}
    assert builder.info.metadata["images_without_objects"] == 2

    examples = {
        int(e["image_id"]): e
        for e in kc.datasets.read(builder, "train+val").as_numpy_iterator()
    }
    for image_id in (10, 12):  # a null region
        np.testing.assert_array_equal(examples[image_id]["regions"], np.zeros((1, 80)))
        np.testing.assert_array_equal(examples[image_id]["boxes"], [[0, 0, 1, 1]])
    objects = [o for o in instances["annotations"] if o["image_id"] == 11]
    example = examples[11]
    np.testing.assert_array_equal(
        example["regions"].argmax(1), [o["category_id"] // 3 for o in objects]
    )
    x, y, w, h = objects[0]["bbox"]
    np.testing.assert_allclose(
        example["boxes"][0],
        [x / 640, y / 480, (x + w) / 640, (y + h) / 480],
        rtol=1e-5,
    )
    texts = [c["caption"] for c in captions["annotations"] if c["image_id"] == 11]
    assert kc.datasets.references(kc.datasets.read(builder, "train"))[11] == texts
    assert example["words"][1].decode().split()[-1] == "again"


def test_two_processes_prepare_a_dataset_at_once(tmp_path, monkeypatch):
    folder = coco_files.write(tmp_path / "coco", *coco_files.contents())
    where = {"data_dir": tmp_path / "tfds"}
    split = coco_objects.CocoObjects._split_generators

    def overtaken(self, dl_manager):
        """Another process prepares the dataset in the meantime."""
        with monkeypatch.context() as patch:
            patch.setattr(coco_objects.CocoObjects, "_split_generators", split)
            kc.datasets.load("coco_objects", folder, **where)
        return split(self, dl_manager)

    with monkeypatch.context() as patch:
        patch.setattr(coco_objects.CocoObjects, "_split_generators", overtaken)
        builder = kc.datasets.load("coco_objects", folder, **where)
    assert len(list(kc.datasets.read(builder, "train"))) == 6


def spoil(captions, instances, split, what):
    if what == "leak":
        split["images"].append({**split["images"][0], "split": "test"})
    elif what == "empty split":
        split["images"] = [i for i in split["images"] if i["split"] != "val"]
    elif what == "unknown image":
        split["images"][3]["cocoid"] = 999
    elif what == "no captions":
        captions["annotations"] = captions["annotations"][5:]
    elif what == "no instances":
        instances["images"] = instances["images"][1:]
        instances["annotations"] = instances["annotations"][1:]
    elif what == "categories":
        instances["categories"] += [{"id": 100 + i} for i in range(78)]
    elif what == "empty box":
        instances["annotations"][3]["bbox"][3] = 0.0


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("leak", r"dataset_tiny.json: images\[12\]\.cocoid is 10, as in images\[0\]"),
        ("empty split", r"dataset_tiny.json has no image of split val"),
        (
            "unknown image",
            r"dataset_tiny.json: image 999 of split test has no captions",
        ),
        ("no captions", r"image 10 of split train has no captions"),
        ("no instances", r"image 10 of split train is not in .*instances_tiny.json"),
        ("categories", r"instances_tiny.json has 81 categories; at most 80"),
        (
            "empty box",
            r"instances_tiny.json: annotations\[3\] of image 12: .* is empty",
        ),
    ],
)
def test_faults_are_named_and_nothing_is_prepared(tmp_path, what, message):
    files = coco_files.contents()
    spoil(*files, what)
    folder = coco_files.write(tmp_path / "coco", *files)
    with pytest.raises(kc.InputError, match=message):
        kc.datasets.load("coco_objects", folder, data_dir=tmp_path / "tfds")
    assert not list(tmp_path.glob("tfds/**/*.tfrecord*"))


def test_files_that_differ_about_an_image_are_refused(tmp_path):
    captions, instances, split = coco_files.contents()
    folder = coco_files.write(tmp_path / "coco", captions, instances, split)
    captions["annotations"].reverse()  # the same captions
    instances["annotations"].reverse()
    coco_files.write(folder / "more", captions, instances, split)
    (folder / "more" / "dataset_tiny.json").unlink()
    coco_objects.read_annotations(kc.datasets.CocoFiles.find(folder))
    captions["annotations"][0]["caption"] = "Another one."
    (folder / "more" / "captions_tiny.json").write_text(json.dumps(captions))
    with pytest.raises(kc.InputError, match="image 21 has other captions in another"):
        coco_objects.read_annotations(kc.datasets.CocoFiles.find(folder))


def test_missing_files_are_named(tmp_path):
    with pytest.raises(kc.InputError, match="no folder"):
        kc.datasets.load("coco_objects", tmp_path / "nothing")
    folder = coco_files.write(tmp_path / "coco", *coco_files.contents())
    (folder / "instances_tiny.json").unlink()
    with pytest.raises(kc.InputError, match=r"no instances_\*.json"):
        kc.datasets.load("coco_objects", folder)
    with pytest.raises(kc.InputError, match="Did you mean scenes"):
        kc.datasets.load("scene")
    with pytest.raises(kc.InputError, match=r"takes no 'data_dir'\. Valid .* folder"):
        kc.datasets.load("prepared", data_dir=folder)
    with pytest.raises(kc.InputError, match=r"should be a path\. Received: 3"):
        kc.datasets.load("prepared", 3)


def test_tfds_coco_captions_give_the_same_examples():
    example = {
        "captions": {"id": [1, 2], "text": [b" A dog. ", b"Two dogs"]},
        "image": tf.io.encode_jpeg(np.zeros((40, 60, 3), "uint8")).numpy(),
        "image/filename": b"COCO_train2014_000000000042.jpg",
        "image/id": 42,
        "objects": {
            "area": [5, 6, 7],
            "bbox": np.float32([[0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], [0.5, 0, 1, 1]]),
            "id": [7, 8, 9],
            "is_crowd": [False, True, False],
            "label": [16, 3, 79],
        },
    }
    asked = []

    def as_dataset(builder, split, **kwargs):
        asked.append(split)
        features = builder.info.features
        count = len(asked) == 1  # one image, for training
        return tf.data.Dataset.from_generator(
            lambda: [example] * count,
            output_types={**features.dtype, "image": tf.string},
            output_shapes={**features.shape, "image": ()},
        )

    with tfds.testing.mock_data(as_dataset_fn=as_dataset):
        records = {k: list(v) for k, v in coco_objects.records_of_tfds().items()}
        assert asked == ["train+restval", "val", "test"]
        asked.clear()
        listed = kc.prepare.list_images(["coco_captions"])
    ((image_id, captions, objects),) = records["train"]
    made = coco_objects.object_example(image_id, captions, objects)
    region_features(coco_objects.NUM_CATEGORIES).encode_example(made)
    assert made["image_id"] == 42
    assert made["captions"] == ["A dog.", "Two dogs"]
    assert made["words"] == ["a dog", "two dogs"]
    np.testing.assert_array_equal(made["regions"].argmax(1), [16, 79])
    np.testing.assert_allclose(made["boxes"], [[0.2, 0.1, 0.4, 0.3], [0, 0.5, 1, 1]])
    name = "COCO_train2014_000000000042.jpg"
    image = kc.prepare.ListedImage(42, name, ["A dog.", "Two dogs"], (60, 40))
    assert listed == {"train": [image], "val": [], "test": []}
