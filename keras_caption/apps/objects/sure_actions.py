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
WAVE, DESK = " a wave", " a desk"
ON = (" on top of", " on")
NOUN = PATTERN.pattern
CLAIM = re.compile(
    rf"(?P<who>{NOUN})(?P<be> (?:is|are))?"
    rf"(?:(?P<verb> (?:{'|'.join(VERBS)}))(?P<wave>{WAVE})?(?P<where> (?:on top of|on|"
    r"at|in|down))?|(?P<on> (?:on top of|on)))(?!\S)"
    r"(?:(?= (?:\w+ )?(?:(?:group|couple|pair|bunch) of |park )?"
    rf"(?P<what>{NOUN})(?!\S)))?"
)


def with_sure_actions(caption: str, actions: Sequence[Action]) -> str:
    """Weakens what a caption says that persons and animals do, where it is not sure.

    Persons who may not sit at a table are "at a table", and those who may not sit on a
    bench, or ride a horse, "with" it. Animals that may not stand are only there.
    Nobody is "on a desk".

    Args:
        caption: str.
        actions: What is surely done, see `likely_actions`.
    """
    sure = {x[:3] for x in actions}

    def said(match):
        """What stands in place of a claim."""
        who, be, verb, wave, where, on, what = (x or "" for x in match.groups())
        category, does, where = category_of(who), verb.strip(), where or on
        at_desk = where in ON and match.string.startswith(DESK, match.end())
        what = category_of(what) if what else ""
        ridden = SPORTS.get(does) or (wave and "surfboard") or what
        if does == STANDING and category in ANIMALS:
            action, weaker = (STANDING, category, ""), where
        elif category != PERSON:
            return match[0]
        elif does in (RIDING, *SPORTS) or (where in ON and what in RIDDEN):
            is_next = what == ridden and (does == RIDING or where in ON)
            action, weaker = (RIDING, PERSON, ridden), " with" if is_next else where
        elif where in ON and what in SAT_ON:
            action, weaker = (SITTING, PERSON, what), " with"
        elif does == SITTING or at_desk:
            where = " at" if at_desk else where
            action, weaker = (SITTING, PERSON, what), where and be + where
        else:
            return match[0]
        return who + (be + verb + wave + where if action in sure else weaker)

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
