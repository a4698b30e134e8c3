"""Datasets prepared from clips and from third-party frame features."""

import json
import shutil

import keras
import numpy as np
import pytest
from clip_files import write_clip, write_sound
from conftest import data_folder
from PIL import Image
from video_files import (
    DIM,
    NAMES,
    SPLITS,
    plain,
    random_features,
    write_json,
    write_npz,
)

import keras_caption as kc
from keras_caption.export.generation import generation_endpoints


def test_features_are_sampled_and_problems_counted(call_script, rng, tmp_path):
    features = random_features(rng)
    splits = [*SPLITS, "train", "train", "test"]
    videos = plain([*NAMES, "nan", "wide", "away"], splits)
    captions = write_json(tmp_path / "captions.json", videos)
    features["nan"] = np.full((2, DIM), np.nan)
    features["wide"] = np.ones((2, DIM + 1))
    features["unknown"] = np.ones((2, DIM))
    command = (
        "keras-caption",
        "prepare",
        f"--frames={write_npz(tmp_path / 'npz', features)}",
        f"--captions={captions}",
        f"--output_dir={tmp_path / 'out'}",
        "--num_frames=5",
    )
    done = call_script(*command)
    assert done.returncode == 0, done.stderr
    assert (
        "7 records of features: 4 prepared, 2 unreadable, 1 without captions, "
        "0 repeated or of no known video"
    ) in done.stdout
    assert "train        2 of 4 videos" in done.stdout
    assert "nan.npz has features that are not finite" in done.stderr
    assert "video wide has 7 features a frame, not 6 as the first" in done.stderr
    assert "skipped: Video away has captions, but is not in" in done.stderr
    builder = kc.datasets.load("prepared", tmp_path / "out")
    examples = {
        example["name"].decode(): example
        for split in ("train", "val", "test")
        for example in kc.datasets.read(builder, split).as_numpy_iterator()
    }
    assert {n: e["image_id"] for n, e in examples.items()} == dict(
        zip(["v0", "v1", "v2", "v3"], [0, 1, 4, 5], strict=True)
    )
    chosen = {"v0": [0, 1, 2], "v1": [1, 3, 5, 7, 9], "v2": [2, 7, 12, 16, 21]}
    for name, rows in chosen.items():
        expected = features[name][rows].astype("float16")
        np.testing.assert_array_equal(examples[name]["frames"], expected)
    assert "times" not in examples["v0"]  # nobody knows them
    assert examples["v1"]["words"][0] == b"a dog v1"
    done = call_script(*command[:-1], "--num_frames=6")
    assert "was begun with other data or other settings" in done.stderr
    done = call_script(*command[:-1], "--num_frames=2000")
    assert "`num_frames`: Input should be less than or equal to 1024" in done.stderr
    shutil.rmtree(tmp_path / "out")
    done = call_script(*command, "--strict")
    assert done.stderr.endswith("npz: video unknown has no captions.\n")
    assert not (tmp_path / "out").exists()
    done = call_script(*command[:3], *command[4:])
    assert "None of the videos with captions is in" in done.stderr
    done = call_script(*command, "--photos=a")
    assert "Give one of --photos, --features, --videos, --frames and" in done.stderr
    done = call_script(*command[:2], "--videos=a", *command[3:], "--detector=b")
    assert "name one as --backbone, without a --detector." in done.stderr


EXTRACTOR = ("--weights=", "--image_size=32", "--argument=alpha=0.25", "--num_frames=4")


