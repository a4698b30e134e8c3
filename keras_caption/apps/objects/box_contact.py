"""Where a box lies that touches another one, A and B, by comparisons alone.

Boxes are as in `keras_caption.apps.objects.box_relations`.
"""

MARGIN = 0.02  # tolerance of contact, as a fraction of the image's sides


def above(a, b):
    """A rests on B: its center is above B, and its lower edge is within B."""
    middle = (a["x1"] + a["x2"]) / 2
    is_above = (middle >= b["x1"]) & (middle <= b["x2"])
    return is_above & (a["y2"] >= b["y1"]) & (a["y2"] <= b["y2"] + MARGIN)


def touching(a, b):
    """A and B have a common point, or nearly."""
    across = (a["x2"] - b["x1"] >= -MARGIN) & (b["x2"] - a["x1"] >= -MARGIN)
    return across & (a["y2"] - b["y1"] >= -MARGIN) & (b["y2"] - a["y1"] >= -MARGIN)


def corners_of(box):
    """The box of a list `(x1, y1, x2, y2)`."""
    return dict(zip(("x1", "y1", "x2", "y2"), box, strict=True))
