from typing import Any

from keras import ops

from keras_caption.decoding.beam import Beam
from keras_caption.decoding.best_tokens import Scores
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
        scores = following.scores.sum()
        size, shape = scores.shape[-1], (-1, self.groups, self.width)
        scores = ops.reshape(scores, (*shape, size))
        log_probs = ops.reshape(following.log_probs, (*shape, size))
        no_special = ops.zeros_like(following.scores.special[:1])
        # How many hypotheses of earlier groups chose each token, (batch, 1, tokens).
        groups, counts = [], ops.zeros_like(scores[:, 0, :1])
        for number in range(self.groups):
            before = {
                name: ops.reshape(values[name], shape)[:, number]
                for name in ("scores", "log_probs")
            }
            penalized = scores[:, number] - self.options.diversity * counts
            longer = super().extend(
                before,
                following._replace(
                    scores=Scores(ops.reshape(penalized, (-1, size)), no_special),
                    log_probs=ops.reshape(log_probs[:, number], (-1, size)),
                ),
            )
            groups.append(longer)
            # Free places choose tokens too, which count for nothing.
            tokens = ops.one_hot(longer["added"], size, dtype=scores.dtype)
            is_used = ops.cast(is_hypothesis(longer["scores"]), scores.dtype)
            tokens = tokens * ops.expand_dims(is_used, 2)
            counts = counts + ops.sum(tokens, axis=1, keepdims=True)
        return {
            name: ops.reshape(ops.stack([g[name] for g in groups], 1), (-1, self.width))
            for name in groups[0]
        }
