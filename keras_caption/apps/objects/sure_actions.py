"""Captions without what is not surely done: "at a table", not "sitting at a table"."""

import re
from collections.abc import Sequence

from keras_caption.apps.objects.actions import (
    ANIMALS,
    RIDDEN,
    RIDING,
    SITTING,
    STANDING,
    Action,
)
from keras_caption.apps.objects.object_words import PATTERN, category_of
from keras_caption.apps.objects.person_names import PERSON

# Verbs of riding something without its name, and what is ridden.
SPORTS = {
    "skiing": "skis",
    "snowboarding": "snowboard",
    "skateboarding": "skateboard",
    "surfing": "surfboard",
}
VERBS = (SITTING, RIDING, STANDING, *SPORTS)
# Seats that a person who does not sit there is seldom on. On a bed, people lie.
SAT_ON = ("chair", "couch", "bench")
WAVE = " a wave"
ON = (" on top of", " on")
NOUN = PATTERN.pattern
CLAIM = re.compile(
    rf"(?P<who>{NOUN})(?P<be> (?:is|are))?"
    rf"(?:(?P<verb> (?:{'|'.join(VERBS)}))(?P<wave>{WAVE})?(?P<where> (?:on top of|on|"
    r"at|in|down))?|(?P<on> (?:on top of|on)))(?!\S)"
    rf"(?:(?= (?:\w+ )?(?:(?:group|couple|pair|bunch) of )?(?P<what>{NOUN})(?!\S)))?"
)


def with_sure_actions(caption: str, actions: Sequence[Action]) -> str:
    """Weakens what a caption says that persons and animals do, where it is not sure.

    Persons who may not sit at a table are "at a table", and those who may not sit on a
    bench, or ride a horse, "with" it. Animals that may not stand are only there.

    Args:
        caption: str.
        actions: What is surely done, see `likely_actions`.
    """
    sure = {x[:3] for x in actions}

    def said(match):
        category, verb = category_of(match["who"]), (match["verb"] or "").strip()
        what = category_of(match["what"]) if match["what"] else ""
        where = match["where"] or match["on"] or ""
        ridden = SPORTS.get(verb) or (match["wave"] and "surfboard") or what
        if verb == STANDING and category in ANIMALS:
            action = STANDING, category, ""
            weaker = match["who"] + where
        elif category != PERSON:
            return match[0]
        elif verb in (RIDING, *SPORTS) or (where in ON and what in RIDDEN):
            action = RIDING, PERSON, ridden
            is_next = what == ridden and (verb == RIDING or where in ON)
            weaker = match["who"] + (" with" if is_next else where)
        elif verb == SITTING or (where in ON and what in SAT_ON):
            action = SITTING, PERSON, what
            if where in ON and what in SAT_ON:
                weaker = f"{match['who']} with"
            else:
                be = match["be"] if where else None
                weaker = match["who"] + (be or "") + where
        else:
            return match[0]
        return match[0] if action in sure else weaker

    weaker = CLAIM.sub(said, caption)
    if weaker == caption:
        return caption
    first, with_, others = weaker.replace(" down ", " on ").partition(" with ")
    return first + with_ + others.replace(" with ", " and ")


def probability_of_verb(verb: str, actions: Sequence[Action]) -> list[float]:
    """Probabilities of what a verb says, by the actions that it may be said of.

    Args:
        verb: str.
        actions: As in `with_sure_actions`.
    """
    name = RIDING if verb in SPORTS else verb
    return [x.probability for x in actions if x.name == name]
