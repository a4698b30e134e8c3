"""One factory of attention layers, for every encoder and decoder.

A model describes its attention by `AttentionOptions`; `make_attention` fills the
sockets of a `keras_caption.layers.MultiHeadAttention` accordingly. A mechanism of
your own is registered by one line, for instance `GATES["mine"] = make_my_gate`: it is
then an option of every model. Norms by name are in `keras_caption.layers.NORMS`.
"""

import dataclasses
from typing import Any

import keras

from keras_caption.arguments import check
from keras_caption.errors import InputError
from keras_caption.layers import (
    GEOMETRIES,
    NORMS,
    AreaMemory,
    AttentionOnAttention,
    GeometryBias,
    LengthTemperature,
    MultiHeadAttention,
)

# Functions of `AttentionOptions` and a dtype policy that return a layer for a socket.
GATES = {
    "aoa": lambda options, dtype: AttentionOnAttention(
        options.gate_dropout, dtype=dtype
    ),
}
TEMPERATURES = {
    "length": lambda options, dtype: LengthTemperature(options.length, dtype=dtype),
}
ABSOLUTE = "absolute"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """The mechanisms of attention layers.

    Attributes:
        dropout: float, dropout rate of the attention weights.
        query_norm, key_norm: `None`, or one of `keras_caption.layers.NORMS`, as
            `"instance"`: how queries (keys) are normalized (NG-SAN, Eq. 6).
        norm_affine: bool, whether these norms learn a gain and an offset.
        geometry: `None`, `"content_independent"`, `"query"` or `"key"` (NG-SAN, Eq. 11
            to 13), or several of them joined by `"+"`; the bias of an area is the mean
            of its items'. `"absolute"` is not part of attention: encoders of regions
            add it to their inputs.
        geometry_dim: int, size of a geometry vector per head (d_g).
        geometry_layers: int, number of blocks, from the first on, whose attention has
            the geometry as its bias, or `None` for all.
        signed_geometry: bool, whether a relative geometry tells left from right and
            above from below, which the paper's (Eq. 8) does not; see
            `keras_caption.layers.GeometryBias`.
        area: int, items of the largest area to attend to, on a grid its rows and its
            columns; 1 for the items themselves.
        grid_width: int, items in a row of the grid, or `None` for a sequence.
        combined_features: bool, whether keys of areas are those of the area paper's
            Eq. 9, not the means of Eq. 3.
        area_layers: int, number of blocks, from the first on, that attend to areas.
        temperature: `None`, or one of `TEMPERATURES`: `"length"` divides scores by
            `sqrt(length + d)` (Spatial, Eq. 2).
        length: int, number of keys that this temperature assumes, or `None` to count
            them.
        gate: `None`, or one of `GATES`: `"aoa"` is attention on attention (AoANet,
            Eq. 3 to 5), in place of the output projection.
        gate_dropout: float, dropout rate of what the gate reads.

    Raises:
        InputError: If an option has an unknown name, or `signed_geometry` has no
            relative geometry to change.
    """

    dropout: float = 0.0
    query_norm: str | None = None
    key_norm: str | None = None
    norm_affine: bool = False
    geometry: str | None = None
    geometry_dim: int = 64
    geometry_layers: int | None = None
    signed_geometry: bool = False
    area: int = 1
    grid_width: int | None = None
    combined_features: bool = False
    area_layers: int = 2
    temperature: str | None = None
    length: int | None = None
    gate: str | None = None
    gate_dropout: float = 0.0

    def __post_init__(self):
        for option, fillings in (
            ("query_norm", NORMS),
            ("key_norm", NORMS),
            ("temperature", TEMPERATURES),
            ("gate", GATES),
        ):
            value = getattr(self, option)
            check(str | None, **{option: value})
            if value is not None and value not in fillings:
                names = ", ".join(map(repr, fillings))
                raise InputError(
                    f"`{option}` must be None or one of {names}. "
                    f"Received: {option}={value!r}"
                )
        check(str | None, geometry=self.geometry)
        kinds = self.geometries
        if not set(kinds) <= {*GEOMETRIES, ABSOLUTE} or len(set(kinds)) < len(kinds):
            names = ", ".join([*GEOMETRIES, ABSOLUTE])
            raise InputError(
                f"`geometry` must be None, one of {names}, or several different ones "
                f"joined by '+'. Received: geometry={self.geometry!r}"
            )
        check(bool, signed_geometry=self.signed_geometry)
        if self.signed_geometry and not self.relative_geometry:
            raise InputError(
                "`signed_geometry` changes a relative geometry: it needs one of "
                f"{', '.join(GEOMETRIES)}. Received: geometry={self.geometry!r}"
            )

    @property
    def geometries(self) -> list[str]:
        """Kinds of geometry, a list of str."""
        return self.geometry.split("+") if self.geometry else []

    @property
    def relative_geometry(self) -> str:
        """Kinds of geometry that are a bias of attention, joined by "+"."""
        return "+".join(kind for kind in self.geometries if kind != ABSOLUTE)

    @property
    def absolute_geometry(self) -> bool:
        """Whether boxes are encoded in the encoder's inputs."""
        return ABSOLUTE in self.geometries

    def in_block(self, number: int) -> "AttentionOptions":
        """The options of one block: areas and geometry in the first blocks only."""
        changes = {}
        if number >= self.area_layers:
            changes["area"] = 1
        if self.geometry_layers is not None and number >= self.geometry_layers:
            changes |= {"geometry": None, "signed_geometry": False}
        return dataclasses.replace(self, **changes)

    def for_memory(self) -> "AttentionOptions":
        """The options of a decoder's attention to an encoder's memory.

        The papers normalize queries and relate boxes in the encoder only; its gate is
        the encoder's too.
        """
        return dataclasses.replace(
            self,
            query_norm=None,
            key_norm=None,
            geometry=None,
            signed_geometry=False,
            gate=None,
        )

    def for_captions(self, area: int, length: int | None) -> "AttentionOptions":
        """The options of a decoder's self-attention.

        Args:
            area: int, tokens of the largest area; 1 for plain attention.
            length: int, number of keys that a temperature assumes.
        """
        return dataclasses.replace(
            self.for_memory(), area=area, grid_width=None, length=length
        )


