from typing import Any, Unpack

import keras
import numpy as np
from jaxtyping import Float, Float32
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.compilation import has_accelerator
from keras_caption.base.configs import ConfiguredLayer
from keras_caption.base.errors import InputError
from keras_caption.layers.matrix_dense import MatrixDense

GEOMETRIES = ("content_independent", "query", "key")

# d_g, which the paper does not give, is inferred from its parameter counts. With 80,
# NG-SAN has 41.51M parameters, printed as 41.5M; FC (Eq. 9) with a w_g (Eq. 11) that
# heads share has 4 * (5 * 80 + 80) = 1,920 in four blocks, "about 2k" in section 5.4.
GEOMETRY_DIM = 80
# The smallest side, as a fraction of the image's side, is well below a pixel: only
# degenerate boxes are clamped. The smallest distance is a fraction of the box's side.
MIN_SIDE = 1e-4
MIN_DISTANCE = 1e-3
# Distance, as a fraction of the image's side, at which a direction has half length.
FADING = 0.02
# Items of an image for which G is large: 160 MB for 50 images of 100 items.
MANY_ITEMS = 64
# Frequencies of the sines and cosines of signed offsets, in radians per image side. The
# lowest sine is monotone over the image, the highest completes two periods.
FREQUENCIES = np.pi / 2 * 2.0 ** np.arange(4)


def relative_geometry(
    boxes: Float[Tensor, "batch N 4"], signed: bool = False
) -> Float32[Tensor, "batch N N geometry"]:
    """Computes relative position and size of all pairs of boxes (NG-SAN, Eq. 8).

        f_ij = (log(|x_i - x_j| / w_i), log(|y_i - y_j| / h_i),
                log(w_i / w_j), log(h_i / h_j))

    with (x, y) the centre, w and h the sides of a box. Relative distances are clamped
    to at least 1e-3, which keeps the diagonal and boxes with the same centre finite;
    sides are clamped to at least 1e-4, which keeps boxes of width 0 finite. The paper
    gives neither clamp.

    Absolute distances do not say which box is left of, or above, the other. A signed
    geometry, which is ours, appends the direction of the offset d = (dx, dy) from the
    centre of box i to that of j, in fractions of the image's sides, and the offset:

        u   = d / (|d| + 0.02)
        s_ij = (u_x, u_y, u_x^2 - u_y^2, 2 u_x u_y,
                sin(f dx), sin(f dy), cos(f dx), cos(f dy)),  f = pi / 2, pi, 2 pi, 4 pi

    The first four are cosine and sine of the direction's angle and of twice the angle,
    which separates "beside" from "above". They fade to 0 continuously as the distance
    approaches 0, where a direction means nothing.

    Args:
        boxes: float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's width
            and height.
        signed: bool, whether to append s_ij. Defaults to `False`, the paper's
            geometry.

    Returns:
        float32 `(batch, N, N, 4)`, or `(batch, N, N, 24)` if signed.
    """
    boxes = ops.cast(boxes, "float32")
    corners_min, corners_max = ops.split(boxes, 2, axis=-1)
    sides = ops.maximum(corners_max - corners_min, MIN_SIDE)
    centres = (corners_min + corners_max) / 2
    # Rows are box i, columns box j; the last axis holds x and y.
    sides_i, sides_j = ops.expand_dims(sides, 2), ops.expand_dims(sides, 1)
    offset = ops.expand_dims(centres, 1) - ops.expand_dims(centres, 2)
    features = [
        ops.log(ops.maximum(ops.abs(offset) / sides_i, MIN_DISTANCE)),
        ops.log(sides_i) - ops.log(sides_j),
    ]
    if signed:
        features += signed_geometry(offset)
    return ops.concatenate(features, axis=-1)


def signed_geometry(offset):
    """Returns the parts of s_ij, a list of float `(batch, N, N, ...)`, from offsets."""
    squares = ops.sum(ops.square(offset), axis=-1, keepdims=True)
    # The gradient of the square root is infinite at 0, on the diagonal.
    distance = ops.sqrt(ops.maximum(squares, MIN_SIDE**2))
    direction = offset / (distance + FADING)
    x, y = ops.split(direction, 2, axis=-1)
    # (batch, N, N, 2, frequencies), as a product: LiteRT cannot run an `einsum` here.
    angles = ops.expand_dims(offset, -1) * ops.convert_to_tensor(FREQUENCIES, "float32")
    shape = (*ops.shape(offset)[:3], 2 * len(FREQUENCIES))
    angles = ops.reshape(angles, shape)
    harmonics = [direction, ops.square(x) - ops.square(y), 2 * x * y]
    return [*harmonics, ops.sin(angles), ops.cos(angles)]


