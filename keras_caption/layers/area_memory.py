from collections.abc import Callable
from typing import Any, Unpack

import keras
from jaxtyping import Bool, Float
from keras import ops, tree

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.configs import ConfiguredLayer
from keras_caption.base.errors import InputError
from keras_caption.layers.matrix_dense import MatrixDense
from keras_caption.layers.sockets import size_of

# Added to variances before the square root, as in the released code.
VARIANCE_EPSILON = 1e-6


@keras.saving.register_keras_serializable("keras_caption")
class AreaMemory(ConfiguredLayer):
    """Replaces the items of a memory by its areas.

    An area is a run of neighbouring items or, on a grid, a rectangle of them. Its
    value is the sum of its items' values (Eq. 4). Its key is the mean of its items'
    keys (Eq. 3), or a two-layer perceptron of their mean, their standard deviation
    and learned embeddings of the area's height and width (Eq. 5 to 9). As in the
    released code, heads share the perceptron, it has biases, and the embeddings are
    half as large as a head. With areas of up to S of L items, there are (section 2)

        (L - S) S + (S + 1) S / 2

    areas; on a grid, the product of the numbers of both directions.

    The sum over an area is the sum over an area of one row less plus the sum over its
    last row: one addition for each area, whatever its size, as with a summed-area table
    (Algorithms 1 and 2), but without subtractions, so that nothing cancels. Squared
    deviations are joined in the same way: for two parts of n and m items with means a
    and b,

        M = M_n + M_m + (a - b)^2 n m / (n + m)

    is the sum of squared deviations of their union. The released code's
    `E[x^2] - E[x]^2` loses all digits where the mean is large.

    Fills the `memory` socket of `MultiHeadAttention`.

    Args:
        max_height, max_width: int, height and width of the largest area, in items.
            A height above 1 needs a grid. Default to 1 and 3.
        grid_width: int, number of items in a row of the grid, whose items are stored
            row by row. Defaults to `None`, a memory that is one row of any length.
        combined_features: bool, whether keys are those of Eq. 9 instead of means.
            Defaults to `False`.
        mean_values: bool, whether the value of an area is the mean of its items'
            values instead of their sum (Eq. 4). The paper has no means of values.
            Defaults to `False`.

    Call arguments:
        keys, values: float `(batch, heads, L, dim)`.
        mask: bool, broadcastable to `(batch, T, L)`, True where a query may attend to
            an item. Defaults to `None`, everywhere. A query attends to the areas of
            which it may attend to all items: to none that touches padding and, with a
            causal mask, to none that ends later than the query.

    Returns:
        Keys and values of the areas, float `(batch, heads, areas, dim)`, and, if a
        mask is given, their mask, bool `(batch, T, areas)`. Areas are ordered by
        height, then width, then row by row.

    Raises:
        InputError: If `max_height` is above 1 and `grid_width` is `None`.

    Reference:
        Li, Kaiser, Bengio, Si, "Area Attention", ICML 2019.
    """

    def __init__(
        self,
        max_height: int = 1,
        max_width: int = 3,
        grid_width: int | None = None,
        combined_features: bool = False,
        mean_values: bool = False,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        if grid_width is None and max_height > 1:
            raise InputError(
                f"Areas of {max_height} rows need a grid: give its `grid_width`."
            )
        self.max_height = max_height
        self.max_width = max_width
        self.grid_width = grid_width
        self.combined_features = combined_features
        self.mean_values = mean_values

    def build(self, keys_shape: Shape, values_shape: Shape | None = None) -> None:
        if not self.combined_features:
            return
        dim, policy = size_of(keys_shape), self.dtype_policy
        self.height_embeddings = self.add_weight(
            (self.max_height, dim // 2), initializer="normal", name="heights"
        )
        self.width_embeddings = self.add_weight(
            (self.max_width, dim // 2), initializer="normal", name="widths"
        )
        self.hidden_dense = MatrixDense(dim, "relu", dtype=policy, name="hidden")
        self.key_dense = MatrixDense(dim, dtype=policy, name="key")
        self.hidden_dense.build((*keys_shape[:-1], 2 * dim + 2 * (dim // 2)))
        self.key_dense.build((*keys_shape[:-1], dim))

    def call(
        self,
        keys: Float[Tensor, "batch heads L dim"],
        values: Float[Tensor, "batch heads L dim"],
        mask: Bool[Tensor, "#batch #T L"] | None = None,
    ) -> tuple[Tensor, ...]:
        if self.mean_values:
            area_values = self._average(values)
        else:
            area_values = self._flatten(self._grow(values, add))
        combine = self._combine if self.combined_features else self._average
        area_keys = combine(keys)
        if mask is None:
            return area_keys, area_values
        # The mask becomes features of the items, (batch, 1, L, T): a channel for each
        # query. TensorFlow has no kernel that rolls bool on GPUs, hence float32.
        allowed = ops.cast(ops.swapaxes(mask, 1, 2), "float32")
        allowed = self._flatten(self._grow(ops.expand_dims(allowed, 1), both))
        return area_keys, area_values, ops.swapaxes(ops.squeeze(allowed, 1), 1, 2) > 0

    def share(
        self, weights: Float[Tensor, "batch heads T areas"], length: int
    ) -> Float[Tensor, "batch heads T L"]:
        """Shares the attention weight of every area evenly among its items.

        Args:
            weights: float `(batch, heads, T, areas)`.
            length: int, number of items L.

        Returns:
            Weights of the items, float `(batch, heads, T, L)`.
        """
        # An area's row of this matrix, (1, 1, areas, L), is 1 at its items.
        items = ops.eye(length, dtype=weights.dtype)
        members = self._flatten(self._grow(ops.reshape(items, (1, 1, length, -1)), add))
        return ops.matmul(weights, members / ops.sum(members, axis=-1, keepdims=True))

    def average(
        self, bias: Float[Tensor, "batch heads T L"]
    ) -> Float[Tensor, "batch heads T areas"]:
        """Averages the attention biases of the items of every area.

        The score of a mean key (Eq. 3) is the mean of its items' scores; the bias is
        averaged in the same way. The paper has no bias.

        Args:
            bias: float `(batch, heads, T, L)`, added to the scores of items.

        Returns:
            Biases of the areas, float `(batch, heads, T, areas)`.
        """
        # `_average` takes items on axis 2, and queries as channels.
        return ops.swapaxes(self._average(ops.swapaxes(bias, 2, 3)), 2, 3)

    def _average(self, items):
        """Means over the items of every area (Eq. 3)."""
        means = {
            (height, width): total / (height * width)
            for (height, width), total in self._grow(items, add).items()
        }
        return self._flatten(means)

    def _combine(self, keys):
        """Computes the keys of areas by Eq. 9, from statistics in float32."""
        x = ops.cast(keys, "float32")
        # A single item is its own mean, and deviates by 0.
        statistics = self._grow((x, ops.zeros_like(x)), merge)
        features = {}
        for (height, width), (mean, squares) in statistics.items():
            std = ops.sqrt(squares / (height * width) + VARIANCE_EPSILON)
            shape = (*ops.shape(mean)[:-1], self.height_embeddings.shape[1])
            embeddings = [
                ops.broadcast_to(ops.cast(row, "float32"), shape)
                for row in (
                    self.height_embeddings[height - 1],
                    self.width_embeddings[width - 1],
                )
            ]
            # (batch, heads, rows, columns, 2 * dim + 2 * (dim // 2))
            features[height, width] = ops.concatenate([mean, std, *embeddings], axis=-1)
        features = ops.cast(self._flatten(features), keys.dtype)
        return self.key_dense(self.hidden_dense(features))

    def _grow(self, items: Any, join: Callable) -> dict[tuple[int, int], Any]:
        """Computes features of the areas of every size from those of the items.

        Args:
            items: Tensor `(batch, heads, L, dim)`, or a tuple of tensors of that shape.
            join: Function that computes the features of an area from the features of
                its two parts and their numbers of items.

        Returns:
            dict from height and width to tensors `(batch, heads, rows, columns, dim)`,
            indexed by the upper left corner of the area.
        """

        def on_grid(x):
            batch, heads, length, dim = ops.shape(x)
            rows = 1 if self.grid_width is None else length // self.grid_width
            columns = self.grid_width or length
            return ops.reshape(x, (batch, heads, rows, columns, dim))

        # Rolling brings adjacent parts to the same position; areas that cross the
        # border are cut off at the end. Slices of slices would have shapes that JAX
        # cannot compare when the number of items is unknown.
        def roll(x, rows, columns):
            return tree.map_structure(
                lambda y: ops.roll(y, (-rows, -columns), axis=(2, 3)), x
            )

        items = tree.map_structure(on_grid, items)
        areas = {(1, 1): items}
        for width in range(2, self.max_width + 1):
            # An area of one row is a narrower area and the item to its right.
            right = roll(items, 0, width - 1)
            areas[1, width] = join(areas[1, width - 1], right, width - 1, 1)
        for height in range(2, self.max_height + 1):
            for width in range(1, self.max_width + 1):
                # A higher area is an area of one row less and the row below it.
                upper, lower = areas[height - 1, width], areas[1, width]
                lower = roll(lower, height - 1, 0)
                areas[height, width] = join(upper, lower, (height - 1) * width, width)

        # In TensorFlow, the gradient of indexing is ten times slower than of `slice`.
        def crop(x, height, width):
            batch, heads, rows, columns, dim = ops.shape(x)
            rows, columns = positions(rows, height), positions(columns, width)
            return ops.slice(x, (0, 0, 0, 0, 0), (batch, heads, rows, columns, dim))

        return {
            size: tree.map_structure(lambda x, size=size: crop(x, *size), area)
            for size, area in areas.items()
        }

    def _flatten(self, areas):
        """Concatenates the areas of all sizes, to `(batch, heads, areas, dim)`."""
        rows = []
        for area in areas.values():
            batch, heads, _, _, dim = ops.shape(area)
            rows.append(ops.reshape(area, (batch, heads, -1, dim)))
        return ops.concatenate(rows, axis=2)


def positions(length: int | Tensor, size: int) -> int | Tensor:
    """Counts the positions of a window of `size` in `length` items, at least 0."""
    # Unlike Python's `max`, indexing works for lengths unknown when a graph is traced.
    return ops.shape(ops.arange(length)[size - 1 :])[0]


def add(a: Tensor, b: Tensor, *_: int) -> Tensor:
    """Adds the features of two parts."""
    return a + b


def both(a: Tensor, b: Tensor, *_: int) -> Tensor:
    """Returns 1 where a query may attend to both parts, else 0."""
    return a * b


def merge(
    a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor], n: int, m: int
) -> tuple[Tensor, Tensor]:
    """Merges means and sums of squared deviations of parts of n and m items."""
    (mean_a, squares_a), (mean_b, squares_b) = a, b
    difference = mean_b - mean_a
    mean = mean_a + difference * (m / (n + m))
    return mean, squares_a + squares_b + ops.square(difference) * (n * m / (n + m))