@pytest.fixture
def clips(tmp_path):
    """A folder of clips, good and bad, and the captions of most of them."""
    folder = tmp_path / "clips"
    (folder / "more").mkdir(parents=True)
    for name, frames in {"v0": 9, "v1": 2, "v2": 30, "more/v3": 4}.items():
        write_clip(folder / f"{name}.avi", frames)
    write_sound(folder / "sound.avi")
    write_clip(folder / "one.mp4", 1)
    write_clip(folder / "unknown.mp4", 3)
    write_clip(folder / "more" / "v1.mkv", 3)
    (folder / "empty.mp4").touch()
    content = write_clip(folder / "cut.avi", 60).read_bytes()
    (folder / "cut.avi").write_bytes(content[: len(content) // 2])
    bad = ["sound", "one", "empty", "cut", "away"]
    splits = [*SPLITS, *SPLITS, "test"]
    write_json(tmp_path / "captions.json", plain([*NAMES, *bad], splits))
    return folder


def test_clips_are_prepared_counted_and_resumed(call_script, clips, tmp_path):
    weights = kc.features.Extractor(image_size=32, arguments={"alpha": 0.25})
    weights.network.save_weights(tmp_path / "net.weights.h5")
    command = (
        "keras-caption",
        "prepare",
        f"--videos={clips}",
        f"--captions={tmp_path / 'captions.json'}",
        f"--output_dir={tmp_path / 'out'}",
        f"--weights={tmp_path / 'net.weights.h5'}",
        *EXTRACTOR[1:],
        "--shard_size=2",
    )
    done = call_script(*command)
    assert done.returncode == 0, done.stderr
    assert (
        "10 clips: 4 prepared, 4 unreadable, 1 without captions, "
        "1 repeated or of no known video"
    ) in done.stdout
    for name, problem in {
        "sound": "has no video",
        "one": "has 1 frame",
        "empty": "is empty",
        "cut": "is damaged or cut after",
        "away": "has captions, but is not in",
    }.items():
        [line] = [line for line in done.stderr.splitlines() if problem in line]
        assert name in line
    assert "v1.avi: video v1 comes twice, and is read from" in done.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    counts = manifest["splits"].values()
    assert sum(c["listed"] for c in counts) == 9
    assert sum(c["prepared"] for c in counts) + len(manifest["left_out"]) == 9
    # Resumed, as if it had been killed within a shard.
    shards = sorted((tmp_path / "out").glob("prepared-*-of-0000?"))
    before = [path.read_bytes() for path in shards]
    times = [path.stat().st_mtime_ns for path in shards]
    shards[0].with_name(f"{shards[0].name}.json").unlink()
    (tmp_path / "out" / "manifest.json").unlink()
    assert call_script(*command).returncode == 0
    assert [path.read_bytes() for path in shards] == before
    assert [p.stat().st_mtime_ns for p in shards[1:]] == times[1:]
    builder = kc.datasets.load("prepared", tmp_path / "out")
    extractor = kc.prepare.load_extractor(tmp_path / "out")
    [example] = [
        example
        for example in kc.datasets.read(builder, "val", images=True).as_numpy_iterator()
        if example["name"] == b"v2"
    ]
    clip = extractor.read(clips / "v2.avi")
    made = extractor(extractor.to_pixels([clip]))
    np.testing.assert_allclose(example["frames"], made["frames"][0], atol=1e-2)
    np.testing.assert_allclose(example["times"], [0.3, 1.1, 1.8, 2.6], atol=1e-3)
    assert example["image"].shape == (96, 4 * 128, 3)
    done = call_script(*command, "--strict")
    assert "v1.avi: video v1 comes twice, and is read from" in done.stderr


@pytest.fixture
def model(clips, tmp_path):
    """A captioner that was trained on prepared clips, saved and loaded."""
    keras.utils.set_random_seed(0)
    extractor = kc.features.ClipExtractor(
        kc.features.Extractor(image_size=32, arguments={"alpha": 0.25}), 4
    )
    listed = kc.prepare.list_videos([tmp_path / "captions.json"])
    kc.prepare.prepare_clips(clips, listed, extractor, tmp_path / "out")
    builder = kc.datasets.load("prepared", tmp_path / "out")
    words = kc.text.Vocabulary(["a", "dog", "one", "v0", "v1"])
    model = kc.models.create(
        "video_nsa",
        vocabulary=words,
        model_dim=16,
        num_heads=2,
        feedforward_dim=16,
        extractor=kc.prepare.load_extractor(tmp_path / "out"),
        **kc.inputs.sizes_of(builder.info.features),
    )
    model.compile(keras.optimizers.SGD(0.1), model.loss, jit_compile=False)
    examples = kc.datasets.read(builder, "train")
    batches = kc.batches.train_batches(examples, words, 2, inputs=model.input_specs)
    model.fit(batches, steps_per_epoch=1, verbose=0)
    model.save(tmp_path / "model.keras")
    return keras.models.load_model(tmp_path / "model.keras")


def test_caption_my_clip(call_script, clips, model, tmp_path):
    paths = [clips / f"{name}.avi" for name in ("v0", "v1", "v2", "more/v3")]
    bad = [clips / "cut.avi", clips / "one.mp4", "nowhere.mp4"]
    figure = tmp_path / "strips.png"
    done = call_script(
        *(
            "keras-caption",
            "caption",
            *paths,
            *bad,
            "--model",
            tmp_path / "model.keras",
        ),
        *("--beam_size=1", "--max_length=4", f"--figure={figure}"),
    )
    assert done.returncode == 1
    captions = model.generate(paths, beam_size=1, max_length=4)  # in one batch
    for path, caption in zip(paths, captions, strict=True):
        assert f"{path}: {caption} (" in done.stdout
    for problem in ("cut after", "has 1 frame", "There is no file nowhere.mp4"):
        assert problem in done.stderr
    assert done.stderr.count("skipped: ") == 3
    with Image.open(figure) as image:
        assert image.size[0] > 1000
    with pytest.raises(kc.InputError, match="needs frames"):
        model.generate({"image": np.zeros((1, 8, 8, 3))})
    extractor = kc.prepare.load_extractor(tmp_path / "out")
    weights = extractor.get_weights(), model.extractor.get_weights()
    for prepared, saved in zip(*weights, strict=True):
        np.testing.assert_array_equal(prepared, saved)
    assert "photos" not in generation_endpoints(model, model.decoding)


def test_clips_need_no_captions(clips, tmp_path):
    extractor = kc.features.ClipExtractor(
        kc.features.Extractor(image_size=32, arguments={"alpha": 0.25}), 2
    )
    manifest = kc.prepare.prepare_clips(clips, {}, extractor, tmp_path / "out")
    assert manifest["splits"] == {"test": {"listed": 9, "prepared": 5}}


def test_msvd_mini_is_prepared_whole(tmp_path):
    folder = data_folder("msvd_mini")
    listed = kc.prepare.list_videos([folder / "captions.json"])
    source = kc.prepare.open_frames(folder / "features")
    manifest = kc.prepare.prepare_frames(listed, [source], tmp_path)
    counts = {split: c["prepared"] for split, c in manifest["splits"].items()}
    assert counts == {"train": 70, "val": 10, "test": 20}
    assert not manifest["left_out"]
    [spec] = kc.datasets.read(kc.datasets.load("prepared", tmp_path), "val[:1]")
    assert spec["frames"].shape == (20, 4096)
