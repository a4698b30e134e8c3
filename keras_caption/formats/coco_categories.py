"""COCO's categories of objects, and lists of detected ones."""

from typing import Any

import numpy as np

# COCO's ids of its 80 categories: 1 to 90 but for these.
UNUSED_IDS = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
COCO_IDS = tuple(i for i in range(1, 91) if i not in UNUSED_IDS)
# Words of a name are joined by underscores.
_NAMES = """
person bicycle car motorcycle airplane bus train truck boat traffic_light fire_hydrant
stop_sign parking_meter bench bird cat dog horse sheep cow elephant bear zebra giraffe
backpack umbrella handbag tie suitcase frisbee skis snowboard sports_ball kite
baseball_bat baseball_glove skateboard surfboard tennis_racket bottle wine_glass cup
fork knife spoon bowl banana apple sandwich orange broccoli carrot hot_dog pizza donut
cake chair couch potted_plant bed dining_table toilet tv laptop mouse remote keyboard
cell_phone microwave oven toaster sink refrigerator book clock vase scissors teddy_bear
hair_drier toothbrush
"""
CATEGORIES = tuple(name.replace("_", " ") for name in _NAMES.split())
GREY = 114  # beside photos that are not square


def objects_of(detected: dict[str, Any], i: int) -> list[dict[str, Any]]:
    """Lists the objects of one photo.

    Args:
        detected: dict, what a call returns.
        i: int, the photo's place in the batch.

    Returns:
        List of dict of `category`, str; `score`, float; and `box`, list of float,
        x1, y1, x2, y2 divided by the photo's width and height.
    """
    regions, boxes, scores = (
        np.asarray(detected[name][i]) for name in ("regions", "boxes", "scores")
    )
    return [
        {
            "category": CATEGORIES[region[: len(CATEGORIES)].argmax()],
            "score": round(float(score), 4),
            "box": [round(float(x), 4) for x in box],
        }
        for region, box, score in zip(regions, boxes, scores, strict=True)
        if score > 0
    ]
