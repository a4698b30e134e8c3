from typing import Any

import keras
import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int32
from keras import ops

from keras_caption.apps.scenes.scenes.facts import NUMBERED
from keras_caption.apps.scenes.scenes.language import NUMBERS
from keras_caption.apps.scenes.scenes.scene import COLOURS
from keras_caption.apps.scenes.scenes.statements import (
    CATEGORIES,
    KIND_OF,
    PLACE_OF,
    RELATION_OF,
    SIZE_OF,
)
from keras_caption.base.arguments import Tensor
from keras_caption.rewards.ngrams import check_tokens
from keras_caption.text import EOS, PAD, Vocabulary

LONGEST_PHRASE = 4  # words of a phrase
# Values read from a caption at each position: numbers, and descriptions of objects.
STATED = ("count", "claim", "place", "predicate", "predicate_kind")
DESCRIPTIONS = ("mention", "subject", "located")
LARGEST = NUMBERED["place"].index("largest")
ANY_KIND = len(NUMBERED["kind"])  # the kind of "object"


class StatementTruth(keras.layers.Layer):
    """Rewards true statements in captions of `Scenes`, computed in the graph.

    The reward of a caption is the number of its true statements, see
    `keras_caption.synthetic.scenes.judge`, divided by the number of all its statements
    or, if greater, by the mean number of statements of the image's references. (Divided
    by all its statements alone, the shortest and safest caption would score best.) It
    is 0 if a caption states nothing. The tokens are read once, from left to right, with
    the same state as in `judge`, by code that compiles with XLA: no strings, no Python.

    Args:
        vocabulary: `keras_caption.text.Vocabulary` of the captions.
        **kwargs: Further arguments of `keras.layers.Layer`.

    Attributes:
        reads: Names of the tensors of a batch that the reward takes with references.

    Call arguments:
        captions: int `(batch * C, T)`, C adjacent captions for each image: tokens, EOS,
            then PAD.
        references: Ignored.
        properties: int `(batch, N, 5)`, `relations`, bool `(batch, N, N, 11)`, and
            `statements`, float `(batch,)`: see
            `keras_caption.synthetic.scenes.scene_facts`. An object of zeros is padding.

    Returns:
        float32 `(batch * C,)`, from 0 to 1.

    Example:

    ```python
    truth = kc.synthetic.scenes.StatementTruth(model.vocabulary)
    reward = kc.rewards.WeightedSum([cider_d, truth], weights=[1.0, 32.0])
    trainer = kc.training.SelfCritical(model, reward)
    ```
    """

    reads = ("properties", "relations", "statements")

    def __init__(self, vocabulary: Vocabulary, **kwargs: Any):
        super().__init__(dtype="float32", trainable=False, **kwargs)
        self.vocabulary = vocabulary
        words = vocabulary.words
        self.and_token, self.is_token = (
            words.index(word) if word in words else -1 for word in ("and", "is")
        )
        meanings = {
            "kind": {
                word: NUMBERED["kind"].index(kind) if kind else ANY_KIND
                for word, kind in KIND_OF.items()
            },
            "colour": {word: NUMBERED["colour"].index(word) for word in COLOURS},
            "size": {w: NUMBERED["size"].index(size) for w, size in SIZE_OF.items()},
            "number": {**NUMBERS, "only": 1},
        }
        self.meanings = {
            name: np.array([of_word.get(word, 0) for word in words], "int32")
            for name, of_word in meanings.items()
        }
        self.phrases = {
            "relation": numbered(RELATION_OF, "relation", words),
            "place": numbered(PLACE_OF, "place", words),
            "largest": [(ids_of(("the", "largest", "object"), words), LARGEST)],
        }
        self.built = True

    def call(
        self,
        captions: Int[Tensor, "batch*C T"],
        references: Int[Tensor, "batch R T_reference"],
        properties: Int[Tensor, "batch N 5"],
        relations: Bool[Tensor, "batch N N 11"],
        statements: Float[Tensor, " batch"],
    ) -> Float32[Tensor, " batch*C"]:
        counts = self.count(captions, properties, relations).values()
        shape = (ops.shape(properties)[0], -1)
        true, stated = (
            ops.reshape(sum(column), shape) for column in zip(*counts, strict=True)
        )
        least = ops.maximum(ops.expand_dims(statements, 1), 1.0)
        return ops.reshape(true / ops.maximum(stated, least), (-1,))

    def count(
        self,
        captions: Int[Tensor, "batch*C T"],
        properties: Int[Tensor, "batch N 5"],
        relations: Bool[Tensor, "batch N N 11"],
    ) -> dict[str, tuple[Float32[Tensor, " batch*C"], Float32[Tensor, " batch*C"]]]:
        """Counts the statements of captions.

        Args:
            captions, properties, relations: See the arguments of a call.

        Returns:
            dict from each of `keras_caption.synthetic.scenes.CATEGORIES` to a pair of
            float32 `(batch * C,)`: the number of true statements, and of all.
        """
        check_tokens("captions", captions, "(batch * C, T)")
        stated = self.read(ops.cast(captions, "int32"))
        batch, rows = ops.shape(properties)[0], ops.shape(captions)[0]
        properties = ops.cast(properties, "int32")

        def of_image(values):
            """Merges the values of all captions of an image: `(batch, C * T, ...)`."""
            return ops.reshape(values, (batch, -1, *values.shape[2:]))

        def matches(kind, colour, size):
            """Returns which objects match descriptions, bool `(batch, C * T, N)`."""
            described = ops.expand_dims(ops.stack([kind, colour, size], axis=-1), 2)
            actual = ops.expand_dims(properties, 1)
            # Padding has no kind.
            fits = ops.logical_or(described == 0, described == actual[..., :3])
            return ops.logical_and(ops.all(fits, axis=-1), actual[..., 0] > 0)

        stated = {name: of_image(values) for name, values in stated.items()}
        mention = ops.unstack(stated["mention"], 3, axis=-1)
        kind, colour, size = mention
        nothing = ops.zeros_like(kind)
        mentioned = matches(*mention)
        number = ops.sum(ops.cast(mentioned, "int32"), axis=-1)
        predicate = matches(stated["predicate_kind"], stated["predicate"], nothing)

        located = matches(*ops.unstack(stated["located"], 3, axis=-1))
        place = ops.expand_dims(stated["place"], -1)
        where = ops.where(
            place == LARGEST,
            ops.expand_dims(properties[..., 4] > 0, 1),
            ops.expand_dims(properties[..., 3], 1) == place,
        )
        is_there = ops.any(ops.logical_and(located, where), axis=-1)

        subject = matches(*ops.unstack(stated["subject"], 3, axis=-1))
        which = ops.one_hot(stated["claim"] - 1, relations.shape[-1])
        holds = ops.einsum("bmr,bxyr->bmxy", which, ops.cast(relations, "float32"))
        pairs = ops.einsum(
            "bmx,bmxy,bmy->bm",
            ops.cast(subject, "float32"),
            holds,
            ops.cast(mentioned, "float32"),
        )
        statements = {
            "objects": [(kind > 0, ops.any(matches(kind, nothing, nothing), axis=-1))],
            "colours": [
                (colour > 0, ops.any(matches(kind, colour, nothing), axis=-1)),
                (stated["predicate"] > 0, ops.any(predicate, axis=-1)),
            ],
            "sizes": [(size > 0, ops.any(matches(kind, nothing, size), axis=-1))],
            "counts": [(stated["count"] > 0, number == stated["count"])],
            "relations": [
                (stated["place"] > 0, is_there),
                (stated["claim"] > 0, pairs > 0),
            ],
        }

        def total(values):
            values = ops.reshape(ops.cast(values, "float32"), (rows, -1))
            return ops.sum(values, axis=-1)

        return {
            category: (
                sum(total(ops.logical_and(*pair)) for pair in statements[category]),
                sum(total(is_stated) for is_stated, _ in statements[category]),
            )
            for category in CATEGORIES
        }

    def read(
        self, captions: Int32[Tensor, "rows T"]
    ) -> dict[str, Int32[Tensor, "rows T ..."]]:
        """Reads the mentions and the claims of captions.

        Descriptions are the numbers of a kind, a colour and a size, 0 for any.

        Args:
            captions: int32 `(rows, T)`.

        Returns:
            dict of int32 `(rows, T)`, or `(rows, T, 3)` for descriptions: the
            statements of the words at each position, 0 for none. These are `mention`
            and its `count`; `claim`, a relation of `subject` to the mention; `place` of
            `located`; and `predicate`, a colour, of `predicate_kind`.
        """
        seen = {
            name: ops.swapaxes(x, 0, 1) for name, x in self.look_up(captions).items()
        }
        nothing = ops.zeros_like(seen["kind"][0])
        anything = ops.stack([nothing] * 3, axis=-1)
        start = {
            "skip": nothing,  # words of a phrase that are still to be skipped
            "number": nothing,  # of the mention that is being read
            "colour": nothing,
            "size": nothing,
            "mentions": nothing,  # whether there are any
            "first": anything,
            "last": anything,
            "relation": nothing,  # of the subject to the mention that follows
            "largest": nothing,  # whether "the largest object" precedes its mention
        }
        # On TensorFlow, `scan` must collect the same values as it carries.
        stated = dict.fromkeys(DESCRIPTIONS, anything) | dict.fromkeys(STATED, nothing)
        _, states = ops.scan(read_word, {**start, **stated}, seen)
        names = (*STATED, *DESCRIPTIONS)
        return {name: ops.swapaxes(states[name], 0, 1) for name in names}

    def look_up(self, captions: Tensor) -> dict[str, Tensor]:
        """Looks up the meanings of the words at each position of captions.

        Returns:
            dict of int32 `(rows, T)`: of each word its `kind`, `colour`, `size` and
            `number`; of the phrase that begins there its `relation`, `place` or
            `largest`, and their lengths, as `relation_length`; and 0 or 1 for `word`,
            `after_and`, and `ends_is`, the last word after "is".
        """
        is_end = ops.cast(ops.logical_or(captions == EOS, captions == PAD), "int32")
        word = ops.cumsum(is_end, axis=1) == 0
        captions = ops.where(word, captions, PAD)
        length = ops.shape(captions)[1]
        padded = ops.pad(captions, ((0, 0), (1, LONGEST_PHRASE)), constant_values=PAD)
        before = padded[:, :length]
        following = [padded[:, 1 + i : 1 + i + length] for i in range(LONGEST_PHRASE)]
        seen = {name: ops.take(x, captions) for name, x in self.meanings.items()}
        for name, phrases in self.phrases.items():
            seen[name] = seen[f"{name}_length"] = ops.zeros_like(captions)
            for ids, number in sorted(phrases, key=lambda phrase: len(phrase[0])):
                same = [a == b for a, b in zip(following, ids, strict=False)]
                begins = ops.all(ops.stack(same), axis=0)
                seen[name] = ops.where(begins, number, seen[name])
                size = ops.where(begins, len(ids), seen[f"{name}_length"])
                seen[f"{name}_length"] = size
        is_last = ops.logical_and(word, following[1] == PAD)
        flags = {
            "word": word,
            "after_and": before == self.and_token,
            "ends_is": ops.logical_and(before == self.is_token, is_last),
        }
        return seen | {name: ops.cast(x, "int32") for name, x in flags.items()}


