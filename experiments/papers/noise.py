"""Norms of queries that ask what of instance normalization matters, by `--import`.

    python experiments/run.py --import experiments/papers/noise.py --model san \
        --config.model.query_norm=noise

`"instance_noisy"` puts the shift that normalization takes away back at random. What it
gains over `"noise"`, of queries as they are, is the normalization's, not the noise's.
`"instance_distinct"` is plain attention where fewer than three items are distinct: of
one or two, statistics mean nothing.
"""

import keras
from keras import ops

from keras_caption.base.arguments import CountOrZero, NotNegative, check
from keras_caption.layers import NORMS, InstanceNormalization

# Items are distinct whose squared distance is above this share of the mean of their
# squared norms: it is 2 for orthogonal vectors, and 0.22 for two equal vectors of which
# dropout zeroed a tenth each.
DISTINCT = 0.5


@keras.saving.register_keras_serializable("experiments")
class NoisyNormalization(InstanceNormalization):
    """Instance normalization with noise, and of sets that are large enough.

    Args:
        *args, **kwargs: Of `InstanceNormalization`.
        noise: float, at each training step all items are multiplied by 1 + u and
            shifted by v, sampled per channel from -`noise` to `noise`. Defaults to 0.
        min_distinct: int, number of distinct items below which an example is not
            normalized. Defaults to 0, all are.
    """

    def __init__(self, *args, noise=0.0, min_distinct=0, **kwargs):
        super().__init__(*args, **kwargs)
        check(NotNegative, noise=noise)
        check(CountOrZero, min_distinct=min_distinct)
        self.noise = noise
        self.min_distinct = min_distinct
        if noise:
            self.seed_generator = keras.random.SeedGenerator()

    def call(self, inputs, mask=None, training=False):
        x = super().call(inputs, mask)
        if self.noise and training:
            x = x * (1 + self._noise(inputs)) + self._noise(inputs)
        if self.min_distinct:
            few = distinct_items(inputs, mask) < self.min_distinct
            x = ops.where(ops.reshape(few, (-1, 1, 1)), inputs, x)
        return x if mask is None else ops.where(ops.expand_dims(mask, -1), x, 0.0)

    def _noise(self, inputs):
        return keras.random.uniform(
            (inputs.shape[-1],),
            -self.noise,
            self.noise,
            inputs.dtype,
            seed=self.seed_generator,
        )

    def get_config(self):
        config = {"noise": self.noise, "min_distinct": self.min_distinct}
        return {**super().get_config(), **config}


def distinct_items(items, mask):
    """Number of valid items that differ from all earlier ones, see `DISTINCT`.

    Args:
        items: float `(batch, items, channels)`.
        mask: bool `(batch, items)`, or `None`.

    Returns:
        int32 `(batch,)`.
    """
    items = ops.cast(items, "float32")
    if mask is None:
        mask = ops.ones_like(items[..., 0], dtype="bool")
    items = ops.where(ops.expand_dims(mask, -1), items, 0.0)
    products = ops.matmul(items, ops.swapaxes(items, 1, 2))
    norms = ops.diagonal(products, axis1=1, axis2=2)
    norms = (ops.expand_dims(norms, 1) + ops.expand_dims(norms, 2)) / 2
    # |a - b|^2 = |a|^2 + |b|^2 - 2 a b
    alike = 2 * (norms - products) <= DISTINCT * norms
    alike = ops.logical_and(alike, ops.expand_dims(mask, 1))
    earlier = ops.any(ops.tril(ops.cast(alike, "int32"), -1) > 0, axis=-1)
    new = ops.logical_and(mask, ops.logical_not(earlier))
    return ops.sum(ops.cast(new, "int32"), axis=1)


def _norm(**arguments):
    return lambda affine, **kwargs: NoisyNormalization(affine, **arguments, **kwargs)


NORMS["noise"] = _norm(centred=False, scaled=False, noise=0.5)
NORMS["instance_noisy"] = _norm(noise=0.5)
NORMS["instance_distinct"] = _norm(min_distinct=3)
