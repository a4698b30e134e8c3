import numpy as np
import pytest

import keras_caption as kc
from experiments.unsure import calibrate
from keras_caption.apps.objects.object_words import least_score
from keras_caption.evaluation import (
    colour_agreement,
    named_colours,
    named_objects,
    object_agreement,
    object_scores,
)


@pytest.mark.parametrize(
    ("caption", "named"),
    [
        ("Two hot dogs, and a dog on benches", {"hot dog", "dog", "bench"}),
        ("a man  riding a wave on his surfboard", {"person", "surfboard"}),
        (
            "knives and wine glasses near teddy bears",
            {"knife", "wine glass", "teddy bear"},
        ),
        ("a catalog of a glass boathouse", set()),
    ],
)
def test_captions_name_categories(caption, named):
    assert named_objects(caption) == named


def test_captions_are_as_sure_as_the_least_score_of_what_they_name():
    scores = [("dog", 0.9), ("dog", 0.4), ("dog", 0.3), ("cat", 0.5)]
    objects = [{"category": category, "score": score} for category, score in scores]
    captions = {"a dog": 0.9, "two dogs": 0.4, "a dog and a cat": 0.5, "a bird": 0.0}
    captions |= {"a field": 0.0}
    found = {caption: least_score(caption, objects) for caption in captions}
    assert found == captions
    least, true = np.linspace(0.1, 0.8, 8), np.array([0, 1, 0, 1, 0, 1, 1, 1], bool)
    points = np.array(calibrate(least, true, 4))
    np.testing.assert_allclose(points, [[0.35, 0.5], [0.75, 1.0]], atol=1e-6)


def test_agreement_is_over_all_images():
    captions = {1: "a dog and a cat", 2: "a man", 3: "a red wall"}
    people = {1: ["a dog", "a puppy on a couch"], 2: ["a bus"], 3: ["a zebra"]}
    assert object_agreement(captions, people) == (1 / 3, 1 / 4)


@pytest.mark.parametrize(
    ("caption", "named"),
    [
        ("A black and White  dog", {("dog", "black"), ("dog", "white")}),
        ("a tan little puppy on the green grass", {("dog", "brown")}),
        ("a red bus and two dogs", {("bus", "red")}),
        ("a gray fire hydrant in a black and white photo", {("fire hydrant", "grey")}),
        ("a woman in red", set()),
    ],
)
def test_colours_belong_to_the_nouns_after_them(caption, named):
    assert named_colours(caption) == named


def test_colours_are_held_against_those_that_people_say():
    captions = {1: "a red bus by a white dog", 2: "a black cat", 3: "a cat"}
    people = {1: ["a red bus", "a blue bus and a dog"], 2: ["a grey cat"], 3: []}
    assert colour_agreement(captions, people) == (1 / 3, 1 / 2, 3)


def test_hallucinated_and_repeated_objects_are_counted():
    captions = {
        1: "a dog with a dog and a cat",  # cat: neither annotated nor named
        2: "a man and a woman with two men on a boat",  # boat: hallucinated
        3: "benches beside a bench",  # one noun twice
        4: "a red wall",
    }
    people = {1: ["a puppy"], 2: ["people"], 3: ["a wall"], 4: ["a wall"]}
    objects = {1: [], 2: ["car"], 3: {"bench"}, 4: []}
    scores = object_scores(captions, people, objects)
    assert scores == {
        "precision": 2 / 5,
        "recall": 1,
        "repeated": 2 / 4,
        "CHAIR-i": 2 / 9,
        "CHAIR-s": 2 / 4,
    }
    for wrong in ([*captions.values()], people, objects), (captions, captions, objects):
        for score in object_scores, lambda *x: colour_agreement(*x[:2]):
            with pytest.raises(kc.InputError, match=r"`(captions|references)`: "):
                score(*wrong)