def make_attention(
    num_heads: int,
    key_dim: int,
    options: AttentionOptions | None = None,
    *,
    output_projection: bool = True,
    kernel_initializer: str | keras.Initializer = "glorot_uniform",
    output_initializer: str | keras.Initializer = "glorot_uniform",
    dtype: Any = None,
) -> MultiHeadAttention:
    """Makes an attention layer.

    Args:
        num_heads: int, number of heads.
        key_dim: int, size of a query and a key per head.
        options: `AttentionOptions`. Defaults to plain attention.
        output_projection: bool, whether a linear layer mixes the heads; a gate
            replaces it.
        kernel_initializer: Keras initializer, or its name, of the projections of
            queries, keys and values.
        output_initializer: The same of the linear layer that mixes the heads.
        dtype: Keras dtype policy of the layer, or its name.

    Returns:
        `keras_caption.layers.MultiHeadAttention`.

    Example:

    ```python
    options = AttentionOptions(query_norm="instance", area=3, gate="aoa")
    attention = make_attention(8, 64, options)
    outputs = attention(regions, query_mask=mask)
    ```
    """
    options = options or AttentionOptions()
    bias = memory = temperature = gate = None
    if options.relative_geometry:
        bias = GeometryBias(
            num_heads,
            options.relative_geometry,
            options.geometry_dim,
            options.signed_geometry,
            dtype=dtype,
        )
    if options.area > 1:
        memory = AreaMemory(
            max_height=options.area if options.grid_width else 1,
            max_width=options.area,
            grid_width=options.grid_width,
            combined_features=options.combined_features,
            dtype=dtype,
        )
    if options.temperature:
        temperature = TEMPERATURES[options.temperature](options, dtype)
    if options.gate:
        gate = GATES[options.gate](options, dtype)
    return MultiHeadAttention(
        num_heads,
        key_dim,
        dropout=options.dropout,
        query_norm=options.query_norm,
        key_norm=options.key_norm,
        norm_affine=options.norm_affine,
        bias=bias,
        memory=memory,
        temperature=temperature,
        gate=gate,
        output_projection=output_projection and gate is None,
        kernel_initializer=kernel_initializer,
        output_initializer=output_initializer,
        dtype=dtype,
    )
