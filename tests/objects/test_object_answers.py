"""Answers about the presence of objects, from detections."""

import pytest

from keras_caption.apps.objects.object_answers import is_contradicted, presence_of

OBJECTS = [
    {"category": category, "score": score}
    for category, score in (("dog", 0.9), ("dog", 0.4), ("person", 0.7), ("bus", 0.3))
]
RECALL = {"giraffe": 0.8, "skis": 0.5, "kite": 0.2}
CALIBRATION = [[0.2, 0.4], [0.4, 0.6], [0.9, 0.95]]


@pytest.mark.parametrize(
    ("question", "answer", "probability"),
    [
        ("Is there a giraffe?", "no", 1 / 1.2),
        ("are there any giraffes in the photo", "no", 1 / 1.2),
        ("Does this picture show skis?", "no", 1 / 1.5),
        ("Is a kite visible in this image?", "no", 1 / 1.8),
        ("Is this a teddy bear?", "no", 0.5),  # not measured
        ("Is there a dog?", "yes", 0.95),  # by the best of two
        ("Do you see some dogs?", "yes", 0.95),
        ("Can you see people here?", "yes", 0.6 + 0.35 * 0.6),
        ("Any buses?", "no", 0.5),  # as likely as not
        ("Is that a hot dog?", "no", 0.5),
        # Detections do not decide these:
        ("Is there a woman?", None, None),
        ("Is there a table?", None, None),
        ("Is there a black dog?", None, None),
        ("Is there a dog on the grass?", None, None),
        ("Is there a dog or a giraffe?", None, None),
        ("Are there two dogs?", None, None),
        ("Is the dog asleep?", None, None),
        ("Is there no dog?", None, None),
        ("What is there?", None, None),
        # But of these, one is impossible without a detection:
        ("Is there a taxi?", "no", 0.5),
    ],
)
def test_presence_is_answered_by_detections(question, answer, probability):
    found = presence_of(question, OBJECTS, RECALL, CALIBRATION)
    if answer is None:
        assert found is None
    else:
        assert found == (answer, pytest.approx(probability))


def test_a_score_that_was_not_measured_is_its_own_probability():
    assert presence_of("Is there a dog?", OBJECTS) == ("yes", 0.9)
    assert presence_of("Is there a bus?", OBJECTS) == ("no", 0.7)


@pytest.mark.parametrize(
    ("question", "answer", "contradicted"),
    [
        ("What is it?", "zebra", True),
        ("What is it?", "dog", False),
        ("What is it?", "grass", False),
        ("How many zebras are there?", "2", True),
        ("How many zebras are there?", "0", False),
        ("How many zebras are there?", "none", False),
        ("How many dogs are there?", "3", False),
        ("Is the zebra asleep?", "yes", True),
        ("Is the zebra asleep?", "no", False),
        ("Is there a dog on the couch?", "yes", True),
        ("Is it a dog or a zebra?", "yes", False),
        ("Is it a cat or a zebra?", "yes", True),
        ("Is it raining?", "yes", False),
    ],
)
def test_answers_suppose_objects(question, answer, contradicted):
    assert is_contradicted(question, answer, OBJECTS) == contradicted
