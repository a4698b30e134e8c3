"""What persons and animals surely do, and captions that say no more."""

import importlib.resources

import numpy as np
import pytest

from keras_caption.apps.objects.actions import Action, candidates, likely_actions
from keras_caption.apps.objects.added_details import add_details
from keras_caption.apps.objects.description import describe
from keras_caption.apps.objects.details import details
from keras_caption.apps.objects.sure_actions import with_sure_actions
from keras_caption.decoding import Decoding
from keras_caption.predict import Prediction

FILE = importlib.resources.files("keras_caption.apps.objects") / "actions.npz"
UPPER, LOWER = [0.3, 0.1, 0.6, 0.7], [0.2, 0.5, 0.8, 0.9]
APART = [0.9, 0.1, 1.0, 0.2]
RIDER = [("person", UPPER), ("horse", LOWER)]


def objects_of(*pairs):
    return [{"category": x, "score": 0.9, "box": box} for x, box in pairs]


@pytest.mark.parametrize(
    ("sure", "weaker"),
    [
        ("a group of people sitting at a table", "a group of people at a table"),
        ("a person is sitting at a table", "a person is at a table"),
        (
            "a person is sitting on a couch with a dog",
            "a person with a couch and a dog",
        ),
        ("two people are on top of a park bench", "two people with a park bench"),
        ("a person is sitting on top of a bed", "a person is on top of a bed"),
        ("a person is sitting in a kitchen", "a person is in a kitchen"),
        ("a person is sitting next to a dog", "a person next to a dog"),
        ("a person is sitting at a desk", "a person is at a desk"),
        ("a person riding a horse", "a person with a horse"),
        (
            "people are on motorcycles in the snow",
            "people with motorcycles in the snow",
        ),
        (
            "a person riding skis down a snow covered slope",
            "a person with skis on a snow covered slope",
        ),
        (
            "a person riding a wave on a surfboard in the ocean",
            "a person with a surfboard in the ocean",
        ),
        ("a person is riding a wave", "a person"),
        ("a person surfing in the ocean", "a person in the ocean"),
        ("a person skiing down a slope", "a person on a slope"),
        ("zebras are standing next to each other", "zebras next to each other"),
        ("a horse with a sheep standing on grass", "a horse with a sheep on grass"),
    ],
)
def test_captions_say_what_is_surely_done(sure, weaker):
    done = [
        *(Action("sitting", "person", x, 0.9) for x in ("dining table", "couch", "")),
        *(Action("sitting", "person", x, 0.9) for x in ("bench", "bed")),
        *(Action("riding", "person", x, 0.9) for x in ("horse", "motorcycle")),
        *(Action("riding", "person", x, 0.9) for x in ("skis", "surfboard")),
        *(Action("standing", x, "", 0.9) for x in ("zebra", "sheep")),
    ]
    assert with_sure_actions(sure, done) == sure
    assert with_sure_actions(sure, []) == weaker
    others = [Action("sitting", "person", "chair", 0.9)]
    others += [Action("riding", "person", "bicycle", 0.9)]
    others += [Action("standing", "cow", "", 0.9)]
    assert with_sure_actions(sure, others) == weaker


def test_what_boxes_tell_is_said_without_more():
    for caption in (
        "a cat is sitting on top of a bench",
        "a pizza sitting on top of a table",
        "a person in a boat",
        "a person is on a bed",
        "a person with a dog on a couch",
        "a bus is on a street",
        "a person holding a frisbee",
        "un perro en la calle",
        "",
    ):
        assert with_sure_actions(caption, []) == caption
        assert describe(caption, [], actions=None)[0] == caption
    on_desk = "a person is on top of a desk with a cup"
    assert with_sure_actions(on_desk, []) == "a person is at a desk with a cup"
    on_desk, sits = "a person is sitting on a desk", Action("sitting", "person", "", 1)
    assert with_sure_actions(on_desk, [sits]) == "a person is sitting at a desk"


def test_who_may_do_something_lies_so():
    person, other, horse = ("person", UPPER), ("person", APART), ("horse", LOWER)
    table = ("dining table", [0.61, 0.5, 1.0, 1.0])  # it touches, within a margin
    bench = ("bench", LOWER)
    found = candidates(objects_of(person, other, horse, table, bench))
    places = {x[:3]: x.places for x in found}
    assert places == {
        ("sitting", "person", "bench"): [(0, 4)],
        ("sitting", "person", "dining table"): [(0, 3)],
        ("sitting", "person", ""): [(0, 0), (1, 1)],
        ("riding", "person", "horse"): [(0, 2)],
        ("standing", "horse", ""): [(2, 2)],
    }
    assert candidates([]) == []


def classes_of(name, part, strength):
    """Class probabilities by which an action is likely, or unlikely if below 0."""
    weights = np.load(FILE)[name].astype("float64")[1000 * part :][:1000]
    classes = np.exp(strength * weights / weights.std())
    return classes / classes.sum()


def test_an_action_is_sure_if_each_of_those_who_may_do_it_is():
    for_, against = (
        np.stack([classes_of("riding", part, x) for part in (0, 1)]) for x in (2, -2)
    )
    [row] = (x for x in details() if x.word == "riding")
    [action] = (x for x in likely_actions(objects_of(*RIDER), for_) if x.of == "person")
    assert action[:3] == ("riding", "person", "horse")
    assert row.least <= action.probability <= 1

    def is_riding(objects, classes):
        found = likely_actions(objects_of(*objects), classes)
        return "riding" in {x.name for x in found}

    assert not is_riding(RIDER, against)
    nothing = np.zeros(1000)
    assert not is_riding(RIDER, np.stack([for_[0], nothing]))  # not classified
    assert not is_riding([("person", APART), RIDER[1]], for_)
    two = [RIDER[0], *RIDER]
    assert is_riding(two, np.stack([for_[0], *for_]))
    assert is_riding(two, np.stack([nothing, *for_]))
    assert not is_riding(two, np.stack([classes_of("riding", 0, -8), *for_]))


def test_a_prediction_says_what_is_surely_done():
    image = np.full((32, 32, 3), (110.0, 70.0, 40.0), "float32")
    photo = {"images": image, "extents": np.ones(2)}

    def caption_of(strength, **options):
        text = "a person riding a horse"
        caption = Prediction(text, best=[(text, -1.0), ("a person with a horse", -2.0)])
        caption.objects = objects_of(*RIDER)
        own = np.stack([classes_of("riding", part, strength) for part in (0, 1)])
        of_photo = np.full(1000, 0.001)
        caption.inputs = {"classes": of_photo, "lower_classes": of_photo}
        caption.inputs["box_classes"] = own
        add_details(caption, photo, Decoding(**options))
        return caption

    caption = caption_of(2)
    assert "riding" in caption.text
    [link] = (x for x in caption.links if x["word"] == "riding")
    assert link["boxes"] == [UPPER, LOWER]
    caption = caption_of(-2)
    assert "riding" not in caption.text
    assert " with " in caption.text
    assert len(caption.best) == 1  # both say the same
    # What a user asks for stays.
    assert "riding" in caption_of(-2, required=["riding"]).text
