import json
import math

import coco_files
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

import keras_caption as kc
from keras_caption.data import coco_objects, region_features


def test_objects_captions_and_split_of_coco_files(tmp_path):
    captions, instances, split = coco_files.contents()
    instances["annotations"] = [
        o for o in instances["annotations"] if o["image_id"] != 12
    ]
    instances["annotations"][0]["iscrowd"] = 1  # image 10's only object
    folder = coco_files.write(tmp_path / "coco", captions, instances, split)
    builder = kc.data.load("coco_objects", folder, data_dir=tmp_path / "tfds")
    counts = {name: builder.info.splits[name].num_examples for name in ("train", "val")}
    assert counts == {"train": 6, "val": 3}
    assert builder.info.metadata["images_without_objects"] == 2

    examples = {
        int(e["image_id"]): e
        for e in kc.data.read(builder, "train+val").as_numpy_iterator()
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
    assert kc.data.references(kc.data.read(builder, "train"))[11] == texts
    assert example["words"][1].decode().split()[-1] == "again"


def test_two_processes_prepare_it_at_once(tmp_path, monkeypatch):
    folder = coco_files.write(tmp_path / "coco", *coco_files.contents())
    where = {"data_dir": tmp_path / "tfds"}
    split = coco_objects.CocoObjects._split_generators

    def overtaken(self, dl_manager):
        """The other one begins and ends while this one is at work."""
        with monkeypatch.context() as patch:
            patch.setattr(coco_objects.CocoObjects, "_split_generators", split)
            kc.data.load("coco_objects", folder, **where)
        return split(self, dl_manager)

    with monkeypatch.context() as patch:
        patch.setattr(coco_objects.CocoObjects, "_split_generators", overtaken)
        builder = kc.data.load("coco_objects", folder, **where)
    assert len(list(kc.data.read(builder, "train"))) == 6


def spoil(captions, instances, split, what):
    box = instances["annotations"][3]["bbox"]
    if what == "caption without image":
        captions["annotations"][7]["image_id"] = 999
    elif what == "empty caption":
        captions["annotations"][7]["caption"] = " . "
    elif what == "unknown image in split":
        split["images"][3]["cocoid"] = 999
    elif what == "image without captions":
        captions["annotations"] = captions["annotations"][5:]
    elif what == "NaN":
        box[2] = math.nan
    elif what == "outside":
        box[0] = 600.0
    elif what == "empty box":
        box[3] = 0.0
    elif what == "unknown category":
        instances["annotations"][3]["category_id"] = 77
    elif what == "unknown split":
        split["images"][3]["split"] = "holdout"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("caption without image", r"captions_tiny.json: caption 7 .* image 999"),
        ("empty caption", r"captions_tiny.json: caption 7 of image 11 is empty"),
        ("unknown image in split", r"dataset_tiny.json: image 999 of split test"),
        ("image without captions", r"image 10 of split train has no captions"),
        ("NaN", r"instances_tiny.json: object 5000003 .* not four finite numbers"),
        ("outside", r"instances_tiny.json: object 5000003 .* out of the image"),
        ("empty box", r"instances_tiny.json: object 5000003 .* is empty"),
        ("unknown category", r"object 5000003 .* no category 77"),
        ("unknown split", r"dataset_tiny.json: image number 3 needs"),
    ],
)
def test_wrong_records_are_named_and_nothing_is_prepared(tmp_path, what, message):
    files = coco_files.contents()
    spoil(*files, what)
    folder = coco_files.write(tmp_path / "coco", *files)
    with pytest.raises(kc.InputError, match=message):
        kc.data.load("coco_objects", folder, data_dir=tmp_path / "tfds")
    assert not list(tmp_path.glob("tfds/**/*.tfrecord*"))


def test_wrong_files_are_named(tmp_path):
    with pytest.raises(kc.InputError, match="no folder"):
        kc.data.load("coco_objects", tmp_path / "nothing")
    folder = coco_files.write(tmp_path / "coco", *coco_files.contents())
    text = (folder / "captions_tiny.json").read_text()
    (folder / "captions_tiny.json").write_text(text[:-50])
    with pytest.raises(kc.InputError, match=r"captions_tiny.json .* cut short"):
        kc.data.load("coco_objects", folder, data_dir=tmp_path / "tfds")
    (folder / "captions_tiny.json").write_text(json.dumps({"images": []}))
    with pytest.raises(kc.InputError, match=r"captions_tiny.json has no 'annotations'"):
        kc.data.load("coco_objects", folder, data_dir=tmp_path / "tfds")
    (folder / "instances_tiny.json").unlink()
    with pytest.raises(kc.InputError, match=r"no instances_\*.json"):
        kc.data.load("coco_objects", folder)
    with pytest.raises(kc.InputError, match="Did you mean scenes"):
        kc.data.load("scene")


def test_the_same_from_tfds_coco_captions():
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
        listed = kc.data.list_images(["coco_captions"])
    ((image_id, captions, objects),) = records["train"]
    made = coco_objects.object_example(image_id, captions, objects)
    region_features(coco_objects.NUM_CATEGORIES).encode_example(made)
    assert made["image_id"] == 42
    assert made["captions"] == ["A dog.", "Two dogs"]
    assert made["words"] == ["a dog", "two dogs"]
    np.testing.assert_array_equal(made["regions"].argmax(1), [16, 79])
    np.testing.assert_allclose(made["boxes"], [[0.2, 0.1, 0.4, 0.3], [0, 0.5, 1, 1]])
    name = "COCO_train2014_000000000042.jpg"
    image = kc.data.ListedImage(42, name, ["A dog.", "Two dogs"], (60, 40))
    assert listed == {"train": [image], "val": [], "test": []}
