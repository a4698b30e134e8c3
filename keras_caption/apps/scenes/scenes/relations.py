"""Properties and relations of the objects of a scene, for writing and judging."""

import math

from keras_caption.apps.scenes.scenes.scene import SceneObject, overlap


def size_word(o: SceneObject) -> str | None:
    """`"large"`, `"small"` or `None`, by the side of a square of the same area."""
    side = math.sqrt(o.area)
    return "large" if side > 0.32 else "small" if side < 0.16 else None


def place(o: SceneObject) -> str | None:
    """Place of an object in the image: `"middle"`, a corner, or `None`."""
    x, y = o.centre
    if max(abs(x - 0.5), abs(y - 0.5)) < 0.13:
        return "middle"
    if min(abs(x - 0.5), abs(y - 0.5)) > 0.17:
        vertical = "top" if y < 0.5 else "bottom"
        return f"{vertical} {'left' if x < 0.5 else 'right'}"
    return None


def _offset(a, b):
    return b.centre[0] - a.centre[0], b.centre[1] - a.centre[1]


def left_of(a: SceneObject, b: SceneObject) -> bool:
    dx, dy = _offset(a, b)
    return dx > 0.08 and dx > abs(dy) and not (inside(a, b) or inside(b, a))


def above(a: SceneObject, b: SceneObject) -> bool:
    dx, dy = _offset(a, b)
    return dy > 0.08 and dy > abs(dx) and not (inside(a, b) or inside(b, a))


def inside(a: SceneObject, b: SceneObject) -> bool:
    return overlap(a, b) > 0.95 * a.area and a.area < 0.5 * b.area


def on_top_of(a: SceneObject, b: SceneObject) -> bool:
    return abs(a.box[3] - b.box[1]) < 0.03 and b.box[0] < a.centre[0] < b.box[2]


def next_to(a: SceneObject, b: SceneObject) -> bool:
    gap = max(a.box[0], b.box[0]) - min(a.box[2], b.box[2])
    level = abs(a.centre[1] - b.centre[1]) < min(a.height, b.height) / 2
    return -0.02 < gap < 0.08 and level


def far_from(a: SceneObject, b: SceneObject) -> bool:
    return math.hypot(*_offset(a, b)) > 0.6


def larger_than(a: SceneObject, b: SceneObject) -> bool:
    return a.area > 2 * b.area


# In descending order of informativeness.
RELATIONS = {
    "inside": inside,
    "around": lambda a, b: inside(b, a),
    "on top of": on_top_of,
    "next to": next_to,
    "left of": left_of,
    "right of": lambda a, b: left_of(b, a),
    "above": above,
    "below": lambda a, b: above(b, a),
    "far from": far_from,
    "larger than": larger_than,
    "smaller than": lambda a, b: larger_than(b, a),
}