def read_word(
    state: dict[str, Tensor], seen: dict[str, Tensor]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Reads the words at one place, as a step of `ops.scan`.

    Args:
        state: dict of int32 `(rows,)`, or `(rows, 3)` for descriptions.
        seen: dict of int32 `(rows,)`, see `StatementTruth.look_up`.

    Returns:
        The next state, twice: what `StatementTruth.read` returns is part of it.
    """

    def both(*conditions):
        result = conditions[0]
        for condition in conditions[1:]:
            result = ops.logical_and(result, condition)
        return result

    def choose(condition, a, b):
        if len(b.shape) > 1:
            condition = ops.expand_dims(condition, -1)
        return ops.where(condition, a, b)

    mentions = state["mentions"] > 0
    # The words are at most one of these.
    rest = both(seen["word"] > 0, state["skip"] == 0)
    relates = both(rest, mentions, seen["relation"] > 0)
    rest = both(rest, ~relates)
    places = both(rest, mentions, seen["place"] > 0)
    rest = both(rest, ~places)
    is_largest = both(rest, seen["largest"] > 0)
    rest = both(rest, ~is_largest)
    mentioned = both(rest, seen["kind"] > 0)

    number, colour, size = (
        choose(both(rest, seen[name] > 0), seen[name], state[name])
        for name in ("number", "colour", "size")
    )
    predicate = both(rest, seen["colour"] > 0, mentions, seen["ends_is"] > 0)
    kind = choose(seen["kind"] == ANY_KIND, 0, seen["kind"])
    mention = ops.stack([kind, colour, size], axis=-1)
    last, zero = state["last"], ops.zeros_like(state["skip"])
    nothing = ops.zeros_like(last)

    subject = choose(seen["after_and"] > 0, state["first"], last)
    largest_before = both(is_largest, mentions)
    largest_after = both(mentioned, state["largest"] > 0)
    colours_last = both(predicate, last[:, 1] == 0)  # unless the mention has a colour
    place = choose(places, seen["place"], zero)
    stated = {
        "mention": choose(mentioned, mention, nothing),
        "count": choose(mentioned, number, zero),
        "claim": choose(mentioned, state["relation"], zero),
        "subject": choose(relates, subject, state["subject"]),
        "place": choose(ops.logical_or(largest_before, largest_after), LARGEST, place),
        "located": choose(mentioned, mention, last),
        "predicate": choose(colours_last, seen["colour"], zero),
        "predicate_kind": last[:, 0],
    }
    skip = ops.maximum(state["skip"] - 1, 0)
    for phrase, name in (
        (relates, "relation"),
        (places, "place"),
        (is_largest, "largest"),
    ):
        skip = choose(phrase, seen[f"{name}_length"] - 1, skip)
    largest = choose(both(is_largest, ~mentions), 1, state["largest"])
    ended = ops.logical_or(mentioned, predicate)
    state = {
        **stated,
        "skip": skip,
        "number": choose(ended, zero, number),
        "colour": choose(ended, zero, colour),
        "size": choose(ended, zero, size),
        "mentions": ops.maximum(state["mentions"], ops.cast(mentioned, "int32")),
        "first": choose(both(mentioned, ~mentions), mention, state["first"]),
        "last": choose(mentioned, mention, last),
        "relation": choose(
            relates, seen["relation"], choose(mentioned, zero, state["relation"])
        ),
        "largest": choose(mentioned, zero, largest),
    }
    return state, state


def ids_of(phrase, words):
    """Returns the tokens of a phrase; -1, which no caption has, for unknown words."""
    return [words.index(word) if word in words else -1 for word in phrase]


def numbered(meanings, name, words):
    """Converts phrases to pairs of their tokens and the number of their meaning."""
    return [
        (ids_of(phrase, words), NUMBERED[name].index(meaning))
        for phrase, meaning in meanings.items()
    ]
