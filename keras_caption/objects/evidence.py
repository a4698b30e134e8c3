"""Which tokens the detected objects of an image support."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int, Int32
from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.decoding.hook import Hook
from keras_caption.decoding.rules import NEG_INF
from keras_caption.decoding.take_by_row import take_by_row
from keras_caption.objects.box_relations import GEOMETRY, part_of
from keras_caption.objects.categories import CATEGORIES
from keras_caption.objects.evidence_tables import EvidenceTables
from keras_caption.objects.evidence_words import RELATIONS
from keras_caption.text import EOS

PERSON = CATEGORIES.index("person")


class ObjectEvidence(EvidenceTables, Hook):
    """Finds the tokens that the objects of an image support after a begun caption.

    A word is admissible if `keras_caption.objects.evidence_words` names it and the
    image has evidence for it. A noun needs an object of its category, a plural needs
    two; after "two" there must be exactly two, also if boxes within others are counted,
    after "a group of" at least three. After "on", "with" or "holding", a noun needs an
    object whose box has this relation to the box of the object that was named last.
    Words of places and actions need the categories or relations that the tables name.
    Other words are never admissible. A caption never ends with a word that needs
    another word after it: words that leave no room for EOS are admissible only where
    all others are like that. In an image without objects, all tokens are admissible.

    The methods compile with XLA: they use no strings and no Python values of tensors.

    Args:
        vocabulary: `keras_caption.text.Vocabulary` of the captions.
    """

    # === Evidence of images ===

    def read(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Computes the evidence of images.

        Args:
            inputs: dict of the inputs of a captioner of objects: `regions`, float
                `(batch, N, dim)`, of which the first 80 values are categories; `boxes`,
                float `(batch, N, 4)`; and `region_mask`, bool `(batch, N)`.

        Returns:
            dict of

            - `counts`, int32 `(batch, 80)`, numbers of objects of each category,
              without those in the box of another one of the same category, which may
              be the same object;
            - `boxes`, int32 `(batch, 80)`, numbers of objects with those;
            - `together`, bool `(batch, 80)`, True for categories with two objects that
              touch or are beside each other;
            - `related`, bool `(batch, 81, 1 + relations, 80)`, True if an object of the
              second category has the relation to one of the first. First category 0
              stands for no object, relation 0 for any relation;
            - `implied`, float32 `(batch, words)`, 1 for words of places and actions
              with evidence.
        """
        regions, boxes = inputs["regions"], inputs["boxes"]
        region_mask = inputs["region_mask"]
        is_object = ops.logical_and(
            regions[..., : len(CATEGORIES)] > 0, ops.expand_dims(region_mask, -1)
        )
        # Categories without a word in the vocabulary cannot be named.
        is_object = ops.logical_and(is_object, self.has_one)  # (batch, N, 80)
        one_hot = ops.cast(is_object, "float32")
        names = "x1", "y1", "x2", "y2"
        corners = ops.split(boxes, 4, axis=-1)
        # (batch, N, 1) and (batch, 1, N) broadcast to all pairs of boxes.
        first = dict(zip(names, corners, strict=True))
        second = {name: ops.transpose(x, (0, 2, 1)) for name, x in first.items()}
        places = ops.arange(ops.shape(boxes)[1])
        # A detector that finds an object twice puts one of the boxes in the other.
        same = ops.matmul(one_hot, ops.transpose(one_hot, (0, 2, 1))) > 0
        is_part = ops.logical_and(same, part_of(first, second, places))
        is_part = ops.any(is_part, axis=-1, keepdims=True)
        found = ops.cast(ops.sum(one_hot, axis=1), "int32")
        one_hot = ops.where(is_part, 0.0, one_hot)
        counts = ops.cast(ops.sum(one_hot, axis=1), "int32")
        present = counts > 0
        other = ops.expand_dims(places, 1) != places  # no box relates to itself
        categories_with = {}  # from a relation to bool (batch, 80, 80)
        for name, holds in GEOMETRY.items():
            lies = ops.cast(ops.logical_and(holds(first, second), other), "float32")
            # Products with one-hot categories turn pairs of boxes, (batch, N, N), into
            # numbers of such pairs by category, (batch, 80, 80).
            second_categories = ops.matmul(lies, one_hot)
            pairs = ops.matmul(ops.transpose(one_hot, (0, 2, 1)), second_categories)
            categories_with[name] = pairs > 0
        near = ops.logical_or(categories_with["touching"], categories_with["beside"])
        together = ops.any(ops.logical_and(near, np.eye(len(CATEGORIES)) > 0), axis=-1)
        related = [categories_with[name] for name, _ in RELATIONS.values()]
        related = ops.stack(related, axis=1)  # (batch, relations, 80, 80)
        related = ops.logical_and(related, self.allowed)
        # After a word of a place, such as a kitchen, "with" and "and" take any object.
        open_ended = np.isin(self.relations, ("with", "and"))[:, None, None]
        any_present = ops.expand_dims(ops.expand_dims(present, 1), 1)
        without_first = ops.logical_and(any_present, open_ended)
        related = ops.concatenate([without_first, related], axis=2)
        # Relation 0, before any word of a relation, takes any object.
        anything = ops.zeros_like(related[:, :1])
        anything = ops.logical_or(anything, any_present)
        related = ops.concatenate([anything, related], axis=1)
        related = ops.transpose(related, (0, 2, 1, 3))
        complete = self.alternatives(counts, related)
        implied = ops.matmul(ops.cast(complete, "float32"), self.follows)
        return {
            "counts": counts,
            "boxes": found,
            "together": together,
            "related": related,
            "implied": ops.cast(implied > 0, "float32"),
        }

    def alternatives(
        self,
        counts: Int32[Tensor, "batch 80"],
        related: Bool[Tensor, "batch 81 relations 80"],
    ) -> Bool[Tensor, "batch alternatives"]:
        """Finds the alternatives of evidence that images have, in the tables' order.

        An alternative is a set of atoms: categories, or triples of two categories and a
        relation. An image has the alternative if it has all of its atoms.

        Args:
            counts, related: As `read` returns them.
        """
        atoms = [counts > 0] + [
            related[:, 1 + a, 1 + r, b : b + 1] for a, r, b in self.triples
        ]
        atoms = ops.cast(ops.concatenate(atoms, axis=1), "float32")
        return ops.matmul(atoms, self.parts) >= self.parts.sum(axis=0)

    # === Admissible next tokens ===

    def __call__(
        self,
        scores: Float32[Tensor, "rows vocabulary_size"],
        tokens: Int32[Tensor, "rows length"],
        index: Int[Tensor, ""],
        state: dict[str, Tensor],
    ) -> Float32[Tensor, "rows vocabulary_size"]:
        """Forbids the tokens without evidence, see `Hook`."""
        return ops.where(self.admissible(tokens, index, state), scores, NEG_INF)

    def admissible(
        self,
        tokens: Int32[Tensor, "rows length"],
        index: Int[Tensor, ""],
        evidence: dict[str, Tensor],
    ) -> Bool[Tensor, "rows vocabulary_size"]:
        """Finds the tokens that may come next.

        Args:
            tokens: int32 `(rows, length)`, of which the first `index` are generated.
            index: int scalar, position of the next token.
            evidence: dict, as `read` returns it, one row for each row of tokens.

        Returns:
            bool `(rows, vocabulary_size)`.
        """
        nouns, governors = self._context(tokens)
        subject, governor = last_above_zero(nouns), last_above_zero(governors)
        groups = ops.take(self.group, tokens)
        several_named = self._is_several(tokens, nouns, governors)
        last = ops.take(tokens, ops.maximum(index - 1, 0), axis=1)  # PAD at the start
        counts, boxes = evidence["counts"], evidence["boxes"]
        unnamed = ops.logical_not(said_before(nouns, 1 + len(CATEGORIES)))

        # === Candidates for the next noun ===
        # The subject is the category that was named last, the governor the last word
        # that decides what the next noun may be, such as "on", "with" or "two".
        of_subject = ops.expand_dims(subject, 1)
        # (rows, 1 + relations, 80)
        related = take_by_row(evidence["related"], of_subject)[:, 0]
        related = ops.logical_and(related, ops.expand_dims(unnamed[:, 1:], 1))
        of_governor = ops.expand_dims(ops.take(self.relation, governor), 1)
        candidates = take_by_row(related, of_governor)[:, 0]
        takes_one, least, most = (
            ops.expand_dims(ops.take(table, governor), 1)
            for table in (self.takes_one, self.least, self.most)
        )
        one = ops.logical_and(candidates, takes_one)
        enough = ops.logical_and(counts >= least, boxes <= most)
        enough = ops.logical_and(enough, self.has_several)
        several = ops.logical_and(candidates, enough)
        unsaid = ops.logical_not(said_before(groups, self.groups))
        implied = ops.logical_and(
            evidence["implied"] > 0, ops.take(unsaid, self.own_group, axis=1)
        )
        implied = ops.logical_and(implied, ops.take(unnamed, self.own_noun, axis=1))
        is_person = ops.expand_dims(subject == 1 + PERSON, 1)
        implied = ops.logical_and(
            implied, ops.logical_or(is_person, np.logical_not(self.is_done))
        )
        places = ops.take(self.places, governor, axis=0) > 0
        next_implied = ops.logical_and(implied, places)

        # === Conditions of words that lead to a noun ===
        has_subject = ops.expand_dims(subject > 0, 1)
        as_places = ops.matmul(
            ops.cast(ops.logical_and(implied, np.logical_not(self.is_done)), "float32"),
            self.leads_to.T,
        )
        as_places = ops.logical_and(as_places > 0, has_subject)
        relation = ops.logical_or(ops.any(related[:, 1:], axis=-1), as_places)
        relation = ops.logical_and(
            relation, ops.logical_or(is_person, np.logical_not(self.of_person))
        )
        countable = ops.logical_and(unnamed[:, 1:], self.has_several)
        of_each = ops.expand_dims(ops.where(countable, counts, 0), 1)
        low, high = self.bounds[:, :1], self.bounds[:, 1:]
        at_most = ops.expand_dims(boxes, 1) <= high
        number = ops.any(ops.logical_and(of_each >= low, at_most), axis=-1)
        said = ops.take(self.said_of, subject, axis=0)
        none = ops.zeros_like(evidence["together"][:, :1])  # subject 0 is no object
        together = ops.concatenate([none, evidence["together"]], axis=1)
        each = take_by_row(together, of_subject)
        each = ops.logical_and(each, several_named)
        predicate = ops.logical_or(
            ops.any(ops.take(relation, self.predicates, axis=1), axis=1, keepdims=True),
            ops.any(said, axis=1, keepdims=True),
        )
        done = ops.logical_and(implied, self.is_done)
        predicate = ops.logical_or(predicate, ops.any(done, axis=1, keepdims=True))
        articles = []
        for article in ("a", "an"):
            of_category, of_word = self.articles[article]
            takes = ops.any(ops.logical_and(one, of_category), axis=1, keepdims=True)
            place = ops.logical_and(next_implied, of_word & ~self.is_done)
            takes = ops.logical_or(takes, ops.any(place, axis=1, keepdims=True))
            if article == "a":
                group = ops.logical_and(number, self.is_group)
                takes = ops.logical_or(takes, ops.any(group, axis=1, keepdims=True))
            articles.append(ops.logical_and(takes, takes_one))
        the = ops.logical_and(next_implied, np.logical_not(self.is_done))
        the = ops.any(the, axis=1, keepdims=True)
        always = ops.ones_like(has_subject)
        singular = ops.logical_and(predicate, ops.logical_not(several_named))
        plural = ops.logical_and(predicate, several_named)
        top = related[:, 1 + self.relations.index("on")]
        top = ops.any(top, axis=1, keepdims=True)
        # The order is that of the conditions in `EvidenceTables`.
        classes = (always, each, singular, plural, *articles, the, top)
        classes = (*classes, one, several, next_implied, relation, number, said)
        classes = ops.cast(ops.concatenate(classes, axis=1), "float32")

        def of_names(previous):
            # "a wine glass", and "two wine glasses" or "with wine glasses"
            article = ops.take(self.is_article, previous)
            return classes * ops.take(self.agreeing, article, axis=0)

        # === Single words, and words that complete a phrase ===
        kinds = ops.take(self.is_kind, last, axis=0)
        follows = ops.matmul(kinds, self.may_follow) > 0
        unknown = ops.logical_not(ops.any(kinds > 0, axis=1, keepdims=True))
        follows = ops.logical_or(follows, unknown)  # a word that only a user has said
        needs = ops.matmul(classes, self.alone) > 0
        words = ops.logical_or(needs, ops.arange(self.size) == EOS)
        words = ops.logical_and(words, follows)
        names = ops.logical_and(
            ops.matmul(of_names(last), self.begins) > 0,
            ops.matmul(kinds, self.name_follows) > 0,
        )
        words = ops.logical_or(words, names)
        # "tennis" is a game, but after "a" the beginning of a name.
        before = ops.take(tokens, ops.maximum(index - 2, 0), axis=1)
        begins = ops.logical_and(
            ops.take(self.begins_name, last), ops.take(self.takes_name, before)
        )
        words = ops.logical_and(words, ops.expand_dims(ops.logical_not(begins), 1))
        begun = ops.expand_dims(last, 1) == self.first
        needs = ops.matmul(of_names(before), self.needs) > 0
        complete = ops.logical_and(begun, needs)
        completes = ops.matmul(ops.cast(complete, "float32"), self.completes) > 0
        words = ops.logical_or(words, completes)
        # The last position is that of EOS.
        fit = ops.logical_and(words, index + 1 + self.to_end < tokens.shape[1])
        words = ops.where(ops.any(fit, axis=1, keepdims=True), fit, words)
        nothing = ops.logical_not(ops.any(counts > 0, axis=1, keepdims=True))
        return ops.logical_or(words, nothing)

    def _context(self, tokens):
        """Returns the category and the governor of each token, 0 for other tokens.

        Both are int32 `(rows, length)`, counted from 1.
        """
        before = ops.pad(tokens[:, :-1], [[0, 0], [1, 0]])
        noun = ops.take(self.noun, tokens)
        is_phrase = ops.logical_and(
            ops.expand_dims(before, -1) == self.first,
            ops.expand_dims(tokens, -1) == self.second,
        )
        of_phrase = ops.max(ops.where(is_phrase, self.noun_of_phrase, 0), axis=-1)
        noun = ops.where(of_phrase > 0, of_phrase, noun)
        follows_noun = ops.pad(noun[:, :-1], [[0, 0], [1, 0]]) > 0
        contents = 1 + self.relations.index("of")
        governor = ops.take(self.governor, tokens)
        is_of = ops.logical_and(tokens == self.of, follows_noun)
        governor = ops.where(is_of, contents, governor)
        return noun, governor

    def _is_several(self, tokens, nouns, governors):
        """Whether the last noun is in the plural, bool `(rows, 1)`."""
        kinds = ops.where(nouns > 0, 1 + ops.take(self.plural, tokens), 0)
        kind = last_above_zero(kinds)  # 1 singular, 2 plural, 3 either
        counted = ops.any(governors > len(RELATIONS), axis=1)
        either = ops.logical_and(kind == 3, counted)
        return ops.expand_dims(ops.logical_or(kind == 2, either), 1)


def said_before(values: Int32[Tensor, "rows length"], size: int) -> Any:
    """Finds the values other than 0 in each row, bool `(rows, size)`."""
    one_hot = ops.expand_dims(values, -1) == ops.arange(size)
    return ops.logical_and(ops.any(one_hot, axis=1), ops.arange(size) > 0)


def last_above_zero(values: Int32[Tensor, "rows length"]) -> Int32[Tensor, " rows"]:
    """Returns the last value of each row that is not 0, or 0."""
    base = 1000  # more than any value, so that the maximum decides by the position
    places = ops.arange(values.shape[1], dtype="int32") * base
    return ops.max(ops.where(values > 0, values + places, 0), axis=1) % base
