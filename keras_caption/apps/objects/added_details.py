import math
from collections.abc import Mapping
from typing import Any

from keras_caption.apps.objects.description import describe, name_of
from keras_caption.apps.objects.details import COLOUR, PLACE, admits
from keras_caption.apps.objects.object_colours import likely_colour
from keras_caption.apps.objects.person_names import PERSON, likely_person_name
from keras_caption.apps.objects.places import likely_places
from keras_caption.predict.prediction import Prediction

SCENE = "place"  # kind of a thing that is no object


def add_details(caption: Prediction, photo: Mapping[str, Any] | None) -> None:
    """Adds what was measured of a photo to its caption, and links its words.

    Objects get a `colour` and a `colour_probability` where the colour is sure. Of
    captions that are then alike, the best one remains. Where no object is detected, the
    caption is what a second opinion sees in the photo, such as "a koala".

    Args:
        caption: `Prediction` of a caption with its objects, which is changed.
        photo: dict of `images` and `extents` of the photo, see `ObjectDetector.place`;
            `None` if objects were given instead of a photo, of which nothing is known.
    """
    if photo is None:
        return
    things = [x for x in caption.things if x["kind"] != SCENE]
    if not caption.objects:
        if things:
            name_thing(caption, things[0])
        return
    classes = caption.inputs.get("classes")  # of a second opinion
    if classes is not None:
        of_boxes = caption.inputs["box_classes"]
        persons = [
            (found, own)
            for found, own in zip(caption.objects, of_boxes, strict=False)
            if found["category"] == PERSON
        ]
        for found, own in persons:
            if own.any():  # it was classified
                name_person(found, own, classes, len(persons) > 1)
    for found in caption.objects:
        measured = photo["images"], photo["extents"], found["box"], found["category"]
        colour, probability = likely_colour(*measured)
        if admits(COLOUR, colour, found["category"], probability):
            found["colour"] = colour
            found["colour_probability"] = round(probability, 4)
    places = [
        place
        for place in likely_places(photo["images"], photo["extents"], classes)
        if admits(PLACE, place["name"], "", place["probability"])
    ]
    described = [
        (describe(text, caption.objects, places, things), score)
        for text, score in caption.best
    ]
    caption.text, caption.links = described[0][0]
    best: dict[str, float] = {}
    for (text, _), score in described:
        best.setdefault(text, score)
    caption.best = [*best.items()]


def name_person(
    found: dict[str, Any], box_classes: Any, classes: Any, several: bool
) -> None:
    """Gives a person a finer name, where one is sure.

    Args:
        found: dict of an object, which is changed.
        box_classes, classes, several: As in
            `keras_caption.apps.objects.person_names.likely_person_name`.
    """
    if sure := likely_person_name(box_classes, classes, several):
        found["name"], probability = sure
        found["name_probability"] = round(probability, 4)


def name_thing(caption: Prediction, thing: Mapping[str, Any]) -> None:
    """Makes a thing the caption of a photo without detected objects.

    Args:
        caption: `Prediction` without a text, which is changed. Its confidence becomes
            the probability of the thing.
        thing: dict, see `SecondOpinion.things_of`.
    """
    caption.text, caption.links = name_of(thing)
    caption.confidence, caption.unsure = thing["probability"], False
    caption.score = math.log(caption.confidence)
    caption.best = [(caption.text, caption.score)]
