"""The content of a clip: objects, their tracks, and events with times."""

import dataclasses

import numpy as np

FRAMES = 16
FRAMES_PER_SECOND = 4

# Directions, as offsets of x and y, and their opposites, when time runs backwards.
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
OPPOSITES = {"left": "right", "right": "left", "up": "down", "down": "up"}
# Verbs, and the verb of the same event when time runs backwards.
VERBS = {
    "move": "move",
    "turn": "turn",
    "grow": "shrink",
    "shrink": "grow",
    "enter": "leave",
    "leave": "enter",
    "touch": "move away",
    "move away": "touch",
    "pass behind": "pass behind",
}
# Verbs with a partner: the object that is touched, left behind, or in front.
WITH_PARTNER = ("touch", "move away", "pass behind")
# Verbs that change the place of an object, and have a direction.
MOTIONS = ("move", "enter", "leave", *WITH_PARTNER)


@dataclasses.dataclass(frozen=True)
class MovingObject:
    """An object of a clip.

    Attributes:
        kind: One of `keras_caption.apps.scenes.scenes.scene.KINDS`.
        colour: One of `keras_caption.apps.scenes.scenes.scene.COLOURS`.
    """

    kind: str
    colour: str


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that an object does.

    Attributes:
        actor: Index of the object.
        verb: One of `VERBS`.
        direction: One of `DIRECTIONS`, in which the object moves, or `None`.
        partner: Index of the other object, or `None`.
        start, end: Frames between which it happens.
    """

    actor: int
    verb: str
    direction: str | None
    partner: int | None
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class MovingScene:
    """Objects and what they do.

    Attributes:
        objects: Tuple of `MovingObject`, from back to front; no two are of the same
            kind and colour.
        events: Tuple of `Event`, each of which ends before the next one starts.
        tracks: float `(objects, FRAMES, 4)`: centre x and y and side, divided by the
            side of a frame, and angle in radians, clockwise.
    """

    objects: tuple[MovingObject, ...]
    events: tuple[Event, ...]
    tracks: np.ndarray

    def reverse(self) -> "MovingScene":
        """Returns the clip with its frames in reverse order."""
        last = FRAMES - 1
        events = tuple(
            dataclasses.replace(
                event,
                verb=VERBS[event.verb],
                direction=OPPOSITES.get(event.direction or ""),
                start=last - event.end,
                end=last - event.start,
            )
            for event in reversed(self.events)
        )
        return MovingScene(self.objects, events, self.tracks[:, ::-1])
