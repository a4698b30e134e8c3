"""One factory of attention layers, for every encoder and decoder.

A model has the options of its mechanisms as keywords: the `TypedDict` of its keywords
names the sockets that it has, such as `Norms` and `Gate`. Its constructor collects them
in one `AttentionOptions`, and `make_attention` fills the sockets of a
`keras_caption.layers.MultiHeadAttention` by them. One line registers a mechanism of
your own, for instance `GATES["mine"] = make_my_gate`: every model then has it as an
option. Norms are registered in `keras_caption.layers.NORMS`.
"""

import dataclasses
from typing import Any, Literal, TypedDict

from keras_caption.base.arguments import (
    Area,
    Count,
    CountOrZero,
    Positive,
    ShareBelowOne,
    Side,
    check,
)
from keras_caption.base.errors import OWN, InputError
from keras_caption.layers import (
    GEOMETRIES,
    NORMS,
    AdditiveScore,
    AreaMemory,
    AttentionOnAttention,
    GeometryBias,
    LengthTemperature,
    MultiHeadAttention,
    ProductScore,
)
from keras_caption.layers.geometry_bias import GEOMETRY_DIM
from keras_caption.models.initializers import ScaledInitializer
from keras_caption.models.options import Options


def make_geometry_bias(options, num_heads, dtype):
    """Makes the bias of one kind of geometry, or of several in one layer."""
    return GeometryBias(
        num_heads,
        options.relative_geometry,
        options.geometry_dim,
        options.signed_geometry,
        dtype=dtype,
    )


def make_area_memory(options, num_heads, dtype):
    """Makes the memory of areas, or returns `None` for plain attention."""
    if options.area == 1:
        return None
    return AreaMemory(
        # In 1-D area attention, an area is a range of adjacent items: its height is 1.
        max_height=options.area if options.grid_width else 1,
        max_width=options.area,
        grid_width=options.grid_width,
        combined_features=options.combined_features,
        mean_values=options.area_values == "mean",
        dtype=dtype,
    )


# Each function takes `AttentionOptions`, the number of heads and a dtype policy. It
# returns a layer for the socket, or `None` to leave the socket empty.
SCORES = {
    "additive": lambda options, num_heads, dtype: AdditiveScore(dtype=dtype),
    "product": lambda options, num_heads, dtype: ProductScore(dtype=dtype),
}
BIASES = dict.fromkeys(GEOMETRIES, make_geometry_bias)
MEMORIES = {"areas": make_area_memory}
TEMPERATURES = {
    "length": lambda options, num_heads, dtype: LengthTemperature(
        options.length, dtype=dtype
    ),
}
GATES = {
    "aoa": lambda options, num_heads, dtype: AttentionOnAttention(
        options.gate_dropout, dtype=dtype
    ),
}
# From an option that names a mechanism to the table that has the names.
TABLES = {
    "query_norm": NORMS,
    "key_norm": NORMS,
    "score": SCORES,
    "memory": MEMORIES,
    "temperature": TEMPERATURES,
    "gate": GATES,
}
# The one kind of geometry that is no bias of attention, hence in no table: encoders add
# an encoding of the boxes to their inputs.
ABSOLUTE = "absolute"


# === Keywords of models, by the sockets that a model needs for them ===
# `AttentionOptions` describes each, and has its default value.


class Norms(TypedDict, total=False):
    """Options of normalized queries and keys, of encoders with self-attention."""

    query_norm: str | None
    key_norm: str | None
    norm_affine: bool
    attention_epsilon: Positive | None


class Score(TypedDict, total=False):
    """The option of another score than the scaled product."""

    score: str | None


class Geometry(TypedDict, total=False):
    """Options of the bias by boxes, of encoders with self-attention over boxes."""

    geometry: str | None
    geometry_dim: Count
    geometry_layers: CountOrZero | None
    signed_geometry: bool


class Areas(TypedDict, total=False):
    """Options of areas of the input, or of another memory."""

    input_area: Area
    combined_features: bool
    area_values: Literal["sum", "mean"]
    area_output_scale: Positive | None
    area_layers: CountOrZero
    memory: str


class OutputAreas(Areas, total=False):
    """Options of areas of input and output, of decoders with self-attention."""

    output_area: Area


