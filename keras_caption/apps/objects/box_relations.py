"""Spatial relations between the boxes of two objects, A and B.

Boxes are dicts of `x1`, `y1`, `x2` and `y2`, divided by the image's width and height,
of shapes that are broadcast together.
"""

from keras import ops

from keras_caption.apps.objects.box_contact import above, touching


def inside(a, b):
    """Most of A's box is within B's."""
    return common_area(a, b) >= 0.7 * area(a)


def part_of(a, b, places):
    """Nearly all of A's box is within B's, which is larger or, if equal, before A's.

    `places`, int `(N,)`, are positions of boxes; A are rows of pairs, B columns.
    """
    earlier = places < ops.expand_dims(places, 1)
    larger = (area(b) > area(a)) | ((area(b) == area(a)) & earlier)
    return larger & (common_area(a, b) >= 0.95 * area(a))


def around(a, b):
    return inside(b, a)


def beside(a, b):
    """A and B are of similar heights, side by side, and close to each other."""
    narrower = ops.minimum(side(a, "x"), side(b, "x"))
    lower = ops.minimum(side(a, "y"), side(b, "y"))
    higher = ops.maximum(side(a, "y"), side(b, "y"))
    gap = -overlap(a, b, "x")
    is_near = (gap <= narrower / 2) & (gap >= -narrower / 4)
    return is_near & (overlap(a, b, "y") >= lower / 2) & (lower >= higher / 3)


def anywhere(a, b):
    return a["x1"] + b["x1"] >= 0


GEOMETRY = {
    "above": above,
    "inside": inside,
    "around": around,
    "touching": touching,
    "beside": beside,
    "anywhere": anywhere,
}


def side(box, axis):
    return box[f"{axis}2"] - box[f"{axis}1"]


def area(box):
    return side(box, "x") * side(box, "y")


def common_area(a, b):
    return ops.maximum(overlap(a, b, "x"), 0) * ops.maximum(overlap(a, b, "y"), 0)


def overlap(a, b, axis):
    """The length that A and B share along an axis; the gap between them if below 0."""
    last = ops.minimum(a[f"{axis}2"], b[f"{axis}2"])
    return last - ops.maximum(a[f"{axis}1"], b[f"{axis}1"])
