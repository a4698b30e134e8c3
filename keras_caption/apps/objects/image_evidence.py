"""What the detected objects of an image are evidence for."""

import numpy as np
from jaxtyping import Bool
from keras import ops

from keras_caption.apps.objects.box_relations import GEOMETRY, part_of
from keras_caption.apps.objects.evidence_rules import EvidenceRules
from keras_caption.base.arguments import Tensor


class ImageEvidence:
    """Reads the evidence of images.

    Args:
        rules: `EvidenceRules`.
    """

    def __init__(self, rules: EvidenceRules):
        self.size = len(rules.categories)
        # Which categories the vocabulary can name, in the singular and in the plural.
        self.has_one, self.has_several = np.zeros((2, self.size), "bool")
        for number, category in (x.fact for x in rules.entries if x.leads):
            if number in ("one", "several"):
                of_number = self.has_one if number == "one" else self.has_several
                of_number[rules.categories.index(category)] = True
        # === Relations ===
        self.geometry = [geometry for geometry, _ in rules.relations.values()]
        self.allowed = np.zeros((len(self.geometry), self.size, self.size), "bool")
        for allowed, (_, pairs) in zip(
            self.allowed, rules.relations.values(), strict=True
        ):
            for first, second, must_differ in pairs:
                allowed[np.ix_(first, second)] = True
                if must_differ:
                    np.fill_diagonal(allowed, False)
        # After a word of a place, such as a kitchen, "with" and "and" take any object.
        self.is_open = np.isin([*rules.relations], ("with", "and"))
        # === Alternatives of implied words ===
        relations, implied = [*rules.relations], [*rules.implied.values()]
        owners = [i for i, of_word in enumerate(implied) for _ in of_word]
        alternatives = [atoms for of_word in implied for atoms in of_word]
        triples = {x for atoms in alternatives for x in atoms if isinstance(x, tuple)}
        atoms = [*range(self.size), *sorted(triples)]
        self.triples = [
            (1 + first, 1 + relations.index(relation), second)
            for first, relation, second in atoms[self.size :]
        ]
        self.parts = np.array(
            [[x in y for y in alternatives] for x in atoms], "float32"
        )
        # A last column is of no word: engines repeat no tensor without values.
        self.implies = np.eye(len(implied) + 1, dtype="float32")[owners]

    def __call__(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Computes the evidence of images, see `ObjectEvidence.read`."""
        regions, boxes = inputs["regions"], inputs["boxes"]
        is_object = ops.logical_and(
            regions[..., : self.size] > 0, ops.expand_dims(inputs["region_mask"], -1)
        )
        # Categories without a word in the vocabulary cannot be named.
        is_object = ops.logical_and(is_object, self.has_one)  # (batch, N, categories)
        one_hot = ops.cast(is_object, "float32")
        found = ops.cast(ops.sum(one_hot, axis=1), "int32")
        # (batch, N, 1) and (batch, 1, N) broadcast to all pairs of boxes.
        corners = ops.split(boxes, 4, axis=-1)
        first = dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))
        second = {name: ops.transpose(x, (0, 2, 1)) for name, x in first.items()}
        places = ops.arange(ops.shape(boxes)[1])
        # A detector that finds an object twice puts one of the boxes in the other.
        same = ops.matmul(one_hot, ops.transpose(one_hot, (0, 2, 1))) > 0
        is_part = ops.logical_and(same, part_of(first, second, places))
        is_part = ops.any(is_part, axis=-1, keepdims=True)
        one_hot = ops.where(is_part, 0.0, one_hot)
        counts = ops.cast(ops.sum(one_hot, axis=1), "int32")
        other = ops.expand_dims(places, 1) != places  # no box relates to itself
        categories_with = {}  # from a relation to bool (batch, categories, categories)
        for name, holds in GEOMETRY.items():
            lies = ops.cast(ops.logical_and(holds(first, second), other), "float32")
            # Products with one-hot categories turn pairs of boxes, (batch, N, N), into
            # numbers of such pairs by category, (batch, categories, categories).
            second_categories = ops.matmul(lies, one_hot)
            pairs = ops.matmul(ops.transpose(one_hot, (0, 2, 1)), second_categories)
            categories_with[name] = pairs > 0
        related = self._related(counts > 0, categories_with)
        complete = ops.cast(self.alternatives(counts > 0, related), "float32")
        implied = ops.matmul(complete, self.implies) > 0
        return {
            "several": ops.where(self.has_several, counts, 0),
            "boxes": found,
            "together": self._together(categories_with),
            "related": related,
            "implied": ops.cast(implied, "float32"),
        }

    def _related(self, present, categories_with):
        """Categories by first category and relation, see `ObjectEvidence.read`."""
        related = ops.stack([categories_with[x] for x in self.geometry], axis=1)
        related = ops.logical_and(related, self.allowed)
        any_present = ops.expand_dims(ops.expand_dims(present, 1), 1)
        without_first = ops.logical_and(any_present, self.is_open[:, None, None])
        related = ops.concatenate([without_first, related], axis=2)
        # Relation 0, before any word of a relation, takes any object.
        anything = ops.zeros_like(related[:, :1])
        anything = ops.logical_or(anything, any_present)
        related = ops.concatenate([anything, related], axis=1)
        return ops.transpose(related, (0, 2, 1, 3))

    def _together(self, categories_with):
        near = ops.logical_or(categories_with["touching"], categories_with["beside"])
        together = ops.any(ops.logical_and(near, np.eye(self.size) > 0), axis=-1)
        return ops.pad(together, [[0, 0], [1, 0]])  # subject 0 is no object

    def alternatives(
        self,
        present: Bool[Tensor, "batch categories"],
        related: Bool[Tensor, "batch subjects relations categories"],
    ) -> Bool[Tensor, "batch alternatives"]:
        """Finds the alternatives of implied words that images have.

        Args:
            present: bool `(batch, categories)`, the categories of objects.
            related: As `__call__` returns it.
        """
        atoms = [present, *(related[:, a, r, b : b + 1] for a, r, b in self.triples)]
        atoms = ops.cast(ops.concatenate(atoms, axis=1), "float32")
        return ops.matmul(atoms, self.parts) >= self.parts.sum(axis=0)