class Temperature(TypedDict, total=False):
    """The option of another divisor of the scores."""

    temperature: str | None


class OutputTemperature(Temperature, total=False):
    """Options of the divisor of the scores, of decoders with self-attention too."""

    output_length: Count | None


class Gate(TypedDict, total=False):
    """The option of a gate, of encoders with self-attention."""

    gate: str | None


class EncoderMechanisms(Norms, Score, Geometry, Areas, Temperature, Gate, total=False):
    """Options of all mechanisms, of an encoder over items with boxes."""


class Mechanisms(
    Norms, Score, Geometry, OutputAreas, OutputTemperature, Gate, total=False
):
    """Options of all mechanisms, of a Transformer over items with boxes."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionOptions(Options):
    """The mechanisms of attention layers, which are keywords of every model.

    A model has only the options that make sense in it: a model without boxes has no
    `geometry`, for example. `keras_caption.models.arguments` lists them. A constructor
    collects those that it is given by `AttentionOptions.of`.

    Attributes:
        query_norm: str, norm of the input's queries, such as `"instance"`, or `None`.
            It is one of `keras_caption.layers.NORMS` (NG-SAN, Eq. 6).
        key_norm: str, norm of the input's keys, or `None`.
        norm_affine: bool, whether these norms learn a gain and an offset.
        attention_epsilon: float, number that these norms add to the variance. If
            `None`, instance normalization adds 1e-5, and the other norms add 1e-3: the
            paper gives no value.
        score: str, score of queries and keys of the input, `"additive"`, `"product"` or
            `None`. It is one of `SCORES`. With `None` the score is the product divided
            by the temperature; nothing divides the score `"product"`.
        geometry: str, bias of the input's scores by its boxes, such as `"query"`, or
            `None`. It is one of `BIASES`: `"content_independent"`, `"query"` or `"key"`
            (NG-SAN, Eq. 11 to 13), or several of these joined by `"+"`. The bias of an
            area is the mean of the biases of its items. `"absolute"` is not part of
            attention: encoders of regions add an encoding of the boxes to their inputs.
        geometry_dim: int, size of a geometry vector per head, d_g. The paper gives no
            size: 80 is inferred from its numbers of parameters.
        geometry_layers: int, number of first blocks with the geometry, or `None` for
            all blocks.
        signed_geometry: bool, whether geometry tells left from right and above from
            below. The paper's geometry (Eq. 8) does not; see
            `keras_caption.layers.GeometryBias`. Words have no boxes: with this option
            an encoding of the boxes is added to the items that a decoder attends to.
        input_area: int, number of items of the largest area of the input; 1 for plain
            attention. An area is a run of items or, on a grid, a rectangle of up to
            `input_area` rows and columns. The encoder and the decoder attend to areas.
        output_area: int, number of tokens of the largest area of the output; 1 for
            plain attention.
        combined_features: bool, whether keys of areas are combined features, not means.
            Combined features are Eq. 9 of the area paper, means are its Eq. 3.
        area_values: str, values of areas, `"sum"` or `"mean"` of the values of their
            items. The paper has sums (Eq. 4); means are ours.
        area_output_scale: float, factor of the initial values of a projection of areas.
            The projection is the output projection of attention to areas or, if a gate
            or a decoder replaces it, the projection of values. Sums of values make the
            branch larger than the residual, and a smaller projection makes up for it;
            Eq. 4 stays as it is. If `None`, the factor is 1 over the mean size of
            areas: 1/3 for up to 5 items, 4/9 for up to 2 x 2 cells. It is 1 for means,
            and if nothing is projected.
        area_layers: int, number of blocks, from the first on, that attend to areas.
            This holds for the encoder and the decoder, and for any other `memory`.
        memory: str, what attention to the input reads, `"areas"` or another entry of
            `MEMORIES`.
        temperature: str, divisor of the scores, `"length"`, or `None` for `sqrt(d)`.
            It is one of `TEMPERATURES`; `"length"` is `sqrt(length + d)` (Spatial,
            Eq. 2).
        output_length: int, length that `temperature` assumes of the output, or `None`
            to count the tokens. Items of the input are always counted. The default is
            BOS and the spatial paper's 14 words.
        gate: str, gate of the input's self-attention, such as `"aoa"`, or `None`. It is
            one of `GATES`: `"aoa"` is attention on attention (AoANet, Eq. 3 to 5), and
            replaces the output projection.
        dropout: float, dropout rate of the attention weights.
        gate_dropout: float, dropout rate of the gate's inputs.
        grid_width: int, items in a row of the input's grid, or `None` for a sequence.
        of_output: bool, whether these are options of attention to the output.

    Raises:
        InputError: If an option has an unknown name or a wrong value, or
            `signed_geometry` has no relative geometry to change.
    """

    # === Keywords of models ===
    query_norm: str | None = None
    key_norm: str | None = None
    norm_affine: bool = False
    attention_epsilon: Positive | None = None
    score: str | None = None
    geometry: str | None = None
    geometry_dim: Count = GEOMETRY_DIM
    geometry_layers: CountOrZero | None = None
    signed_geometry: bool = False
    input_area: Area = 1
    output_area: Area = 1
    combined_features: bool = False
    area_values: Literal["sum", "mean"] = "sum"
    area_output_scale: Positive | None = None
    area_layers: CountOrZero = 2
    memory: str = "areas"
    temperature: str | None = None
    output_length: Count | None = 15
    gate: str | None = None
    # === What a model decides ===
    dropout: ShareBelowOne = 0.0
    gate_dropout: ShareBelowOne = 0.0
    grid_width: Side | None = None
    of_output: bool = False

    def __post_init__(self):
        for field in dataclasses.fields(self):
            check(field.type, **{field.name: getattr(self, field.name)})
        for name, table in TABLES.items():
            value = getattr(self, name)
            if value is not None and value not in table:
                names = ", ".join(map(repr, table))
                default = "" if name == "memory" else "None or "
                raise InputError(
                    f"`{name}` must be {default}one of {names}. "
                    f"Received: {name}={value!r}. {OWN}"
                )
        kinds = self.geometries
        # Unknown kinds, and kinds that are named twice.
        if not set(kinds) <= {*BIASES, ABSOLUTE} or len(set(kinds)) < len(kinds):
            names = ", ".join([*BIASES, ABSOLUTE])
            raise InputError(
                f"`geometry` must be None, one of {names}, or several different ones "
                f"joined by '+'. Received: geometry={self.geometry!r}. {OWN}"
            )
        # One layer has the socket: kinds of different layers cannot be added up.
        if len({BIASES[kind] for kind in self.relative_geometries}) > 1:
            raise InputError(
                f"`geometry` joins kinds of one layer only: {', '.join(GEOMETRIES)}. "
                f"Received: geometry={self.geometry!r}"
            )
        if self.signed_geometry and not self.relative_geometries:
            raise InputError(
                "`signed_geometry` changes a relative geometry: it needs one of "
                f"{', '.join(BIASES)}. Received: geometry={self.geometry!r}"
            )

    @property
    def geometries(self) -> list[str]:
        """Kinds of geometry, a list of str."""
        return self.geometry.split("+") if self.geometry else []

    @property
    def relative_geometries(self) -> list[str]:
        """Kinds of geometry that bias attention scores, a list of str."""
        return [kind for kind in self.geometries if kind != ABSOLUTE]

    @property
    def relative_geometry(self) -> str:
        """Kinds of geometry that bias attention scores, joined by "+"."""
        return "+".join(self.relative_geometries)

    @property
    def absolute_geometry(self) -> bool:
        """Whether boxes are encoded in the encoder's inputs."""
        return ABSOLUTE in self.geometries

    @property
    def area(self) -> int:
        """Items of the largest area."""
        return self.output_area if self.of_output else self.input_area

    @property
    def output_scale(self) -> float:
        """Factor of the initial values of a projection of areas."""
        if self.area == 1:
            return 1.0
        if self.area_output_scale is not None:
            return self.area_output_scale
        mean_size = (self.area + 1) / 2  # of runs of 1 to `area` items
        if self.grid_width is not None:  # rectangles: the same mean for both sides
            mean_size **= 2
        return 1.0 if self.area_values == "mean" else 1 / mean_size

    @property
    def length(self) -> int | None:
        """Number of keys that a temperature assumes, or `None` to count them."""
        return self.output_length if self.of_output else None

    def in_block(self, number: int) -> "AttentionOptions":
        """The options of block `number`: memory and geometry are in the first only."""
        changes: dict[str, Any] = {}
        if number >= self.area_layers:
            changes |= {"input_area": 1, "output_area": 1, "memory": "areas"}
        if self.geometry_layers is not None and number >= self.geometry_layers:
            changes |= {"geometry": None, "signed_geometry": False}
        return dataclasses.replace(self, **changes)

    def for_memory(self) -> "AttentionOptions":
        """The options of a decoder's attention to an encoder's memory.

        In the papers, normalized queries, relations of boxes and the option `gate`
        belong to the encoder.
        """
        return dataclasses.replace(
            self,
            query_norm=None,
            key_norm=None,
            geometry=None,
            signed_geometry=False,
            gate=None,
        )

    def for_output(self) -> "AttentionOptions":
        """The options of a decoder's self-attention."""
        return dataclasses.replace(
            self.for_memory(),
            of_output=True,
            grid_width=None,  # captions are sequences
            memory="areas",  # `memory` and `score` are options of the input
            score=None,
        )


