from collections.abc import Sequence

import numpy as np

from keras_caption.apps.scenes.choice import choose
from keras_caption.apps.scenes.moving_scenes.clip import Event, MovingObject
from keras_caption.apps.scenes.moving_scenes.language import (
    DIRECTION_PHRASES,
    ENTRANCES,
    EXITS,
    VERB_PHRASES,
)
from keras_caption.apps.scenes.scenes.language import article

# Forms for an earlier event {0} and a later event {1}, which differ in their order.
ORDERS = (
    "first {0} then {1}",
    "{0} and then {1}",
    "{0} before {1}",
    "{1} after {0}",
    "after {0} {1}",
    "before {1} {0}",
)
CAPTIONS = 5
STORY = "first {0} then {1} and finally {2}"


def describe(
    objects: Sequence[MovingObject],
    events: Sequence[Event],
    rng: np.random.Generator,
) -> list[str]:
    """Writes five captions of a clip.

    Each caption describes events and their order. The first one describes all events,
    if short names suffice for their objects; the others describe two events, one of
    them in detail.

    Args:
        objects: Sequence of `MovingObject`.
        events: Sequence of `Event`, in the order of time.
        rng: `numpy.random.Generator`, for the choice of events and words.

    Returns:
        A list of five str, of at most 24 words.
    """
    forms = [str(form) for form in rng.permutation(ORDERS)[:CAPTIONS]]
    captions = [_in_order(form, objects, events, rng) for form in forms]
    kinds = [o.kind for o in objects]
    if len(events) == 3 and len(set(kinds)) == len(kinds):
        names = [f"the {kind}" for kind in kinds]
        captions[0] = STORY.format(*(_clause(names, event, rng) for event in events))
    return captions


def _in_order(form, objects, events, rng):
    """Describes two events, one of them in detail."""
    pair = [events[i] for i in sorted(rng.choice(len(events), 2, replace=False))]
    names = [f"{article(o.colour)} {o.colour} {o.kind}" for o in objects]
    clauses = [_clause(names, event, rng) for event in pair]
    detailed = int(rng.integers(2))
    clauses[detailed] = _detailed_clause(names, pair[detailed], rng)
    if pair[0].actor == pair[1].actor:
        later = 0 if form.index("{0}") > form.index("{1}") else 1
        clauses[later] = clauses[later].replace(names[pair[0].actor], "it", 1)
    return form.format(*clauses)


def _clause(names, event, rng):
    """Describes an event in a clause, such as `"a red star moves left"`."""
    words = [names[event.actor], choose(rng, VERB_PHRASES[event.verb])]
    if event.partner is not None:
        words.append(names[event.partner])
    elif event.direction is not None:
        places = {"enter": ENTRANCES, "leave": EXITS}
        phrases = places.get(event.verb, DIRECTION_PHRASES)[event.direction]
        words.append(choose(rng, phrases))
    return " ".join(words)


def _detailed_clause(names, event, rng):
    """Describes an event in a clause with its direction, even with a partner."""
    clause, actor = _clause(names, event, rng), names[event.actor]
    if event.verb == "touch":
        move = choose(rng, VERB_PHRASES["move"])
        meets = clause.replace(actor, "it", 1)
        return f"{actor} {move} {event.direction} until {meets}"
    if event.partner is not None:
        return f"{clause} {DIRECTION_PHRASES[event.direction][1]}"
    return clause
