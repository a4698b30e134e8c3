"""Scripts that fit what persons do, and judge relations in captions."""

import json

import numpy as np
import pytest

from experiments import actions, relations
from keras_caption.apps.objects.details import class_logits
from keras_caption.apps.objects.places import scores_of

UPPER, LOWER, APART = [0.3, 0.1, 0.6, 0.7], [0.2, 0.5, 0.8, 0.9], [0.9, 0.0, 1.0, 0.2]


def photo_of(*pairs):
    """Objects, and classes of their boxes, of which each has one of its own."""
    objects = [{"category": x, "score": 0.9, "box": box} for x, box in pairs]
    return objects, np.eye(1000)[: len(pairs)]


def test_examples_are_of_those_who_may_do_it():
    person, passer_by, bench = ("person", UPPER), ("person", APART), ("bench", LOWER)
    photos = {
        "at_a_bench": photo_of(passer_by, person, bench),
        "without_a_seat": photo_of(passer_by, person),
        "some": photo_of(person, bench),
        "unclear": photo_of(person, bench),
        "nobody_looked": photo_of(person, bench),
        "no_person": photo_of(bench),
    }
    seen = {"at_a_bench": "yes", "without_a_seat": "no", "some": "some"}
    seen |= {"unclear": "unclear", "no_person": "no"}
    first, second, third = actions.examples_of("sitting", photos, seen)
    assert (first[1], second[1]) == (1.0, 0.0)
    assert np.isnan(third[1])
    objects, classes = photos["at_a_bench"]
    [row] = first[0]  # of the one above the bench
    expected = [class_logits(classes[1]), scores_of(objects)]
    np.testing.assert_array_equal(row, np.concatenate(expected))
    assert second[0].shape == (2, 1080)
    [[rider, label]] = actions.examples_of(
        "riding", {"a": photo_of(person, ("horse", LOWER))}, {"a": "no"}
    )
    assert (rider.shape, label) == ((1, 2080), 0.0)


@pytest.mark.parametrize(
    ("relation", "caption", "is_said"),
    [
        ("sitting", "two people are sitting at a table", True),
        ("sitting", "a cat sitting on a couch with a person", False),
        ("riding", "a person is on top of a horse", True),
        ("riding", "a person skiing down a slope", True),
        ("riding", "a person on a street with a horse", False),
        ("riding", "a person is on a bench", False),
        ("riding", "a person with a horse", False),
        ("standing", "a zebra and a giraffe standing on grass", True),
        ("on", "a dog sitting on top of a bench", True),
        ("on", "a person is on a bench with a dog", False),
        ("wearing", "a person wearing a tie", True),
    ],
)
def test_captions_say_relations(relation, caption, is_said):
    assert relations.says(relation, caption) is is_said


def test_relations_are_counted_by_what_was_seen(tmp_path, capsys):
    captions = tmp_path / "now.jsonl"
    rows = [("a", "a person riding a horse"), ("b", "a person on a bike"), ("c", None)]
    rows += [("d", "people on horses"), ("e", "a person riding a horse")]
    lines = [json.dumps({"photo": f"p/{x}.jpg", "caption": y}) for x, y in rows]
    captions.write_text("\n".join(lines))
    seen = tmp_path / "seen.csv"
    cells = zip("abcde", ("yes", "no", "no", "other", "unclear"), strict=True)
    seen.write_text(
        "\n".join(["photo,relation,seen", *(f"{x},riding,{y}" for x, y in cells)])
    )
    relations.main([str(captions), "--seen", str(seen)])
    [row] = (x for x in capsys.readouterr().out.splitlines() if "riding" in x)
    assert [int(x) for x in row.split("|")[2:5]] == [2, 1, 1]