def make_attention(
    num_heads: int,
    key_dim: int,
    options: AttentionOptions | None = None,
    *,
    output_projection: bool = True,
    dtype: Any = None,
    **arguments: Any,
) -> MultiHeadAttention:
    """Makes an attention layer.

    Args:
        num_heads: int, number of heads.
        key_dim: int, size of a query and a key per head.
        options: `AttentionOptions`. Defaults to plain attention.
        output_projection: bool, whether a linear layer mixes the heads; a gate
            replaces it.
        dtype: Keras dtype policy of the layer, or its name.
        **arguments: `query_projection`, `value_projection`, `kernel_initializer` and
            `output_initializer` of `keras_caption.layers.MultiHeadAttention`. The
            options' `output_scale` multiplies the last of them or, without an output
            projection, the initializer of the values.

    Returns:
        `keras_caption.layers.MultiHeadAttention`.

    Raises:
        InputError: If the options have an `area_output_scale`, and neither the values
            nor the output are projected.

    Example:

    ```python
    options = AttentionOptions(query_norm="instance", input_area=3, gate="aoa")
    attention = make_attention(8, 64, options)
    outputs = attention(regions, query_mask=mask)
    ```
    """
    options = options or AttentionOptions()
    fillings = {
        "score": SCORES.get(options.score or ""),
        "bias": BIASES.get(next(iter(options.relative_geometries), "")),
        "memory": MEMORIES[options.memory],
        "temperature": TEMPERATURES.get(options.temperature or ""),
        "gate": GATES.get(options.gate or ""),
    }
    sockets: dict[str, Any] = {
        socket: make and make(options, num_heads, dtype)
        for socket, make in fillings.items()
    }
    # A gate replaces the projection, as AoA does: its linear layers mix the heads.
    output_projection = output_projection and sockets["gate"] is None
    if options.output_scale != 1:
        arguments |= scaled_start(options, output_projection, arguments)
    return MultiHeadAttention(
        num_heads,
        key_dim,
        dropout=options.dropout,
        query_norm=options.query_norm,
        key_norm=options.key_norm,
        norm_affine=options.norm_affine,
        norm_epsilon=options.attention_epsilon,
        **sockets,
        output_projection=output_projection,
        dtype=dtype,
        **arguments,
    )


def scaled_start(options, output_projection, arguments):
    """The argument that begins the last projection of the branch smaller."""
    if output_projection:
        initializer = arguments.get("output_initializer", "glorot_uniform")
        name = "output_initializer"
    elif arguments.get("value_projection", True):
        initializer = arguments.get("kernel_initializer", "glorot_uniform")
        name = "value_initializer"
    elif options.area_output_scale is None:
        return {}  # the default scale has nothing to scale, which is no mistake
    else:
        raise InputError(
            "`area_output_scale` multiplies the first values of a projection: the "
            "attention of this model projects neither values nor output. Received: "
            f"area_output_scale={options.area_output_scale}"
        )
    return {name: ScaledInitializer(initializer, options.output_scale)}
