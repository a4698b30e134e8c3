"""Which tokens the detected objects of an image support."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float32, Int, Int32
from keras import ops

from keras_caption.apps.objects.evidence_context import Context, EvidenceContext
from keras_caption.apps.objects.evidence_grammar import EvidenceGrammar
from keras_caption.apps.objects.evidence_rules import MOST, STATES, EvidenceRules
from keras_caption.apps.objects.evidence_table import (
    IMPLIED,
    Table,
    followers,
)
from keras_caption.apps.objects.image_evidence import ImageEvidence
from keras_caption.base.arguments import Tensor
from keras_caption.decoding.hook import Hook
from keras_caption.decoding.rules import NEG_INF
from keras_caption.decoding.take_by_row import take_by_row
from keras_caption.formats.coco_categories import CATEGORIES
from keras_caption.text import Vocabulary
from keras_caption.text.answers import ARTICLES


class ObjectEvidence(Hook):
    """Finds the tokens that the objects of an image support after a begun caption.

    A word is admissible if a row of a table names it, and the image has evidence for
    it. A noun needs an object of its category, a plural needs two; after "two" there
    must be exactly two, also if boxes within others are counted, after "a group of" at
    least three. After "on", "with" or "holding", a noun needs an object whose box has
    this relation to the box of the object that was named last. Words of places and
    actions need the categories or relations that the table names. Other words are never
    admissible. A caption never ends with a word that needs another word after it: words
    that leave no room for EOS are admissible only where all others are like that. In an
    image without objects, all tokens are admissible.

    The methods compile with XLA: they use no strings and no Python values of tensors.

    Args:
        vocabulary: `keras_caption.text.Vocabulary` of the captions.
        categories: Sequence of str, those of the detector. Defaults to COCO's.
        table: path of a CSV file with the words for these categories, see
            docs/photos.md; or its rows, lists of seven str. Defaults to the table of
            COCO's categories.

    Raises:
        InputError: If a row of the table says something unknown.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        categories: Sequence[str] = CATEGORIES,
        table: Table = None,
    ):
        rules = EvidenceRules(vocabulary, categories, table)
        self.images = ImageEvidence(rules)
        self.context = EvidenceContext(rules)
        self.grammar = EvidenceGrammar(rules)
        relations, implied = [*rules.relations], [*rules.implied]
        # The least and greatest number of objects after each governor.
        bounds = [(2, MOST)] * (1 + len(relations)) + [*rules.numbers.values()]
        self.bounds = np.array(bounds, "int32")
        rows = {x.word: x for x in rules.rows if x.kind in IMPLIED}
        names = ["", *self.context.names]
        self.own_name = np.array([names.index(rows[x].names) for x in implied], "int32")
        # Which implied words each governor, from 0, and each relation lead to.
        self.takes = np.zeros((len(bounds), len(implied)), "bool")
        self.leads_to = np.zeros((len(implied), len(relations)), "float32")
        for i, word in enumerate(implied):
            after = {*rows[word].after.split()}
            self.takes[1 : 1 + len(relations), i] = np.isin(relations, [*after])
            self.takes[0, i] = True
            self.leads_to[i] = np.isin(relations, [*after - {"of", "and"}])
            if rows[word].kind == "verb":
                self.takes[:, i] = True
        # Which implied words, and relations to them, may be said of each subject.
        said = [x for x in rules.facts if x[0] in ("implied", "relation")]
        self.said_of = np.ones((1 + len(categories), len(said)), "bool")
        self.said_of[0, len(implied) :] = False
        for column, fact in zip(self.said_of.T, said, strict=True):
            if fact in rules.subjects:
                column[:] = np.isin(
                    np.arange(-1, len(categories)), rules.subjects[fact]
                )
        # Which facts admit an article, or a form of "be", before what they admit.
        self.leads = np.zeros((len(rules.facts), len(ARTICLES) + 1), "float32")
        for entry in rules.entries:
            if entry.leads:
                before = [entry.kind in followers()[x] for x in (*ARTICLES, "be")]
                self.leads[rules.facts[entry.fact]] += before
        self.leads = self.leads[: -len(relations) - len(STATES)]

    # === Evidence of images ===

    def read(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Computes the evidence of images.

        Args:
            inputs: dict of the inputs of a captioner of objects: `regions`, float
                `(batch, N, dim)`, of which the first values are categories; `boxes`,
                float `(batch, N, 4)`; and `region_mask`, bool `(batch, N)`.

        Returns:
            dict of

            - `several`, int32 `(batch, categories)`, numbers of objects of each
              category that the vocabulary can name in the plural, without those in the
              box of another one of the same category, which may be the same object;
            - `boxes`, int32 `(batch, categories)`, numbers of objects with those;
            - `together`, bool `(batch, 1 + categories)`, True for categories with two
              objects that touch or are beside each other;
            - `related`, bool `(batch, 1 + categories, 1 + relations, categories)`, True
              if an object of the second category has the relation to one of the first.
              First category 0 stands for no object, relation 0 for any relation;
            - `implied`, float32 `(batch, words + 1)`, 1 for words of places and actions
              with evidence; the last is none.
        """
        return self.images(inputs)

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
        facts = self.facts(self.context(tokens), evidence)
        words = self.grammar(tokens, index, facts)
        anything = ops.any(evidence["boxes"] > 0, axis=1, keepdims=True)
        return ops.logical_or(words, ops.logical_not(anything))

    def facts(
        self, context: Context, evidence: dict[str, Tensor]
    ) -> Float32[Tensor, "rows facts"]:
        """Finds which facts hold, in the order of `EvidenceRules.facts`."""
        subject = ops.expand_dims(context.subject, 1)
        relations, categories = self.context.relations, self.context.categories
        takes_one = ops.expand_dims(context.governor <= relations, 1)
        unnamed = context.unnamed[:, 1 : 1 + categories]
        # === Objects ===
        related = take_by_row(evidence["related"], subject)[:, 0]
        related = ops.logical_and(related, ops.expand_dims(unnamed, 1))
        relation = ops.where(takes_one, ops.expand_dims(context.governor, 1), 0)
        candidates = take_by_row(related, relation)[:, 0]
        bounds = ops.take(self.bounds, context.governor, axis=0)
        least, most = bounds[:, :1], bounds[:, 1:]
        one = ops.logical_and(candidates, takes_one)
        enough = ops.logical_and(
            evidence["several"] >= least, evidence["boxes"] <= most
        )
        several = ops.logical_and(candidates, enough)
        number = self._numbers(unnamed, evidence)
        # === Implied words, and relations ===
        said_of = ops.take(self.said_of, context.subject, axis=0)
        words = len(self.own_name)
        implied = ops.logical_and(
            evidence["implied"][:, :words] > 0,
            ops.take(context.unnamed, self.own_name, axis=1),
        )
        implied = ops.logical_and(implied, said_of[:, :words])
        word = ops.logical_and(implied, ops.take(self.takes, context.governor, axis=0))
        with_object = ops.any(related[:, 1:], axis=-1)  # (rows, relations)
        with_place = ops.matmul(ops.cast(implied, "float32"), self.leads_to) > 0
        with_place = ops.logical_and(with_place, said_of[:, words:])
        relation = ops.logical_or(with_object, with_place)
        # === Words that need others behind them ===
        facts = [one, several, word, relation, number]
        facts = ops.cast(ops.concatenate(facts, axis=1), "float32")
        led = ops.matmul(facts, self.leads) > 0
        articles = ops.logical_and(led[:, : len(ARTICLES)], takes_one)
        predicate = led[:, len(ARTICLES) :]
        always = ops.ones_like(takes_one)
        together = take_by_row(evidence["together"], subject)
        together = ops.logical_and(together, context.several)
        of_one = ops.logical_and(predicate, ops.logical_not(context.several))
        of_several = ops.logical_and(predicate, context.several)
        others = [with_object, always, together, of_one, of_several, articles]
        others = ops.cast(ops.concatenate(others, axis=1), "float32")
        return ops.concatenate([facts, others], axis=1)

    def _numbers(self, unnamed, evidence):
        """For which numbers a category has as many objects, bool `(rows, numbers)`."""
        least, most = np.split(self.bounds[1 + self.context.relations :], 2, axis=1)
        counts = ops.expand_dims(ops.where(unnamed, evidence["several"], 0), 1)
        boxes = ops.expand_dims(evidence["boxes"], 1)
        enough = ops.logical_and(counts >= least, boxes <= most)
        return ops.any(enough, axis=-1)
