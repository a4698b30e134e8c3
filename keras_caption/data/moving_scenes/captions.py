from collections.abc import Sequence

import numpy as np

from keras_caption.data.moving_scenes.clip import (
    WITH_PARTNER,
    Event,
    MovingObject,
)
from keras_caption.data.moving_scenes.language import (
    DIRECTION_PHRASES,
    ENTRANCES,
    EXITS,
    VERB_PHRASES,
)
from keras_caption.data.scenes.language import article

# Of an earlier and a later event; which of them is named first, the form says.
ORDERS = (
    "first {0} then {1}",
    "{0} and then {1}",
    "{0} before {1}",
    "{1} after {0}",
    "after {0} {1}",
    "before {1} {0}",
)
STORY = "first {0} then {1} and finally {2}"


def describe(
    objects: Sequence[MovingObject],
    events: Sequence[Event],
    rng: np.random.Generator,
) -> list[str]:
    """Writes five captions of a clip.

    1. All events in their order, or the first and the last of three if their objects
       need long names;
    2. two events that follow each other, and which comes first;
    3. one event in detail;
    4. an object at rest, during an event, or two objects;
    5. the first and the last event, and which comes first.

    Args:
        objects: Sequence of `MovingObject`.
        events: Sequence of `Event`, in the order of time.
        rng: `numpy.random.Generator`, for the choice of words.

    Returns:
        A list of five str.
    """
    i = int(rng.integers(len(events) - 1))
    return [
        _story(objects, events, rng),
        _in_order(objects, events[i : i + 2], rng),
        _in_detail(objects, _choose(rng, events), rng),
        _scenery(objects, events, rng),
        _in_order(objects, (events[0], events[-1]), rng),
    ]


def _choose(rng, options):
    return options[rng.integers(len(options))]


def _name(o):
    return f"{article(o.colour)} {o.colour} {o.kind}"


def _story(objects, events, rng):
    kinds = [o.kind for o in objects]
    if len(events) == 2 or len(set(kinds)) < len(kinds):
        return _in_order(objects, (events[0], events[-1]), rng)
    names = [f"the {kind}" for kind in kinds]
    return STORY.format(*(_clause(names, event, rng) for event in events))


def _in_order(objects, events, rng):
    form = _choose(rng, ORDERS)
    names = [_name(o) for o in objects]
    clauses = [_clause(names, event, rng) for event in events]
    if events[0].actor == events[1].actor:
        later = 0 if form.index("{0}") > form.index("{1}") else 1
        clauses[later] = clauses[later].replace(names[events[0].actor], "it", 1)
    return form.format(*clauses)


def _clause(names, event, rng):
    """An event as a clause, such as `"a red star moves left"`."""
    words = [names[event.actor], _choose(rng, VERB_PHRASES[event.verb])]
    if event.partner is not None:
        words.append(names[event.partner])
    elif event.direction is not None:
        places = {"enter": ENTRANCES, "leave": EXITS}
        phrases = places.get(event.verb, DIRECTION_PHRASES)[event.direction]
        words.append(_choose(rng, phrases))
    return " ".join(words)


def _in_detail(objects, event, rng):
    names = [_name(o) for o in objects]
    clause = _clause(names, event, rng)
    actor = names[event.actor]
    if event.verb in WITH_PARTNER:
        if event.verb == "touch":
            move = _choose(rng, VERB_PHRASES["move"])
            where = _choose(rng, DIRECTION_PHRASES[event.direction])
            return f"{actor} {move} {where} until {clause.replace(actor, 'it', 1)}"
        clause += f" {DIRECTION_PHRASES[event.direction][1]}"
    if rng.random() < 0.5:
        clause = clause.replace(actor, f"there is {actor} that", 1)
    return clause


def _scenery(objects, events, rng):
    actors = {event.actor for event in events}
    resting = [o for i, o in enumerate(objects) if i not in actors]
    if resting and rng.random() < 0.6:
        rest = _choose(rng, VERB_PHRASES["rest"])
        names = [_name(o) for o in objects]
        during = _clause(names, _choose(rng, events), rng)
        return f"{_name(_choose(rng, resting))} {rest} while {during}"
    a, b = rng.choice(len(objects), 2, replace=False)
    form = _choose(rng, ["there is {} and {}", "a clip of {} and {}"])
    return form.format(_name(objects[a]), _name(objects[b]))
