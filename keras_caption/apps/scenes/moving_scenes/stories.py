import collections
from collections.abc import Sequence

import numpy as np

from keras_caption.apps.scenes.choice import choose
from keras_caption.apps.scenes.moving_scenes.clip import (
    DIRECTIONS,
    FRAMES,
    MOTIONS,
    VERBS,
    WITH_PARTNER,
    Event,
    MovingObject,
    MovingScene,
)
from keras_caption.apps.scenes.moving_scenes.placement import sample_tracks
from keras_caption.apps.scenes.scenes.scene import COLOURS, KINDS

# Kinds that look different upside down.
TURNING = ("triangle", "star", "heart", "moon", "tree", "house", "arrow")
# Verbs that determine where their object is.
PLACING = ("enter", "leave", *WITH_PARTNER)
ATTEMPTS = 2  # to place the objects of one story


def sample_clip(rng: np.random.Generator) -> MovingScene:
    """Samples the objects and the events of a clip.

    There are two to four objects, and two or three events, one after the other. A clip
    and its reverse are equally probable, so that a model that ignores the order of the
    frames cannot know directions, the order of events, or whether an object enters or
    leaves.

    Args:
        rng: `numpy.random.Generator`.

    Returns:
        `MovingScene`.
    """
    objects, count = sample_objects(rng), int(rng.integers(2, 4))
    while True:
        events = sample_events(objects, count, rng)
        if events is None:
            continue
        for _ in range(ATTEMPTS):
            tracks = sample_tracks(len(objects), events, rng)
            if tracks is not None:
                clip = MovingScene(objects, events, tracks)
                return clip.reverse() if rng.random() < 0.5 else clip


def sample_objects(rng: np.random.Generator) -> tuple[MovingObject, ...]:
    """Samples two to four objects, no two of the same kind and colour."""
    count = rng.integers(2, 5)
    objects: list[MovingObject] = []
    while len(objects) < count:
        new = MovingObject(choose(rng, KINDS), choose(rng, list(COLOURS)))
        if new not in objects:
            objects.append(new)
    return tuple(objects)


def sample_events(
    objects: Sequence[MovingObject], count: int, rng: np.random.Generator
) -> tuple[Event, ...] | None:
    """Samples `count` events, or returns `None` if they do not make a story.

    An object does nothing twice. It enters before and leaves after its other events. It
    enters, leaves or meets another object at most once, and the objects that it meets
    do none of these.
    """
    events, done = [], collections.defaultdict(list)
    for start, end in _sample_times(count, rng):
        verb = choose(rng, list(VERBS))
        actor, other = map(int, rng.choice(len(objects), 2, replace=False))
        if verb == "pass behind":
            actor, other = sorted((actor, other))
        if verb == "turn" and objects[actor].kind not in TURNING:
            return None
        direction = choose(rng, list(DIRECTIONS)) if verb in MOTIONS else None
        partner = other if verb in WITH_PARTNER else None
        done[actor].append(verb)
        events.append(Event(actor, verb, direction, partner, start, end))
    for verbs in done.values():
        if sum(verb in PLACING for verb in verbs) > 1 or len({*verbs}) < len(verbs):
            return None
        if "enter" in verbs[1:] or "leave" in verbs[:-1]:
            return None
    partners = [event.partner for event in events if event.partner is not None]
    if any({*done[partner]} & {*PLACING} for partner in partners):
        return None
    return tuple(events)


def _sample_times(count, rng):
    """First and last frames of events, with pauses between them."""
    durations = rng.integers(4, 8 if count == 2 else 6, count)
    pauses = np.sort(rng.integers(0, FRAMES - durations.sum(), count))
    starts = pauses + np.cumsum(durations) - durations
    return [(int(a), int(a + b)) for a, b in zip(starts, durations, strict=True)]
