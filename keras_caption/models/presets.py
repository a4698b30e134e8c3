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
        tables: The papers' tables that it is in, such as `"ngsan_2"`, NG-SAN's
            Table 2.
        arguments: Arguments of the class that differ from its defaults.
        published: Its scores on COCO's Karpathy test split times 100: dict from
            `"cross-entropy"`, `"self-critical"` or `"ensemble"` to dict from metric to
            float.
    """

    model: type[Captioner]
    tables: tuple
    arguments: dict
    published: dict = dataclasses.field(default_factory=dict)


def _ngsan(*tables, published=None, **arguments):
    published = {"self-critical": published} if published else {}
    return Preset(NGSAN, tuple(f"ngsan_{n}" for n in tables), arguments, published)


def _aoanet(*tables, published=None, **arguments):
    tables = tuple(f"aoanet_{n}" for n in tables)
    return Preset(AoANet, tables, arguments, published or {})


def _area(*tables, **arguments):
    return Preset(GridTransformer, tables, arguments)


PRESETS = {
    "san": _ngsan(1, 2, 3, 4, 6, published={"CIDEr-D": 128.6}),
    # What is normalized, and how.
    "nsan_layer": _ngsan(2, query_norm="layer"),
    "nsan_layer_affine": _ngsan(2, query_norm="layer", norm_affine=True),
    "nsan_batch": _ngsan(2, query_norm="batch"),
    "nsan_batch_affine": _ngsan(2, query_norm="batch", norm_affine=True),
    "nsan_affine": _ngsan(2, query_norm="instance", norm_affine=True),
    "nsan": _ngsan(1, 2, 3, 6, published={"CIDEr-D": 130.8}, query_norm="instance"),
    "nsan_key": _ngsan(3, key_norm="instance"),
    "nsan_query_key": _ngsan(3, query_norm="instance", key_norm="instance"),
    # What the geometric bias depends on.
    "gsan_absolute": _ngsan(4, geometry="absolute"),
    "gsan_content_independent": _ngsan(4, geometry="content_independent"),
    "gsan_key": _ngsan(4, geometry="key"),
    "gsan": _ngsan(4, 6, published={"CIDEr-D": 131.4}, geometry="query"),
    "gsan_query_key": _ngsan(4, geometry="query+key"),
    "gsan_all": _ngsan(4, geometry="content_independent+query+key"),
    # Both.
    "ngsan": _ngsan(
        6,
        published={
            "BLEU-4": 39.9,
            "METEOR": 29.3,
            "ROUGE-L": 59.2,
            "CIDEr-D": 132.1,
            "SPICE": 23.3,
        },
        query_norm="instance",
        geometry="query",
    ),
    "ngsan_key": _ngsan(6, query_norm="instance", geometry="key"),
    # Of two papers: nobody has published it.
    "ngsan_aoa": Preset(
        NGSAN, (), {"query_norm": "instance", "geometry": "query", "gate": "aoa"}
    ),
    # Without refining, with and without AoA in it, and what the decoder makes of
    # one head's or several heads' attention.
    "aoanet_base": _aoanet(4, refining=None, context="linear", decoder_heads=1),
    "aoanet_refine": _aoanet(
        4, refining="attention", context="linear", decoder_heads=1
    ),
    "aoanet_refine_aoa": _aoanet(4, context="linear", decoder_heads=1),
    **{
        f"aoanet_{heads}_{context}": _aoanet(
            4, refining=None, context=context, decoder_heads=number
        )
        for heads, number in (("single", 1), ("multi", 8))
        for context in ("lstm", "lstm_aoa", "aoa")
    },
    "aoanet": _aoanet(
        *(1, 4),
        published={
            "cross-entropy": {"CIDEr-D": 119.8},
            "self-critical": {
                "BLEU-1": 80.2,
                "BLEU-4": 38.9,
                "METEOR": 29.2,
                "ROUGE-L": 58.8,
                "CIDEr-D": 129.8,
                "SPICE": 22.4,
            },
            "ensemble": {"CIDEr-D": 132.0},
        },
    ),
    # On grids: how large areas are, whose keys are means and values sums (Eq. 3 and 4),
    # or the keys combined features (Eq. 9).
    "area": _area(max_area=3),
    "area_regular": _area("area_4"),
    "area_2x2": _area("area_4", max_area=2),
    "area_3x3": _area("area_4", max_area=3),
    "area_3x3_2": _area("area_4", max_area=3, combined_features=True),
    "spatial": Preset(
        GridTransformer,
        ("spatial_1",),
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
