import functools
from typing import Any

from keras import ops, tree

from keras_caption.decoding.beam import Beam
from keras_caption.decoding.search import NextTokens, is_hypothesis


class DiverseBeam(Beam):
    """Beam search in groups that avoid each other's tokens.

    At each step the groups choose their tokens one after the other. The score of a
    token falls by `diversity` for each hypothesis of an earlier group that chose it at
    this step.

    Reference:
        Vijayakumar et al., "Diverse Beam Search for Improved Description of Complex
        Scenes", AAAI 2018, with Hamming diversity.
    """

    def extend(self, values: dict[str, Any], following: NextTokens) -> dict[str, Any]:
        size, shape = following.log_probs.shape[-1], (-1, self.groups, self.width)

        def of_group(number, rows):
            rest = rows.shape[1:]
            rows = ops.reshape(rows, (*shape, *rest))[:, number]
            return ops.reshape(rows, (-1, *rest))

        # How many hypotheses of earlier groups chose each token, for each row.
        groups, counts = [], 0.0
        for number in range(self.groups):
            before = {
                name: ops.reshape(values[name], shape)[:, number]
                for name in ("scores", "log_probs")
            }
            own = tree.map_structure(functools.partial(of_group, number), following)
            penalized = own.scores.all - self.options.diversity * counts
            scores = own.scores._replace(all=penalized)
            longer = super().extend(before, own._replace(scores=scores))
            groups.append(longer)
            # Free places choose tokens too, which count for nothing.
            tokens = ops.one_hot(longer["added"], size, dtype=penalized.dtype)
            is_used = ops.cast(is_hypothesis(longer["scores"]), penalized.dtype)
            tokens = ops.sum(tokens * ops.expand_dims(is_used, 2), axis=1)
            counts = counts + ops.repeat(tokens, self.width, axis=0)
        return {
            name: ops.reshape(ops.stack([g[name] for g in groups], 1), (-1, self.width))
            for name in groups[0]
        }
