"""Where the names of detected objects stand on a photo."""

from typing import Any

import numpy as np

HEIGHT, CHARACTER, PADDING = 18, 7.5, 8  # pixels of a label

Place = tuple[float, float, float, float]


def places_of_labels(
    objects: list[dict[str, Any]], width: float, height: float
) -> list[Place | None]:
    """Finds places for labels that do not cover each other.

    A label stands at the top of its object's box or, if that is taken, further below.

    Args:
        objects: List of dict of `category` and `box`, see
            `keras_caption.objects.ObjectDetector.objects_of`.
        width, height: Of the photo as it is shown, in pixels, for labels of 12 pixels.

    Returns:
        List of x1, y1, x2, y2 in pixels, or `None` for an object whose label has no
        place.
    """
    taken: list[Place] = []
    places = []
    for item in objects:
        place = _free_place(item, width, height, taken)
        places.append(place)
        if place:
            taken.append(place)
    return places


def _free_place(item, width, height, taken):
    x, y, _, bottom = np.array(item["box"]) * (width, height, width, height)
    long = len(item["category"]) * CHARACTER + PADDING
    x, y = max(0, min(x, width - long)), min(y, height - HEIGHT)
    while y <= max(bottom, HEIGHT) - HEIGHT / 2 and y + HEIGHT <= height:
        place = (x, y, x + long, y + HEIGHT)
        if not any(_overlap(place, other) for other in taken):
            return place
        y += HEIGHT / 2
    return None


def _overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
