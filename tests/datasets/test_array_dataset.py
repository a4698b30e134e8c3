"""Datasets of arrays in memory."""

import numpy as np
import pytest
from conftest import random_boxes, tiny

import keras_caption as kc

CAPTIONS = [["A dog."], ["The dog, asleep.", "A cat."], ("A cat.",), ["Rain."]]


@pytest.fixture
def regions(rng):
    """Four images of 3, 2, 1 and 3 regions, the first and last of different type."""
    counts = (3, 2, 1, 3)
    return {
        "regions": [rng.normal(size=(n, 6)) for n in counts],
        "boxes": [random_boxes(rng, n).tolist() for n in counts],
    }


def test_arrays_are_read_in_batches_and_trained_on(regions):
    splits = ["train", "train", "val", "train"]
    data = kc.datasets.from_arrays(regions, CAPTIONS, splits)
    vocabulary = kc.datasets.build_vocabulary(data, min_count=1)
    assert set(vocabulary.words[4:]) == {"a", "dog", "the", "asleep", "rain"} | {"cat"}
    assert kc.datasets.references(kc.datasets.read(data, "val")) == {2: ["A cat."]}
    assert [len(kc.datasets.read(data, s)) for s in ("train[1:]", "train+val")] == [
        2,
        4,
    ]
    examples = kc.datasets.read(data, "train")
    [batch] = kc.batches.image_batches(examples, 4)
    np.testing.assert_array_equal(batch["image_id"], [0, 1, 3])
    np.testing.assert_array_equal(batch["region_mask"].numpy().sum(axis=1), [3, 2, 3])
    np.testing.assert_allclose(batch["regions"][1, :2], regions["regions"][1], 1e-6)
    np.testing.assert_allclose(batch["boxes"][1, :2], regions["boxes"][1], 1e-6)
    with pytest.raises(kc.InputError, match="dataset in memory has no images for 'te"):
        kc.datasets.read(data, "test")
    batches = kc.batches.train_batches(examples, vocabulary, 3)
    model = kc.models.create("san", vocabulary=vocabulary, **tiny("san", num_layers=1))
    model.compile("sgd", model.loss, run_eagerly=True, jit_compile=False)
    assert np.isfinite(model.train_on_batch(*next(iter(batches)))).all()


def test_grids_and_frames_have_sizes(rng, monkeypatch):
    monkeypatch.setattr(kc.datasets.registry, "DATASETS", {})
    grid = rng.integers(0, 9, (4, 2, 3, 5))
    frames = [rng.normal(size=(n, 7)) for n in (1, 2, 3, 4)]
    data = kc.datasets.from_arrays({"grid": grid, "frames": frames}, CAPTIONS)
    kc.datasets.register("mine", lambda folder: data)
    loaded = kc.datasets.load("mine")
    assert kc.datasets.model_sizes("video_nsa", "mine", loaded) == {"frame_dim": 7}
    sizes = {"grid_height": 2, "grid_width": 3, "grid_dim": 5}
    assert kc.datasets.model_sizes("spatial", "mine", loaded).items() >= sizes.items()
    [batch] = kc.batches.image_batches(kc.datasets.read(loaded, "train"), 4)
    np.testing.assert_array_equal(batch["grid"], grid)
    assert batch["frames"].shape == (4, 4, 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regions": None}, "`boxes` need `regions` beside them"),
        ({"region": 0}, "no features 'region'. Did you mean regions"),
        ({"regions": np.zeros((3, 2, 6))}, "`regions` are of 3 items, .* of 4"),
        ({"regions": np.zeros((4, 6))}, r"item 0 .* \(None, 'region_dim'\)"),
        ({"regions": [np.zeros((3, 6))] * 3 + [np.zeros((3, 5))]}, r"3 .*\(None, 6\)"),
        ({"regions": [[[1, 2], [3]]] * 4}, "`regions` of item 0: .*inhomogeneous"),
        ({"regions": [[["a"]]] * 4}, "`regions` of item 0 should be finite numbers"),
        ({"regions": np.full((4, 2, 6), np.nan)}, "item 0 should be finite numbers"),
        ({"regions": np.zeros((4, 2, 6))}, "Item 0 has 2 regions and 3 boxes"),
        ({"boxes": None, "regions": np.zeros((4, 0, 6))}, "Item 0 has no valid region"),
        ({"regions": dict(enumerate(np.zeros((4, 3, 6))))}, "`regions` must be a list"),
    ],
)
def test_faults_of_arrays_are_named(regions, change, message):
    changed = {k: v for k, v in {**regions, **change}.items() if v is not None}
    with pytest.raises(kc.InputError, match=message):
        kc.datasets.from_arrays(changed, CAPTIONS)


def test_faults_of_boxes_captions_and_splits_are_named(regions):
    regions["boxes"][2] = [[10, 20, 30, 40]]
    with pytest.raises(kc.InputError, match="Item 2 has boxes that are not x1, y1"):
        kc.datasets.from_arrays(regions, CAPTIONS)
    for texts, problem in (([], "at least 1"), ("A dog.", "str"), (["."], "one word")):
        with pytest.raises(kc.InputError, match=rf"`captions\[1\]`: .*{problem}"):
            kc.datasets.from_arrays(regions, [CAPTIONS[0], texts, *CAPTIONS[2:]])
    with pytest.raises(kc.InputError, match=r"`splits\[3\]`: .* 'val' or 'test'"):
        kc.datasets.from_arrays(regions, CAPTIONS, ["train"] * 3 + ["dev"])
    with pytest.raises(kc.InputError, match="`captions` are of no item"):
        kc.datasets.from_arrays(regions, [])
    for texts in (iter(CAPTIONS), dict(enumerate(CAPTIONS))):
        with pytest.raises(kc.InputError, match="`captions` must be a list, received"):
            kc.datasets.from_arrays(regions, texts)
    with pytest.raises(kc.InputError, match=r"no features\. Valid names are regions"):
        kc.datasets.from_arrays({}, CAPTIONS)
