from collections.abc import Mapping
from typing import Any

from keras_caption.features.details import COLOUR, PLACE, admits
from keras_caption.features.object_colours import likely_colour
from keras_caption.features.places import likely_places
from keras_caption.predict.description import describe
from keras_caption.predict.prediction import Prediction


def add_details(caption: Prediction, photo: Mapping[str, Any]) -> None:
    """Adds what was measured of a photo to its caption, and links its words.

    Objects get a `colour` and a `colour_probability` where the colour is sure. Of
    captions that are then alike, the best one remains.

    Args:
        caption: `Prediction` of a caption with its objects, which is changed.
        photo: dict of `images` and `extents` of the photo, see `ObjectDetector.place`.
    """
    for found in caption.objects:
        measured = photo["images"], photo["extents"], found["box"], found["category"]
        colour, probability = likely_colour(*measured)
        if admits(COLOUR, colour, found["category"], probability):
            found["colour"] = colour
            found["colour_probability"] = round(probability, 4)
    classes = caption.inputs.get("classes")  # of a second opinion
    places = [
        place
        for place in likely_places(photo["images"], photo["extents"], classes)
        if admits(PLACE, place["name"], "", place["probability"])
    ]
    things = [x for x in caption.things if x["kind"] != "place"]
    described = [
        (describe(text, caption.objects, places, things), score)
        for text, score in caption.best
    ]
    caption.text, caption.links = described[0][0]
    best = {}
    for (text, _), score in described:
        best.setdefault(text, score)
    caption.best = [*best.items()]
