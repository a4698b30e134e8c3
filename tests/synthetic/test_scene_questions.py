"""Questions about scenes, judged by a reader of its own."""

import collections
import re

import numpy as np
import pytest

from keras_caption.apps.scenes.scenes.language import plural
from keras_caption.apps.scenes.scenes.questions import QUESTIONS, ask
from keras_caption.apps.scenes.scenes.scene import (
    COLOURS,
    KINDS,
    SceneObject,
    sample_scene,
)

COLOUR, KIND = "|".join(COLOURS), "|".join(KINDS)
NAME = rf"the ((?:(?:{COLOUR}) )?(?:{KIND}))"


def only(objects, words):
    """The only object that a description fits."""
    *colour, kind = words.split()
    found = [o for o in objects if o.kind == kind and colour in ([], [o.colour])]
    assert len(found) == 1, words
    return found[0]


def read_colour(objects, colour):
    [found] = [o for o in objects if o.colour == colour]
    return found.kind


def read_count(objects, group):
    words = group.split()
    kinds = {plural(kind): kind for kind in KINDS}
    counted = [
        o
        for o in objects
        if kinds.get(words[-1]) in (None, o.kind) and words[0] in (*kinds, o.colour)
    ]
    return str(len(objects if group == "objects" else counted))


def read_relation(objects, a, relation, b):
    a, b = only(objects, a), only(objects, b)
    dx, dy = np.subtract(b.centre, a.centre)
    across = abs(dx) > abs(dy)
    true = {
        "left": across and dx > 0,
        "right": across and dx < 0,
        "above": not across and dy > 0,
        "below": not across and dy < 0,
        "larger": a.area > 2 * b.area,
    }
    words = {"over": "above", "under": "below", "bigger": "larger"}
    named = [words.get(word, word) for word in relation.split()]
    named = [word for word in named if word in true]
    if len(named) == 1:
        return "yes" if true[named[0]] else "no"
    [answer] = [word for word in named if true[word]]
    return answer


def read_which(objects, relation, a, b):
    relation = {"up": "above", "down": "below"}.get(relation, relation)
    is_a = read_relation(objects, a, relation, b) == "yes"
    assert read_relation(objects, b, relation, a) == ("no" if is_a else "yes")
    return only(objects, a if is_a else b).kind


def read_furthest(objects, direction):
    axis, sign = {"left": (0, 1), "right": (0, -1), "up": (1, 1), "down": (1, -1)}[
        direction
    ]
    return min(objects, key=lambda o: sign * o.centre[axis]).kind


def read_nearest(objects, side, name):
    named = only(objects, name)
    on_side = {
        np.hypot(*offset): o.kind
        for o in set(objects) - {named}
        if side_of(offset := np.subtract(o.centre, named.centre)) == side
    }
    return on_side[min(on_side)]


def side_of(offset):
    dx, dy = offset
    if abs(dx) > abs(dy):
        return "left of" if dx < 0 else "right of"
    return "above" if dy < 0 else "below"


def read_between(objects, a, b):
    a, b = only(objects, a), only(objects, b)
    start, way = np.array(a.centre), np.subtract(b.centre, a.centre)
    length = np.linalg.norm(way)
    near = []
    for o in set(objects) - {a, b}:
        offset = np.array(o.centre) - start
        along = offset @ way / length
        beside = np.linalg.norm(offset - along * way / length)
        if 0 < along < length and beside < 0.2:
            near.append((o, along / length, beside))
    [(answer, share, beside)] = near
    assert 0.2 < share < 0.8
    assert beside < 0.1
    return answer.kind


FORMS = {
    rf"what (?:kind )?is the ({COLOUR}) object\?": read_colour,
    rf"what (?:colour is|is the colour of) the ({KIND})\?": (
        lambda objects, kind: only(objects, kind).colour
    ),
    r"how many (.+) are there\?": read_count,
    r"what is the number of (.+)\?": read_count,
    rf"is there an? ({COLOUR}) ({KIND})\?": (
        lambda objects, *pair: (
            "yes" if pair in {(o.colour, o.kind) for o in objects} else "no"
        )
    ),
    rf"is {NAME} (.+) {NAME}\?": read_relation,
    rf"which is (?:further )?(\w+), {NAME} or {NAME}\?": read_which,
    r"which object is furthest (left|right|up|down)\?": read_furthest,
    rf"what is the nearest object (.+) {NAME}\?": read_nearest,
    rf"(?:which object|what) is between {NAME} and {NAME}\?": read_between,
}


@pytest.fixture(scope="module")
def asked():
    found = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        objects = sample_scene(rng)
        found += [(objects, *one) for one in ask(objects, rng)]
    return found


def test_every_answer_is_true(asked):
    for objects, _, question, answer in asked:
        for pattern, read in FORMS.items():
            match = re.fullmatch(pattern, question)
            if match:
                assert read(objects, *match.groups()) == answer, question
                break
        else:
            raise AssertionError(f"{question} is in no form")


def test_no_answer_is_common(asked):
    counts = collections.Counter(answer for *_, answer in asked)
    assert max(counts.values()) < 0.2 * len(asked)
    by_kind = collections.defaultdict(collections.Counter)
    for _, kind, _, answer in asked:
        by_kind[kind][answer] += 1
    assert by_kind.keys() == QUESTIONS.keys()
    for kind, counts in by_kind.items():
        shares = np.array([*counts.values()]) / counts.total()
        # Of two answers, each is as probable.
        assert shares.max() < (0.6 if kind in ("is there", "larger") else 0.35), kind
        assert counts.total() > 100


def test_exchanged_objects_have_the_opposite_answer():
    # What a model sees that knows neither position nor size is the same in both.
    left = SceneObject("star", "red", (0.1, 0.4, 0.2, 0.5))
    right = SceneObject("heart", "blue", (0.6, 0.4, 0.9, 0.7))
    sides = collections.defaultdict(set)
    for seed in range(200):
        for kind, question, answer in ask([left, right], np.random.default_rng(seed)):
            if kind in ("left", "right", "larger"):
                sides[question].add(answer)
    assert all(len(answers) == 1 for answers in sides.values())
    assert sides["is the star left of the heart?"] == {"yes"}
    assert sides["is the heart left of the star?"] == {"no"}
    assert sides["is the red star right or left of the heart?"] == {"left"}
    assert sides["is the star larger than the blue heart?"] == {"no"}
    assert sides["which is further left, the heart or the star?"] == {"star"}
    assert sides["which is larger, the star or the heart?"] == {"heart"}


def test_one_object_alone_is_asked_about_itself():
    star = SceneObject("star", "red", (0.1, 0.4, 0.2, 0.5))
    kinds = {kind for kind, *_ in ask([star], np.random.default_rng(0))}
    assert kinds == {"what", "colour", "how many"}
