"""Every published configuration, and combinations of them, by name.

`create(name, vocabulary=..., region_dim=...)` builds one; keyword arguments
override its values. Sizes not named here are the papers', the defaults of the
models' classes.
"""

import dataclasses
import difflib

from keras_caption.errors import InputError
from keras_caption.models.aoanet import AoANet
from keras_caption.models.captioner import Captioner, configuration
from keras_caption.models.grid_transformer import GridTransformer
from keras_caption.models.ngsan import NGSAN

GIVEN_BY_DATA = (
    "vocabulary_size",
    "region_dim",
    "grid_height",
    "grid_width",
    "grid_dim",
)


@dataclasses.dataclass(frozen=True)
class Preset:
    """A published configuration.

    Attributes:
        model: The model's class.
        source: Paper and table.
        arguments: Arguments of the class that differ from its defaults.
        cider: Published CIDEr-D on COCO's Karpathy test split after self-critical
            training, where there is one.
    """

    model: type[Captioner]
    source: str
    arguments: dict
    cider: float | None = None


def _ngsan(table, cider=None, **arguments):
    return Preset(NGSAN, f"NG-SAN, {table}", arguments, cider)


def _aoanet(table, cider=None, **arguments):
    return Preset(AoANet, f"AoANet, {table}", arguments, cider)


def _area(source, **arguments):
    return Preset(GridTransformer, f"Area Attention, {source}", arguments)


PRESETS = {
    "san": _ngsan("Table 1 and 6", 128.6),
    # What is normalized, and how.
    "nsan": _ngsan("Table 2 and 6", 130.8, query_norm="instance"),
    "nsan_affine": _ngsan("Table 2", query_norm="instance", norm_affine=True),
    "nsan_batch": _ngsan("Table 2", query_norm="batch"),
    "nsan_batch_affine": _ngsan("Table 2", query_norm="batch", norm_affine=True),
    "nsan_layer": _ngsan("Table 2", query_norm="layer"),
    "nsan_layer_affine": _ngsan("Table 2", query_norm="layer", norm_affine=True),
    "nsan_key": _ngsan("Table 3", key_norm="instance"),
    "nsan_query_key": _ngsan("Table 3", query_norm="instance", key_norm="instance"),
    # What the geometric bias depends on.
    "gsan": _ngsan("Table 4 and 6", 131.4, geometry="query"),
    "gsan_key": _ngsan("Table 4", geometry="key"),
    "gsan_content_independent": _ngsan("Table 4", geometry="content_independent"),
    "gsan_query_key": _ngsan("Table 4", geometry="query+key"),
    "gsan_all": _ngsan("Table 4", geometry="content_independent+query+key"),
    "gsan_absolute": _ngsan("Table 4", geometry="absolute"),
    # Both.
    "ngsan": _ngsan("Table 6", 132.1, query_norm="instance", geometry="query"),
    "ngsan_key": _ngsan("Table 6", query_norm="instance", geometry="key"),
    # Of two papers: nobody has published it.
    "ngsan_aoa": Preset(
        NGSAN,
        "NG-SAN with AoANet's gates",
        {"query_norm": "instance", "geometry": "query", "gate": "aoa"},
    ),
    "aoanet": _aoanet("Table 1 and 4", 129.8),
    # Without refining, with and without AoA in it, and what the decoder makes of
    # one head's or several heads' attention.
    "aoanet_base": _aoanet("Table 4", refining=None, context="linear", decoder_heads=1),
    "aoanet_refine": _aoanet(
        "Table 4", refining="attention", context="linear", decoder_heads=1
    ),
    "aoanet_refine_aoa": _aoanet("Table 4", context="linear", decoder_heads=1),
    **{
        f"aoanet_{heads}_{context}": _aoanet(
            "Table 4", refining=None, context=context, decoder_heads=number
        )
        for heads, number in (("single", 1), ("multi", 8))
        for context in ("lstm", "lstm_aoa", "aoa")
    },
    # On grids: how large areas are, with plain and with combined features.
    "area": _area("Table 4, 3 x 3", max_area=3),
    "area_regular": _area("Table 4, regular attention"),
    "area_2x2": _area("Table 4, 2 x 2, Eq. 3 and 4", max_area=2),
    "area_3x3": _area("Table 4, 3 x 3, Eq. 3 and 4", max_area=3),
    "area_3x3_2": _area(
        "Table 4, 3 x 3, Eq. 9 and 4", max_area=3, combined_features=True
    ),
    "spatial": Preset(
        GridTransformer,
        "Spatial self-attention",
        {
            "grid_height": 14,
            "grid_width": 14,
            "grid_dim": 512,
            "num_layers": 2,
            "decoder_layers": 4,
            "feedforward_dim": 1024,
            "branch_dropout": 0.0,
            "temperature": "length",
        },
    ),
}


def presets():
    """Names of the published configurations, in the order of their papers."""
    return list(PRESETS)


def _find(name):
    if name not in PRESETS:
        near = difflib.get_close_matches(str(name), PRESETS, n=3, cutoff=0.4)
        hint = f"Did you mean {' or '.join(near)}?" if near else "See presets()."
        raise InputError(f"There is no model named {name!r}. {hint}")
    return PRESETS[name]


def arguments(name):
    """All arguments of a preset's model that are not about data, by name.

    Args:
        name: One of `presets()`.

    Returns:
        dict from argument to value.

    Raises:
        InputError: If there is no such preset; the nearest names are given.
    """
    preset = _find(name)
    defaults = configuration(preset.model)
    values = {**defaults, **preset.arguments}
    return {name: x for name, x in values.items() if name not in GIVEN_BY_DATA}


def data_arguments(name):
    """Names of a preset's arguments that the data decide, besides the vocabulary's.

    Args:
        name: One of `presets()`.
    """
    has = configuration(_find(name).model)
    return [name for name in GIVEN_BY_DATA if name in has and name != "vocabulary_size"]


def create(name, *, vocabulary=None, vocabulary_size=None, **overrides):
    """A captioning model of a published configuration.

    Args:
        name: One of `presets()`.
        vocabulary: `keras_caption.text.Vocabulary`; the model carries it, and
            generates strings.
        vocabulary_size: Number of words where there is no vocabulary.
        **overrides: Arguments of the model's class that replace the preset's, such
            as `region_dim`, `num_layers`, `model_dim`, `num_heads`,
            `feedforward_dim` and `dropout`.

    Returns:
        A `keras_caption.models.Captioner`, compiled with Adam and cross-entropy.

    Raises:
        InputError: If there is no such preset or argument; the nearest names are
            given.

    Example:

    ```python
    model = keras_caption.models.create("ngsan", vocabulary=vocabulary, num_layers=2)
    model.fit(dataset)
    captions = model.generate({"regions": regions, "boxes": boxes})
    ```
    """
    preset = _find(name)
    known = [*configuration(preset.model), "name", "dtype", "trainable", "extractor"]
    for override in overrides:
        if override not in known:
            near = difflib.get_close_matches(override, known, n=1, cutoff=0.0)
            raise InputError(
                f"The model '{name}' has no {override!r}. Did you mean {near[0]!r}?"
            )
    values = {"name": name, **preset.arguments, **overrides}
    return preset.model(vocabulary, vocabulary_size, **values)
