import numpy as np
import pytest

import keras_caption as kc
from keras_caption.datasets.statements import statements_of
from keras_caption.synthetic import Scenes, ScenesConfig, scenes
from keras_caption.synthetic.scenes.scene import COLOURS, SceneObject

SMALL = ScenesConfig(name="small", train=30, val=3, test=5)


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    builder = Scenes(config=SMALL, data_dir=tmp_path_factory.mktemp("scenes"))
    builder.download_and_prepare()
    return builder


def test_the_same_seed_gives_the_same_scenes(builder, tmp_path):
    again = Scenes(config=SMALL, data_dir=tmp_path)
    again.download_and_prepare()
    for split, count in {"train": 30, "val": 3, "test": 5}.items():
        first, second = (
            list(kc.datasets.read(b, split, images=True).as_numpy_iterator())
            for b in (builder, again)
        )
        assert len(first) == count
        for a, b in zip(first, second, strict=True):
            for name in ("image_id", "image", "regions", "boxes", "captions"):
                np.testing.assert_array_equal(a[name], b[name])
    ids = {
        int(e["image_id"])
        for split in ("train", "val", "test")
        for e in kc.datasets.read(builder, split).as_numpy_iterator()
    }
    assert len(ids) == 38


def test_captions_are_true_and_of_all_categories():
    counts = dict.fromkeys(scenes.CATEGORIES, 0)
    for seed in range(300):
        example = scenes.make_example(np.random.default_rng(seed))
        example["objects"] = as_read_back(example)
        for caption in example["captions"]:
            statements = scenes.judge(caption, scenes.scene_objects(example))
            assert statements, caption
            for category, true in statements:
                counts[category] += 1
                assert true, (caption, category)
    assert min(counts.values()) > 200


def as_read_back(example):
    from keras_caption.synthetic.scenes.scene import KINDS

    return {
        "kind": [KINDS.index(o["kind"]) for o in example["objects"]],
        "colour": [list(COLOURS).index(o["colour"]) for o in example["objects"]],
    }


RED_STAR = SceneObject("star", "red", (0.05, 0.3, 0.15, 0.4))
BLUE_RING = SceneObject("ring", "blue", (0.4, 0.1, 0.9, 0.6))
GREEN_STAR = SceneObject("star", "green", (0.6, 0.3, 0.7, 0.4))


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("a red star", "objects+ colours+"),
        ("a red ring", "objects+ colours-"),
        ("a red moon", "objects- colours-"),
        ("a small red star left of a large blue ring",
         "objects+ colours+ sizes+ objects+ colours+ sizes+ relations+"),
        ("a red star right of a blue ring",
         "objects+ colours+ objects+ colours+ relations-"),
        ("a green star is inside a blue ring",
         "objects+ colours+ objects+ colours+ relations+"),
        ("a red star is inside a blue ring",
         "objects+ colours+ objects+ colours+ relations-"),
        ("two stars and a blue ring", "objects+ counts+ objects+ colours+"),
        ("there are three stars", "objects+ counts-"),
        ("the only ring is blue", "objects+ colours+ counts+"),
        ("the only star is red", "objects+ colours+ counts-"),
        ("the largest object is a blue ring", "objects+ colours+ relations+"),
        ("a red star is the largest object", "objects+ colours+ relations-"),
        ("a red star in the middle and left of a blue ring",
         "objects+ colours+ objects+ colours+ relations- relations+"),
        ("star star of the is red", "objects+ objects+ colours+"),
        ("", ""),
    ],
)  # fmt: skip
def test_statements_are_read_and_judged(caption, expected):
    statements = scenes.judge(caption, [RED_STAR, BLUE_RING, GREEN_STAR])
    outcomes = " ".join(f"{category}{'-+'[true]}" for category, true in statements)
    assert sorted(outcomes.split()) == sorted(expected.split())


def test_features_do_not_contain_the_position_of_a_region():
    image = np.full((128, 128, 3), 200, "uint8")
    image[10:30, 10:30] = image[70:90, 50:70] = (200, 30, 30)
    boxes = np.array([[10, 10, 30, 30], [50, 70, 70, 90]]) / 128
    features = kc.synthetic.scenes.rendering.crop_features(image, boxes)
    np.testing.assert_allclose(features[0], features[1], atol=1e-6)


def test_statement_accuracy_counts_true_statements(builder):
    examples = kc.datasets.read(builder, "test")
    references = kc.datasets.references(examples)
    captions = {i: texts[0] for i, texts in references.items()}
    accuracy = scenes.statement_accuracy(captions, examples)
    assert accuracy["all"][0] == 1.0
    marks = statements_of(builder).marks(captions, examples)
    assert marks == dict.fromkeys(captions, "true")
    first = min(captions)
    objects = [{first: f"a {colour} circle"} for colour in COLOURS]
    marks = {statements_of(builder).marks(x, examples)[first] for x in objects}
    assert "false: 1 of 2 statements" in marks or "false: 2 of 2 statements" in marks
    captions = dict.fromkeys(references, "nine of them")
    assert statements_of(builder).marks(captions, examples)[first] == "no statement"
    assert scenes.statement_accuracy(captions, examples)["all"] == (0.0, 0)


def test_batches_hold_the_facts_of_their_scenes(builder):
    examples = kc.datasets.read(builder, "train")
    facts = {
        float(e["boxes"][0, 0]): scenes.scene_facts(
            scenes.scene_objects(e), [text.decode() for text in e["captions"]]
        )
        for e in examples.as_numpy_iterator()
    }
    vocabulary = kc.datasets.build_vocabulary(builder, min_count=1)
    batches = kc.batches.train_batches(
        scenes.with_facts(examples), vocabulary, 30, keep=scenes.StatementTruth.reads
    )
    inputs, _, _ = next(iter(batches))
    for x1, properties, relations, statements in zip(
        inputs["boxes"][:, 0, 0],
        inputs["properties"].numpy(),
        inputs["relations"].numpy(),
        inputs["statements"].numpy(),
        strict=True,
    ):
        expected = facts[float(x1)]
        n = len(expected["properties"])
        assert statements == expected["statements"] > 3
        np.testing.assert_array_equal(properties[:n], expected["properties"])
        np.testing.assert_array_equal(relations[:n, :n], expected["relations"])
        assert not properties[n:].any()
        assert not relations[n:].any()
        assert not relations[:, n:].any()
