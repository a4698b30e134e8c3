"""What `saved_models/ngsan_coco.keras` was made with, see docs/results/photos.md."""

import numpy as np
from conftest import tiny

import keras_caption as kc
from experiments.papers.lone_people import PERSON, with_lone_people


def example(objects, boxes, *captions):
    return {
        "regions": np.eye(80, dtype="float32")[objects],
        "boxes": np.array(boxes, "float32"),
        "captions": list(captions),
    }


def test_the_largest_person_stands_alone_with_captions_of_one_person():
    small, large, other = [0, 0, 0.2, 0.2], [0.5, 0, 1, 1], [0, 0.5, 0.4, 1]
    of_one = ("A man reads.", "The woman is tall", "A MAN with a cup")
    of_several = ("Two people read.", "A man and a woman", "A person in a crowd")
    examples = {
        5: example([PERSON, PERSON, 41], [small, large, other], *of_one, *of_several),
        6: example([PERSON], [small], *of_several),
        7: example([41], [small], *of_one),
        8: example([PERSON], [[0, 0, 0.1, 0.1]], *of_one),
    }
    found = dict(with_lone_people(examples.items()))
    [new] = found.keys() - examples.keys()
    assert [found[number] is examples[number] for number in examples] == [True] * 4
    alone = found[new]
    assert alone["image_id"] == new
    assert alone["regions"].argmax(1).tolist() == [PERSON]
    np.testing.assert_array_equal(alone["boxes"], np.array([large], "float32"))
    assert alone["captions"] == ["A man reads.", "The woman is tall"]
    assert alone["words"] == ["a man reads", "the woman is tall"]


def test_weights_are_averaged(vocabulary, tmp_path, call_script):
    paths = [tmp_path / f"{name}.keras" for name in ("one", "other", "wide")]
    for path, size in zip(paths, (16, 16, 32), strict=True):
        sizes = tiny("san", model_dim=size, num_layers=1)
        kc.models.create("san", vocabulary=vocabulary, **sizes).save(path)
    one, other, wide = paths
    output = tmp_path / "average.keras"
    command = "experiments/average.py", one, other
    assert call_script(*command, "--output", output).returncode == 0
    weights = [kc.models.load(x).get_weights() for x in (one, other, output)]
    for first, second, average in zip(*weights, strict=True):
        np.testing.assert_allclose(average, (first + second) / 2, atol=1e-7)
    output = tmp_path / "of_three.keras"
    done = call_script(*command, wide, "--output", output)
    assert done.returncode == 1
    assert f"{wide}: its weights have other shapes than those of {one}" in done.stderr
    assert not output.exists()
