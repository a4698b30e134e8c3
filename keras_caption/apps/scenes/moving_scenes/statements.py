"""Finds and judges the statements of a caption about a clip."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_caption.apps.scenes.counting import count_statements
from keras_caption.apps.scenes.moving_scenes.clip import (
    DIRECTIONS,
    FRAMES_PER_SECOND,
    MOTIONS,
    VERBS,
    WITH_PARTNER,
    Event,
    MovingObject,
)
from keras_caption.apps.scenes.moving_scenes.language import (
    DIRECTION_PHRASES,
    ENTRANCES,
    EXITS,
    VERB_PHRASES,
)
from keras_caption.apps.scenes.scenes.scene import COLOURS, KINDS
from keras_caption.apps.scenes.scenes.statements import KIND_OF, longest_phrase
from keras_caption.text import split_words

CATEGORIES = ("objects", "colours", "motion", "direction", "order")


def _by_phrase(*phrases):
    return {
        tuple(phrase.split()): meaning
        for table in phrases
        for meaning, alternatives in table.items()
        for phrase in alternatives
    }


VERB_OF = _by_phrase(VERB_PHRASES)
DIRECTION_OF = _by_phrase(DIRECTION_PHRASES, ENTRANCES, EXITS)


@dataclasses.dataclass(frozen=True)
class Mention:
    """An object that a caption mentions; `None` stands for any kind or colour."""

    kind: str | None
    colour: str | None

    def matches(self, o: MovingObject) -> bool:
        return self.kind in (None, o.kind) and self.colour in (None, o.colour)


@dataclasses.dataclass
class Claim:
    """A claim that an object does something; `None` for what is not claimed."""

    actor: Mention
    verb: str
    direction: str | None = None
    partner: Mention | None = None

    def matches(self, event: Event, objects: Sequence[MovingObject]) -> bool:
        """Returns whether an event matches the claim, except for its direction.

        An object that enters, leaves, or meets another one moves, too.
        """
        return (
            self.actor.matches(objects[event.actor])
            and (
                self.verb == event.verb
                or (self.verb == "move" and event.verb in MOTIONS)
            )
            and (
                self.partner is None
                or (
                    event.partner is not None
                    and self.partner.matches(objects[event.partner])
                )
            )
        )


def judge(
    caption: str, objects: Sequence[MovingObject], events: Sequence[Event]
) -> list[tuple[str, bool]]:
    """Judges every statement of a caption.

    Statements are: objects of a kind exist; an object of a kind has a colour; an object
    does something, perhaps to another one ("motion"); it does so in a direction; and
    one of two events comes first ("order"). The last three are true if objects that
    match their whole descriptions do so, and an order if such events happen in this
    order. Words without a meaning are ignored.

    Args:
        caption: str.
        objects: Sequence of `MovingObject`, the clip's.
        events: Sequence of `Event`, the clip's.

    Returns:
        A list of pairs of a category, one of `CATEGORIES`, and a bool, whether the
        statement is true.
    """
    mentions, claims, orders = _Reader().read(split_words(caption))
    statements = []
    for mention in mentions:
        same_kind = [o for o in objects if mention.kind in (None, o.kind)]
        if mention.kind is not None:
            statements.append(("objects", bool(same_kind)))
        if mention.colour is not None:
            statements.append(("colours", any(map(mention.matches, objects))))
    for claim in claims:
        matching = [event for event in events if claim.matches(event, objects)]
        statements.append(("motion", bool(matching)))
        if claim.direction is not None:
            true = any(event.direction == claim.direction for event in matching)
            statements.append(("direction", true))
    for earlier, later in orders:
        true = any(
            a.end <= b.start
            for a in events
            for b in events
            if earlier.matches(a, objects) and later.matches(b, objects)
        )
        statements.append(("order", true))
    return statements


class _Reader:
    """Reads a caption word by word.

    The actor of a claim is the last object mentioned that is not the partner of an
    earlier claim.
    """

    def __init__(self):
        self.mentions, self.claims = [], []
        self.orders = []  # pairs of an earlier and a later claim
        self.actor = self.colour = None
        self.link = None  # the word of time, or "until", between two claims
        self.opening = None  # "after" or "before" at the beginning

    def read(self, words):
        i = 0
        while i < len(words):
            does = longest_phrase(words, i, VERB_OF)
            where = longest_phrase(words, i, DIRECTION_OF)
            if does:
                self.claim(VERB_OF[does])
            elif where:
                if self.claims and self.claims[-1].direction is None:
                    self.claims[-1].direction = DIRECTION_OF[where]
            else:
                self.read_word(words[i])
            i += len(does or where or (words[i],))
        return self.mentions, self.claims, self.orders

    def claim(self, verb):
        if self.actor is None:
            return
        claim = Claim(self.actor, verb)
        if self.claims and self.link != "until":
            pair = (self.claims[-1], claim)
            if self.link in ("then", "before") or self.opening == "after":
                self.orders.append(pair)
            elif self.link == "after" or self.opening == "before":
                self.orders.append(pair[::-1])
            self.opening = None
        self.link = None
        self.claims.append(claim)

    def read_word(self, word):
        if word in ("then", "finally"):
            self.link = "then"
        elif word == "until" or (word in ("before", "after") and self.claims):
            self.link = word
        elif word in ("before", "after"):
            self.opening = word
        elif word in COLOURS:
            self.colour = word
        elif word in KIND_OF:
            self.mention(Mention(KIND_OF[word], self.colour))
            self.colour = None

    def mention(self, mention):
        self.mentions.append(mention)
        last = self.claims[-1] if self.claims else None
        if last and last.verb in WITH_PARTNER and last.partner is None:
            last.partner = mention
        else:
            self.actor = mention


def objects_and_events(
    example: dict[str, Any],
) -> tuple[list[MovingObject], list[Event]]:
    """Converts an example of `MovingScenes` in NumPy to its objects and events."""
    features = example["moving_objects"]
    objects = [
        MovingObject(KINDS[kind], list(COLOURS)[colour])
        for kind, colour in zip(features["kind"], features["colour"], strict=True)
    ]
    names = [field.name for field in dataclasses.fields(Event)]
    columns = zip(*(example["events"][name] for name in names), strict=True)
    events = [
        Event(
            int(actor),
            list(VERBS)[verb],
            [*DIRECTIONS, None][direction],
            None if partner < 0 else int(partner),
            round(float(start) * FRAMES_PER_SECOND),
            round(float(end) * FRAMES_PER_SECOND),
        )
        for actor, verb, direction, partner, start, end in columns
    ]
    return objects, events


def statement_accuracy(
    captions: dict[int, str], examples: Any
) -> dict[str, tuple[float, int]]:
    """Computes the share of the statements of captions that are true.

    Args:
        captions: dict from image id to str.
        examples: `tf.data.Dataset` of examples of `MovingScenes`.

    Returns:
        dict from each of `CATEGORIES`, and `"all"`, to a pair: the share of true
        statements, and the number of statements.
    """
    return count_statements(
        captions,
        examples,
        CATEGORIES,
        lambda caption, example: judge(caption, *objects_and_events(example)),
    )