@keras.saving.register_keras_serializable("keras_caption")
class GeometryBias(ConfiguredLayer):
    """Attention bias from the relative geometry of boxes, the core of GSA.

    The relative geometry f_ij of two boxes (`relative_geometry`, Eq. 8) becomes
    a vector G_ij = ReLU(FC(f_ij)) (Eq. 9). Each head computes a bias of its scores
    from it, in one or more of three ways:

        content_independent   phi_1 = ReLU(w^T G_ij)          (Eq. 11)
        query                 phi_2 = q'_i^T G_ij             (Eq. 12)
        key                   phi_3 = k'_j^T G_ij             (Eq. 13)

    where w is a vector per head, and q' and k' are projections, per head, of the
    attention layer's input. Biases of several kinds are added up. The paper gives the
    equations for one head. Choices of ours: heads share G_ij, but each has its own w,
    q' and k'; FC and the projections to q' and k' have biases; and phi, unlike Q K^T,
    is not divided by `sqrt(d)`.

    A signed geometry, which is ours, appends the direction that Eq. 8 discards
    (`relative_geometry`).

    Fills the `bias` socket of `keras_caption.layers.MultiHeadAttention`.

    Args:
        num_heads: int, number of attention heads.
        kind: One of `"content_independent"`, `"query"`, `"key"`, or several
            joined by `"+"`, as in `"query+key"`. Defaults to `"query"`.
        geometry_dim: int, size of G_ij, and of q' and k' per head (d_g), which the
            paper leaves open. Defaults to 80, inferred from its numbers of parameters.
        signed: bool, whether f_ij tells left from right and above from below. Defaults
            to `False`, as published.

    Call arguments:
        query: float `(batch, N, dim)`, the input of the attention layer.
        key: float `(batch, N, dim)`; in self-attention, the same as `query`.
        boxes: float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's width
            and height.
        training: bool, whether a gradient is to come, which needs G of all images.
            Otherwise, on CPUs, many regions take one image after another, in less
            memory.

    Returns:
        float `(batch, num_heads, N, N)`, to be added to the attention scores.

    Raises:
        InputError: If `kind` names an unknown kind, or one kind twice.

    Reference:
        Guo et al., CVPR 2020, section 4.2.
    """

    def __init__(
        self,
        num_heads: int,
        kind: str = "query",
        geometry_dim: int = GEOMETRY_DIM,
        signed: bool = False,
        **kwargs: Unpack[KerasOptions],
    ):
        # No autocast: half precision cannot distinguish boxes that are close.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.kind = kind
        self.geometry_dim = geometry_dim
        self.signed = signed
        self._kinds = kind.split("+")
        unknown = sorted(set(self._kinds) - set(GEOMETRIES))
        if unknown or len(set(self._kinds)) < len(self._kinds):
            raise InputError(
                f"`kind` must be one of {', '.join(GEOMETRIES)}, or several different "
                f"ones joined by '+'. Received: kind={kind!r}"
            )
        self.geometry_dense = MatrixDense(
            geometry_dim, activation="relu", dtype=self.dtype_policy, name="geometry"
        )

        def projection(name):
            units = num_heads * geometry_dim
            return MatrixDense(units, dtype=self.dtype_policy, name=name)

        if "query" in self._kinds:
            self.query_dense = projection("geometric_query")
        if "key" in self._kinds:
            self.key_dense = projection("geometric_key")
        if "content_independent" in self._kinds:
            self.content_independent_dense = MatrixDense(
                num_heads,
                activation="relu",
                use_bias=False,
                dtype=self.dtype_policy,
                name="content_independent",
            )

    def build(self, query_shape: Shape, key_shape: Shape, boxes_shape: Shape) -> None:
        batch, items = boxes_shape[:2]
        # f_ij has 4 numbers; s_ij a direction of 4, and sine and cosine of x and y.
        features = 4 + (4 + 4 * len(FREQUENCIES)) * self.signed
        self.geometry_dense.build((batch, items, items, features))
        if "query" in self._kinds:
            self.query_dense.build(query_shape)
        if "key" in self._kinds:
            self.key_dense.build(key_shape)
        if "content_independent" in self._kinds:
            geometry_shape = (batch, items, items, self.geometry_dim)
            self.content_independent_dense.build(geometry_shape)

    def _split_heads(self, x):
        return ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads, self.geometry_dim))

    def call(
        self,
        query: Float[Tensor, "batch N dim"],
        key: Float[Tensor, "batch N dim"],
        boxes: Float[Tensor, "batch N 4"],
        training: bool = False,
    ) -> Float[Tensor, "batch num_heads N N"]:
        items = boxes.shape[1]
        on_cpu = keras.backend.backend() == "tensorflow" and not has_accelerator()
        if training or items is None or items < MANY_ITEMS or not on_cpu:
            return self._biases(query, key, boxes)

        def biases_of_image(inputs):
            return self._biases(*(ops.expand_dims(x, 0) for x in inputs))[0]

        # G depends on boxes only, so that TensorFlow would compute it for all layers
        # before the first one needs it. In a loop it holds G of a few images. A GPU has
        # the memory, and would launch each small operation for each image; JAX plans
        # its memory, and devices that share a batch would exchange its images.
        return ops.map(biases_of_image, (query, key, boxes))

    def _biases(self, query, key, boxes):
        geometry = self.geometry_dense(relative_geometry(boxes, self.signed))
        biases = []
        if "content_independent" in self._kinds:
            biases.append(self._content_independent(geometry))
        if "query" in self._kinds:
            queries = self._split_heads(self.query_dense(query))
            biases.append(ops.einsum("bihg,bijg->bhij", queries, geometry))
        if "key" in self._kinds:
            keys = self._split_heads(self.key_dense(key))
            biases.append(ops.einsum("bjhg,bijg->bhij", keys, geometry))
        return sum(biases[1:], start=biases[0])

    def content_independent(
        self, relative: Float[Tensor, "batch N M geometry"]
    ) -> Float[Tensor, "batch num_heads N M"]:
        """Computes phi_1 of relative geometries f_ij (Eq. 9 and 11)."""
        return self._content_independent(self.geometry_dense(relative))

    def _content_independent(self, geometry):
        bias = self.content_independent_dense(geometry)  # (batch, N, N, heads)
        return ops.transpose(bias, (0, 3, 1, 2))

    def compute_mask(self, query: Tensor, previous_mask: Any = None) -> None:
        return None

    def compute_output_shape(
        self, query_shape: Shape, key_shape: Shape, boxes_shape: Shape
    ) -> Shape:
        return (query_shape[0], self.num_heads, query_shape[1], key_shape[1])
