from typing import Any

from keras import ops

from keras_caption.decoding.beam import Beam
from keras_caption.decoding.search import is_hypothesis


class DiverseBeam(Beam):
    """Beam search in groups that avoid each other's tokens.

    At each step the groups take their turns: a token loses `diversity` for each
    hypothesis of an earlier group that has just been given it.

    Reference:
        Vijayakumar et al., "Diverse Beam Search for Improved Description of Complex
        Scenes", AAAI 2018, with Hamming diversity.
    """

    def extend(
        self, values: dict[str, Any], scores: Any, log_probs: Any
    ) -> dict[str, Any]:
        size, shape = scores.shape[-1], (-1, self.groups, self.width)
        scores = ops.reshape(scores, (*shape, size))
        log_probs = ops.reshape(log_probs, (*shape, size))
        groups, taken = [], ops.zeros_like(scores[:, 0, :1])
        for number in range(self.groups):
            before = {
                name: ops.reshape(values[name], shape)[:, number]
                for name in ("scores", "log_probs")
            }
            avoiding = scores[:, number] - self.options.diversity * taken
            longer = super().extend(
                before,
                ops.reshape(avoiding, (-1, size)),
                ops.reshape(log_probs[:, number], (-1, size)),
            )
            groups.append(longer)
            tokens = ops.one_hot(longer["added"], size, dtype=scores.dtype)
            lives = ops.cast(is_hypothesis(longer["scores"]), scores.dtype)
            own = ops.sum(tokens * ops.expand_dims(lives, 2), axis=1, keepdims=True)
            taken = taken + own
        return {
            name: ops.reshape(ops.stack([g[name] for g in groups], 1), (-1, self.width))
            for name in groups[0]
        }
