"""From photos to a model that captions photos."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.apps.prepare.photos import PhotoExamples
from keras_caption.evaluation import metric

SPLITS = ["train"] * 7 + ["val"] * 2 + ["test"] * 2


def new_extractor():
    keras.utils.set_random_seed(0)
    return kc.features.Extractor("MobileNet", image_size=64, arguments={"alpha": 0.25})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eleven photos of different sizes, one of them truncated, with captions."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    images = []
    for number, split in enumerate(SPLITS):
        name = f"photo_{number}.{'png' if number % 2 else 'jpg'}"
        shape = (40 + 5 * number, 90 - 3 * number, 3)
        coarse = Image.fromarray(rng.integers(0, 256, (4, 4, 3)).astype("uint8"))
        coarse.resize(shape[1::-1]).save(folder / name)
        sentences = [{"raw": f"A photo, number w{number}."}, {"raw": "Some photo."}]
        images.append(
            {
                "imgid": number,
                "filename": name,
                "split": split,
                "sentences": sentences,
            }
        )
    broken = folder / "photo_2.jpg"
    broken.write_bytes(broken.read_bytes()[:300])
    (folder / "captions.json").write_text(json.dumps({"images": images}))
    return folder


@pytest.fixture(scope="module")
def prepared(folder):
    records = kc.prepare.records_of_photos(folder, [folder / "captions.json"])
    output = folder / "prepared"
    manifest = kc.prepare.prepare_photos(records, new_extractor(), output, shard_size=3)
    assert manifest["splits"] == {
        "train": {"listed": 7, "prepared": 6},
        "val": {"listed": 2, "prepared": 2},
        "test": {"listed": 2, "prepared": 2},
    }
    [(name, reason)] = manifest["left_out"]
    assert name.endswith("photo_2.jpg")
    assert "cannot be read" in reason
    return output


def test_interrupted_preparation_is_resumed(folder, prepared):
    shards = sorted(prepared.glob("*.tfrecord-*-of-0000?"))
    assert len(shards) == 5
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in shards}
    # As if it had been killed within the second shard.
    shards[2].with_name(f"{shards[2].name}.json").unlink()
    with pytest.raises(kc.InputError, match=f"{shards[2].name} is missing or trunc"):
        kc.datasets.load("prepared", prepared)
    (prepared / "manifest.json").unlink()
    with pytest.raises(kc.InputError, match="or an unfinished one"):
        kc.datasets.load("prepared", prepared)
    records = kc.prepare.records_of_photos(folder, [folder / "captions.json"])
    kc.prepare.prepare_photos(records, new_extractor(), prepared, shard_size=3)
    for path, (content, time) in before.items():
        assert path.read_bytes() == content
        assert (path.stat().st_mtime_ns == time) == (path != shards[2])
    (prepared / "extractor.keras").rename(prepared / "kept")
    with pytest.raises(kc.InputError, match=r"extractor\.keras is missing or damaged"):
        kc.datasets.load("prepared", prepared)
    (prepared / "kept").rename(prepared / "extractor.keras")
    with pytest.raises(kc.InputError, match="begun with other data"):
        kc.prepare.prepare_photos(records, new_extractor(), prepared, shard_size=4)
    with pytest.raises(kc.InputError, match=r"photo_2\.jpg cannot be read"):
        kc.prepare.prepare_photos(
            records, new_extractor(), folder / "strict", strict=True
        )


def test_all_of_a_split_may_be_skipped_but_not_all_examples(folder, tmp_path):
    records = kc.prepare.records_of_photos(folder, [folder / "captions.json"])
    good, broken = (
        [r for r in records["train"] if r.name.endswith(name)]
        for name in ("photo_1.png", "photo_2.jpg")
    )
    output = tmp_path / "prepared"
    kc.prepare.prepare_photos({"train": good, "test": broken}, new_extractor(), output)
    builder = kc.datasets.load("prepared", output)
    assert len(list(kc.datasets.read(builder, "train"))) == 1
    with pytest.raises(kc.InputError, match="has no images for 'test'"):
        kc.datasets.read(builder, "test")
    with pytest.raises(
        kc.InputError, match=r"The split 'train\[:' of .* cannot be read"
    ):
        kc.datasets.read(builder, "train[:")
    with pytest.raises(kc.InputError, match=r"no examples: .*photo_2\.jpg cannot be"):
        kc.prepare.prepare_photos({"test": broken}, new_extractor(), tmp_path / "none")


def test_what_a_detector_finds_is_prepared(tmp_path):
    (tmp_path / "photos").mkdir()
    for i, cells in enumerate(([(1, 2), (7, 0)], [])):
        Image.fromarray(photo(128, 64, cells, 16)).save(
            tmp_path / "photos" / f"{i}.png"
        )
    records = kc.prepare.records_of_photos(tmp_path / "photos")
    yolox = kc.objects.Yolox(white_yolox(), image_size=64)
    folder = tmp_path / "prepared"
    kc.prepare.prepare_photos(records, kc.objects.ColouredObjects(yolox), folder)
    builder = kc.datasets.load("prepared", folder)
    reader = kc.prepare.reader_of("prepared", folder, builder)
    extractor = reader["extractor"]
    assert reader["categories"] == list(extractor.dimensions)
    examples = list(kc.datasets.read(builder, "test").as_numpy_iterator())
    assert [len(example["regions"]) for example in examples] == [3, 1]
    files = [tmp_path / "photos" / f"{example['image_id']}.png" for example in examples]
    found = extractor(extractor.to_pixels(files))
    for i, example in enumerate(examples):
        for name in ("regions", "boxes"):
            expected = np.array(found[name])[i, : len(example["boxes"])]
            np.testing.assert_allclose(example[name], expected, atol=1e-3)
    annotated = {"test": [dataclasses.replace(records["test"][0], boxes=[])]}
    with pytest.raises(kc.InputError, match="annotated, or found by a detector"):
        kc.prepare.prepare_photos(annotated, extractor, tmp_path / "other")


def test_features_beyond_half_precision_are_skipped(folder):
    records = kc.prepare.records_of_photos(folder, [folder / "captions.json"])["train"]
    examples = PhotoExamples(new_extractor(), 2)
    extract = examples.extract

    def with_one_large(photos, boxes):
        made = extract(photos, boxes)
        return {**made, "grid": made["grid"] + [[[[0.0]]], [[[70_000.0]]]]}

    examples.extract = with_one_large
    good, wrong = examples(records[:2])
    assert np.isfinite(good["grid"]).all()
    with pytest.raises(kc.InputError, match=r"photo_1\.png has a feature of 70,0"):
        raise wrong


def test_coco_files_give_splits_and_boxes(folder, tmp_path):
    sizes = {"width": 100, "height": 50}
    names = {1: "photo_0.jpg", 2: "photo_1.png", 3: "photo_3.png"}
    images = [{"id": i, "file_name": name, **sizes} for i, name in names.items()]
    captions = [{"id": i, "image_id": i, "caption": f"photo {i}"} for i in names]
    box = {"id": 7, "image_id": 2, "category_id": 5, "bbox": [10, 5, 50, 25]}
    content = {"images": images, "annotations": captions}
    (tmp_path / "captions_val.json").write_text(json.dumps(content))
    content = {"images": images, "annotations": [box], "categories": [{"id": 5}]}
    (tmp_path / "instances_val.json").write_text(json.dumps(content))
    records = kc.prepare.records_of_photos(
        folder, [tmp_path / "captions_val.json"], [tmp_path / "instances_val.json"]
    )
    assert [len(records[split]) for split in ("train", "val", "test")] == [0, 2, 1]
    extractor = new_extractor()
    kc.prepare.prepare_photos(records, extractor, tmp_path / "out")
    builder = kc.datasets.load("prepared", tmp_path / "out")
    [example] = kc.datasets.read(builder, "test").as_numpy_iterator()
    np.testing.assert_allclose(example["boxes"], [[0.1, 0.1, 0.6, 0.6]], rtol=1e-6)
    size = extractor.image_size
    photo = kc.features.resize_photo(kc.features.read_photo(folder / names[2]), size)
    found = extractor(photo[None], example["boxes"][None])
    np.testing.assert_allclose(example["regions"], found["regions"][0], atol=1e-2)
    one = next(iter(kc.datasets.read(builder, "val")))
    np.testing.assert_array_equal(one["boxes"], [[0, 0, 1, 1]])  # no object


@pytest.fixture(scope="module")
def model(prepared):
    builder = kc.datasets.load("prepared", prepared)
    examples = kc.datasets.read(builder, "train")
    words = kc.text.Vocabulary(["a", "photo", "number", "some", "w1"])
    height, width, dim = builder.info.features["grid"].shape
    keras.utils.set_random_seed(0)
    model = kc.models.create(
        "spatial",
        vocabulary=words,
        grid_height=height,
        grid_width=width,
        grid_dim=dim,
        model_dim=16,
        num_heads=2,
        decoder_layers=1,
        feedforward_dim=16,
        extractor=kc.prepare.load_extractor(prepared),
    )
    weights = model.extractor.get_weights()
    batches = kc.batches.train_batches(examples, words, 3, inputs=model.input_specs)
    batch, _, _ = next(iter(batches))
    assert set(batch) == {"grid", "tokens", "references"}
    assert batch["grid"].dtype == tf.float32
    model.compile(keras.optimizers.SGD(0.1), model.loss, jit_compile=False)
    model.fit(batches, steps_per_epoch=2, verbose=0)
    for before, after in zip(weights, model.extractor.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)
    path = prepared.parent / "model.keras"
    model.save(path)
    return keras.models.load_model(path)


def test_photos_are_captioned_as_their_prepared_features(folder, prepared, model):
    builder = kc.datasets.load("prepared", prepared)
    examples = kc.datasets.read(builder, "test")
    captions = model.caption(kc.batches.image_batches(examples, 2, model.input_specs))
    photos = [folder / "photo_9.png", folder / "photo_10.jpg"]
    assert model.generate(photos) == [captions[9], captions[10]]
    pixels = kc.features.read_photo(photos[0])
    assert model.generate({"image": pixels[None]}) == [captions[9]]
    batch = next(iter(kc.batches.image_batches(examples, 2)))
    found = model.extract(photos)
    np.testing.assert_allclose(found["grid"], batch["grid"], atol=1e-2)


def test_the_served_model_reads_files(folder, model, tmp_path):
    kc.serving.export(model, tmp_path / "model" / "1")
    served = tf.saved_model.load(str(tmp_path / "model" / "1"))
    photos = [folder / "photo_9.png", folder / "photo_10.jpg", folder / "photo_0.jpg"]
    files = tf.constant([path.read_bytes() for path in photos])
    broken = (folder / "photo_2.jpg").read_bytes()
    said = served.signatures["photos"](image_bytes=tf.concat([[broken], files], 0))
    assert said["captions"][0] == b""
    assert said["scores"][0] == -np.inf
    said = {name: values[1:] for name, values in said.items()}
    inputs = model.extract(photos)
    tokens, scores = model.generate_tokens(inputs)
    np.testing.assert_array_equal(said["tokens"], tokens)
    np.testing.assert_allclose(said["scores"], scores, atol=1e-3)
    grids = served.signatures["features"](grid=tf.constant(inputs["grid"]))
    np.testing.assert_array_equal(grids["tokens"], tokens)
    nothing = served.signatures["photos"](image_bytes=files[:0])
    assert nothing["captions"].shape == (0,)


def test_caption_my_picture(call_script, folder, model, tmp_path):
    photos = [folder / "photo_2.jpg", folder / "photo_9.png", "nowhere.jpg"]
    done = call_script(
        "keras-caption",
        "caption",
        *photos,
        f"--model={folder / 'model.keras'}",
        f"--figure={tmp_path / 'attention.png'}",
    )
    assert done.returncode == 1
    [caption] = model.generate(photos[1:2])
    assert f"photo_9.png: {caption or 'no words'}" in done.stdout
    assert "photo_2.jpg cannot be read" in done.stderr
    assert "skipped: There is no file nowhere.jpg" in done.stderr
    assert read_size(tmp_path / "attention.png")[0] > 1000


def read_size(path):
    with Image.open(path) as image:
        return image.size


def test_other_grids_and_models_without_an_extractor_are_refused(model, captioner):
    with pytest.raises(ValueError, match=r"reads grid of shape \('batch', 2, 2, 256\)"):
        model.generate({"grid": np.zeros((1, 3, 3, 256))})
    with pytest.raises(ValueError, match="has no `extractor`"):
        captioner.generate([np.zeros((5, 5, 3), "uint8")])


def test_files_for_the_test_server(call_script, folder, model, tmp_path, monkeypatch):
    monkeypatch.setattr(metric, "meteor", lambda *_: 0.5)  # a Java program, slow
    sizes = {"width": 100, "height": 50}
    names = {4: "photo_9.png", 9: "photo_10.jpg"}
    images = [{"id": i, "file_name": name, **sizes} for i, name in names.items()]
    (tmp_path / "image_info_test2014.json").write_text(json.dumps({"images": images}))
    records = kc.prepare.records_of_photos(
        folder, [tmp_path / "image_info_test2014.json"]
    )
    kc.prepare.prepare_photos(records, new_extractor(), tmp_path / "test2014")
    captions = [{"id": 1, "image_id": 9, "caption": "Some photo."}]
    content = {"images": images, "annotations": captions}
    (tmp_path / "c5.json").write_text(json.dumps(content))
    done = call_script(
        *("experiments/submit.py", folder / "model.keras", "--name=ours"),
        f"--test2014={tmp_path / 'test2014'}",
        f"--references={tmp_path / 'c5.json'}",
        f"--output_dir={tmp_path}",
    )
    assert done.returncode == 0, done.stderr
    assert "2 captions\nThe server expects 40,775." in done.stdout
    assert "1 images are scored; " in done.stdout
    assert "| c5 " in done.stdout
    path = tmp_path / "captions_test2014_ours_results.json"
    expected = model.generate([folder / name for name in names.values()])
    assert kc.evaluation.read_results(path) == dict(zip(names, expected, strict=True))
