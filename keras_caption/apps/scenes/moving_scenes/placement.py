import math
from collections.abc import Sequence

import numpy as np

from keras_caption.apps.scenes.moving_scenes.clip import (
    DIRECTIONS,
    FRAMES,
    Event,
)

GROWTH = 1.6
GAP = 0.03  # between objects that do not touch, and between them and the border
# Distance between the centres of touching objects, as a fraction of half the sum of
# their sides. It is below 1, because most kinds do not fill their box.
CONTACT = 0.84
ATTEMPTS = 10  # to place objects without overlaps


def sample_tracks(
    count: int, events: Sequence[Event], rng: np.random.Generator
) -> np.ndarray | None:
    """Places objects so that exactly the given events happen.

    Args:
        count: int, number of objects.
        events: Sequence of `Event`.
        rng: `numpy.random.Generator`.

    Returns:
        float `(count, FRAMES, 4)`, see `MovingScene`, or `None` if the space does not
        suffice for the sampled sizes and distances.
    """
    tracks = np.zeros((count, FRAMES, 4))
    for i, track in enumerate(tracks):
        track[:, 2] = _sides([event for event in events if event.actor == i], rng)
    for event in events:
        track, ramp = tracks[event.actor], _ramp(event)
        if event.verb == "turn":
            track[:, 3] += ramp * (math.pi if rng.random() < 0.5 else -math.pi)
        elif event.direction is not None:  # a verb of `MOTIONS`
            distance = _distance(event, tracks, rng)
            track[:, :2] += distance * ramp[:, None] * DIRECTIONS[event.direction]
    groups = np.arange(count)  # objects of a group keep their distance
    for event in events:
        if event.partner is not None:
            groups[event.actor] = event.partner
            tracks[event.actor, :, :2] += _to_partner(event, tracks, rng)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    ranges = [_ranges_in_view(tracks, group, events) for group in members]
    if any((low > high).any() for low, high in ranges):
        return None
    for _ in range(ATTEMPTS):
        placed = tracks.copy()
        for group, (low, high) in zip(members, ranges, strict=True):
            placed[group, :, :2] += rng.uniform(low, high)
        if _are_apart(placed, events):
            return placed
    return None


def _ramp(event):
    """Returns the fraction of an event that has happened, float `(FRAMES,)`."""
    passed = (np.arange(FRAMES) - event.start) / (event.end - event.start)
    return np.clip(passed, 0, 1)


def _sides(events, rng):
    """Samples the side of an object in each frame, float `(FRAMES,)`."""
    sizing = [event for event in events if event.verb in ("grow", "shrink")]
    is_large = sizing[0].verb == "shrink" if sizing else rng.random() < 0.25
    exponent = np.full(FRAMES, float(is_large))
    for event in sizing:
        exponent += _ramp(event) * (1 if event.verb == "grow" else -1)
    return rng.uniform(0.18, 0.23) * GROWTH**exponent


def _distance(event, tracks, rng):
    side = tracks[event.actor, event.start, 2]
    if event.verb in ("enter", "leave"):
        return side + rng.uniform(0.1, 0.5)
    if event.verb == "pass behind":
        return side + tracks[event.partner, event.start, 2] + 2 * GAP
    return rng.uniform(0.25, 0.5)


def _to_partner(event, tracks, rng):
    """Returns the shift of an actor, `(2,)`, with which it meets its partner."""
    direction = np.array(DIRECTIONS[event.direction])
    frame = event.start if event.verb == "move away" else event.end
    actor, other = tracks[event.actor, frame], tracks[event.partner, frame]
    distance = (actor[2] + other[2]) / 2
    along = {
        "touch": -CONTACT * distance,
        "move away": CONTACT * distance,
        "pass behind": distance + GAP,
    }[event.verb]
    beside = rng.uniform(-0.03, 0.03)
    return other[:2] - actor[:2] + along * direction + beside * direction[::-1]


def _ranges_in_view(tracks, members, events):
    """Returns the smallest and greatest shifts, `(2,)`, that keep objects in view."""
    low, high = np.full(2, -np.inf), np.full(2, np.inf)
    fixed = np.full(2, np.nan)  # where events determine it; fmax and fmin ignore NaN
    for i in members:
        seen = slice(None)  # frames in which the object is wholly in view
        for event in events:
            if event.actor == i and event.verb in ("enter", "leave"):
                is_end = event.verb == "leave"
                seen = slice(0, event.start + 1) if is_end else slice(event.end, None)
                x, y, side, _ = tracks[i, event.end if is_end else event.start]
                outside = (0.5 + side / 2) * (1 if is_end else -1)
                axis = 0 if event.direction in ("left", "right") else 1
                sign = DIRECTIONS[event.direction][axis]
                fixed[axis] = 0.5 + sign * outside - (x, y)[axis]
        places, halves = tracks[i, seen, :2], tracks[i, seen, 2:3] / 2
        low = np.maximum(low, GAP - (places - halves).min(axis=0))
        high = np.minimum(high, 1 - GAP - (places + halves).max(axis=0))
    return np.fmax(low, fixed), np.fmin(high, fixed)


def _are_apart(tracks, events):
    """Returns whether objects meet only in their events."""
    half = tracks[:, :, 2:3] / 2
    low, high = tracks[:, :, :2] - half, tracks[:, :, :2] + half
    for j in range(len(tracks)):
        for i in range(j):
            gaps = np.maximum(low[i], low[j]) - np.minimum(high[i], high[j])
            least = np.full(FRAMES, GAP)
            for event in events:
                if {event.actor, event.partner} != {i, j}:
                    continue
                if event.verb == "pass behind":
                    least[event.start : event.end + 1] = -1
                    # A larger object would not be hidden.
                    if tracks[i, event.start, 2] > tracks[j, event.start, 2]:
                        return False
                else:
                    sides = (tracks[i, :, 2] + tracks[j, :, 2]) / 2
                    least = np.minimum(least, (CONTACT - 1) * sides)
            if (gaps.max(axis=1) < least - 1e-9).any():
                return False
    return True
