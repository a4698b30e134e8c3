import collections
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from keras_caption.apps.objects.actions import Action, likely_actions
from keras_caption.apps.objects.black_and_white import is_black_and_white
from keras_caption.apps.objects.description import (
    Link,
    describe,
    links_of,
    name_of,
    named_alone,
)
from keras_caption.apps.objects.details import PLACE, admits
from keras_caption.apps.objects.dog_colours import DOG, likely_dog_colour
from keras_caption.apps.objects.object_colours import pixel_shares
from keras_caption.apps.objects.person_names import PERSON, likely_person_name
from keras_caption.apps.objects.places import PLACES, likely_places
from keras_caption.apps.objects.thing_colours import likely_thing_colour
from keras_caption.predict.prediction import Prediction
from keras_caption.settings.decoding import Decoding
from keras_caption.text.normalization import split_words

SCENE = "place"  # kind of a thing that is no object
# Least probability of the place of a photo of which nothing else is known. Nine of ten
# are right then, and water has 0.54 in a blank blue image.
ALONE = 0.75


def add_details(
    caption: Prediction, photo: Mapping[str, Any] | None, options: Decoding
) -> None:
    """Adds what was measured of a photo to its caption, and links its words.

    Objects get a `colour` and a `colour_probability` where the colour is sure. Of
    captions that are then alike, the best one remains. Where no object is detected, the
    caption is what a second opinion sees in the photo, such as "a koala", or else where
    it was taken, such as "a beach". Details with which a caption would not follow the
    options' texts are left out.

    Args:
        caption: `Prediction` of a caption with its objects, which is changed.
        photo: dict of `images` and `extents` of the photo, see `ObjectDetector.place`;
            `None` if objects were given instead of a photo, of which nothing is known.
        options: `keras_caption.decoding.Decoding`, of which `prefix`, `forbidden` and
            `required` count.
    """
    if photo is None:
        return
    classes, places = caption.inputs.get("classes"), []  # of a second opinion
    if classes is not None:
        seen = classes, caption.inputs["lower_classes"]
        places = [
            place
            for place in likely_places(
                photo["images"], photo["extents"], *seen, caption.objects
            )
            if admits(PLACE, place["name"], place["probability"])
        ]
    if not caption.objects:
        name_photo(caption, places, options)
        return
    is_grey = is_black_and_white(photo["images"], photo["extents"])
    actions = None
    if classes is not None:
        of_boxes = caption.inputs["box_classes"]
        actions = likely_actions(caption.objects, of_boxes)
        add_to_objects(caption.objects, of_boxes, classes, None if is_grey else photo)
    things = [x for x in caption.things if x["kind"] != SCENE]
    known = caption.objects, places, things, is_grey, actions
    described = [
        (describe_within(options, text, *known), score) for text, score in caption.best
    ]
    caption.text, caption.links = described[0][0]
    best: dict[str, float] = {}
    for (text, _), score in described:
        best.setdefault(text, score)
    caption.best = [*best.items()]


def describe_within(
    options: Decoding,
    caption: str,
    objects: Sequence[dict[str, Any]],
    places: Sequence[dict[str, Any]],
    things: Sequence[dict[str, Any]],
    is_grey: bool,
    actions: Sequence[Action] | None,
) -> tuple[str, list[Link]]:
    """`describe` with as many details as the options' texts leave.

    Args:
        options: As in `add_details`.
        caption, objects, places, things, actions: As in `describe`.
        is_grey: bool, `is_black_and_white` of `describe`.
    """
    plain = [{key: x[key] for key in ("category", "score", "box")} for x in objects]
    all_known = (
        *((objects, plain), (places, ()), (things, ())),
        *((is_grey, False), (actions, None)),
    )
    for known in itertools.product(*all_known):
        described = describe(caption, *known)
        if follows(options, described[0]):
            return described
    return caption, links_of(caption, plain)


def follows(options: Decoding, text: str) -> bool:
    """Whether a text has the prefix, all required words and no forbidden ones.

    Args:
        options: As in `add_details`.
        text: str.
    """

    def words_of(text):
        return " ".join(["", *split_words(text), ""])

    words = words_of(text)
    return (
        words.startswith(words_of(options.prefix))
        and all(words_of(x) in words for x in options.required)
        and not any(words_of(x) in words for x in options.forbidden)
    )


def add_to_objects(
    objects: Sequence[dict[str, Any]],
    box_classes: Any,
    classes: Any,
    photo: Mapping[str, Any] | None,
) -> None:
    """Gives persons finer names, and dogs and things colours, where these are sure.

    Args:
        objects: Sequence of dict, which are changed.
        box_classes, classes: See `keras_caption.objects.SecondOpinion`.
        photo: dict as in `add_details`; `None` if it has no colours.
    """
    counts = collections.Counter(x["category"] for x in objects)
    for found, own in zip(objects, box_classes, strict=False):
        if not own.any():  # it was not classified
            continue
        if found["category"] == PERSON:
            sure, key = likely_person_name(own, classes, counts[PERSON] > 1), "name"
        elif photo is None:
            continue
        elif found["category"] == DOG:
            shares = pixel_shares(photo["images"], photo["extents"], found["box"])
            sure, key = likely_dog_colour(own, shares, counts[DOG] > 1), "colour"
        else:
            place = photo["images"], photo["extents"]
            category, box = found["category"], found["box"]
            sure, key = likely_thing_colour(*place, category, box), "colour"
        if sure:
            found[key], probability = sure
            found[f"{key}_probability"] = round(probability, 4)


def name_photo(
    caption: Prediction, places: Sequence[Mapping[str, Any]], options: Decoding
) -> None:
    """Makes a thing or a place the caption of a photo without detected objects.

    Args:
        caption: `Prediction` without a text, which is changed. Its confidence becomes
            the probability of what it names.
        places: Sequence of dict, see `likely_places`.
        options: As in `add_details`.
    """
    named = [name_of(x) for x in caption.things]
    named += [
        named_alone(PLACES[x["name"]].alone, PLACE, x["probability"])
        for x in places
        if PLACES[x["name"]].alone and x["probability"] >= ALONE
    ]
    for text, [link] in named:
        if follows(options, text):
            caption.text, caption.links = text, [link]
            caption.confidence, caption.unsure = link["probability"], False
            caption.score = math.log(caption.confidence)
            caption.best = [(caption.text, caption.score)]
            return
