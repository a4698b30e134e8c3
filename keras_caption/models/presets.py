"""The published configurations, and combinations of their mechanisms, by name.

`create` builds a model:

- `create(name, vocabulary=..., region_dim=...)` for captioning,
- `create(name, source=..., target=...)` for translation,
- `create(name, answers=..., question=..., region_dim=...)` for question answering.

Keyword arguments replace values of the preset. Sizes that no preset names are those of
the papers: they are the default values of the models' classes.
"""

import dataclasses
from typing import Annotated, Any, overload

import keras
from typing_extensions import Doc

from keras_caption.base.errors import InputError, need_model
from keras_caption.inputs import KINDS
from keras_caption.losses import AnswerCrossEntropy, SequenceCrossEntropy
from keras_caption.models.aoanet import AoANet
from keras_caption.models.captioner import Captioner
from keras_caption.models.classifier import Classifier
from keras_caption.models.constructors import (
    OF_KERAS,
    descriptions_of,
    is_setting,
    parameters_of,
)
from keras_caption.models.grid_transformer import GridTransformer
from keras_caption.models.lstm_translator import LSTMTranslator
from keras_caption.models.mcan import MCAN
from keras_caption.models.ngsan import NGSAN
from keras_caption.models.task_model import TaskModel
from keras_caption.models.transformer_translator import TransformerTranslator
from keras_caption.models.translator import Translator
from keras_caption.models.updown import UpDown
from keras_caption.models.video_aoanet import VideoAoANet
from keras_caption.models.video_transformer import VideoTransformer
from keras_caption.text import Tokenizer, Vocabulary


@dataclasses.dataclass(frozen=True)
class Preset:
    """A configuration with a name.

    Attributes:
        model: The model's class.
        arguments: dict, arguments of the class that differ from its defaults.
    """

    model: type[TaskModel]
    arguments: dict


def _ngsan(**arguments):
    return Preset(NGSAN, arguments)


def _aoanet(**arguments):
    return Preset(AoANet, arguments)


def _area(**arguments):
    return Preset(GridTransformer, arguments)


# The last row of the area paper's Table 4, which it calls the best overall.
BEST_AREAS = {"input_area": 3, "output_area": 2, "combined_features": True}


def _translators():
    """Models of the area paper's section 3.1, and of NG-SAN's 6.2."""
    areas = {"input_area": 5, "output_area": 5}
    norm = {"query_norm": "instance"}
    names = ("num_layers", "model_dim", "feedforward_dim", "num_heads")
    transformers = {
        "transformer_tiny": (2, 128, 512, 4),
        "transformer_small": (2, 256, 1024, 4),
        "transformer_base": (6, 512, 2048, 8),
    }
    presets = {}
    for name, values in transformers.items():
        sizes = dict(zip(names, values, strict=True))
        for suffix, more in (
            ("", {}),
            ("_area", areas),
            ("_nsa", norm),
            ("_area_nsa", {**areas, **norm}),
        ):
            presets[name + suffix] = Preset(TransformerTranslator, {**sizes, **more})
    for cells in (256, 512, 1024):
        presets[f"lstm_{cells}"] = Preset(LSTMTranslator, {"model_dim": cells})
        # The paper gives no area size for LSTMs: 2 is the value in tensor2tensor.
        presets[f"lstm_{cells}_area"] = Preset(
            LSTMTranslator, {"model_dim": cells, "input_area": 2}
        )
    return presets


PRESETS = {
    "san": _ngsan(),
    # Norms of queries and keys (NG-SAN, Tables 2 and 3). The paper does not say whether
    # layer and batch normalization learn a gain and an offset: that they do is ours.
    "nsan_layer_affine": _ngsan(query_norm="layer", norm_affine=True),
    "nsan_batch_affine": _ngsan(query_norm="batch", norm_affine=True),
    "nsan_affine": _ngsan(query_norm="instance", norm_affine=True),
    "nsan": _ngsan(query_norm="instance"),
    "nsan_key": _ngsan(key_norm="instance"),
    "nsan_query_key": _ngsan(query_norm="instance", key_norm="instance"),
    # Kinds of geometric bias (Table 4).
    "gsan_absolute": _ngsan(geometry="absolute"),
    "gsan_content_independent": _ngsan(geometry="content_independent"),
    "gsan_key": _ngsan(geometry="key"),
    "gsan": _ngsan(geometry="query"),
    # Several kinds at once: the paper reports no gain, and no scores (section 5.3).
    "gsan_query_key": _ngsan(geometry="query+key"),
    "gsan_all": _ngsan(geometry="content_independent+query+key"),
    # Normalization and geometry.
    "ngsan": _ngsan(query_norm="instance", geometry="query"),
    # Variants of ours, in no paper.
    "ngsan_key": _ngsan(query_norm="instance", geometry="key"),
    "gsan_signed": _ngsan(geometry="query", signed_geometry=True),
    "ngsan_signed": _ngsan(
        query_norm="instance", geometry="query", signed_geometry=True
    ),
    "ngsan_aoa": _ngsan(query_norm="instance", geometry="query", gate="aoa"),
    # AoANet's Table 4. The base model neither refines regions nor gates its context,
    # and has a single attention head. The paper does not say which score a single head
    # has: the scaled dot product is ours, and score="additive" is the released code's.
    "aoanet_base": _aoanet(refining=None, context="linear", decoder_heads=1),
    "aoanet_refine": _aoanet(refining="attention", context="linear", decoder_heads=1),
    "aoanet_refine_aoa": _aoanet(context="linear", decoder_heads=1),
    "aoanet_single_lstm": _aoanet(refining=None, context="lstm", decoder_heads=1),
    "aoanet_single_aoa": _aoanet(refining=None, context="aoa", decoder_heads=1),
    "aoanet_single_lstm_aoa": _aoanet(
        refining=None, context="lstm_aoa", decoder_heads=1
    ),
    "aoanet_multi_linear": _aoanet(refining=None, context="linear"),
    "aoanet_multi_lstm": _aoanet(refining=None, context="lstm"),
    "aoanet_multi_aoa": _aoanet(refining=None, context="aoa"),
    "aoanet": _aoanet(),
    # Anderson et al., 2018.
    "updown": Preset(UpDown, {}),
    # The area paper's Table 4: areas of the image (its self-attention, and the
    # decoder's attention to it), and of the caption (the decoder's self-attention).
    "area_regular": _area(),
    "area_2x2": _area(input_area=2),
    "area_3x3": _area(input_area=3, combined_features=True),
    "area": _area(**BEST_AREAS),
    "spatial": Preset(
        GridTransformer,
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
    # NG-SAN's Table 7: videos.
    "video_transformer": Preset(VideoTransformer, {}),
    "video_nsa": Preset(VideoTransformer, {"query_norm": "instance"}),
    # AoANet's section 4.6. The paper does not say how many heads attend to the frames:
    # one head is ours, as in the models of Table 4 with the same names.
    "video_base": Preset(VideoAoANet, {"context": "linear", "decoder_heads": 1}),
    "video_aoa": Preset(VideoAoANet, {"context": "aoa", "decoder_heads": 1}),
    **_translators(),
    # NG-SAN's Table 9. The paper does not say which kind of geometry it has: "query" is
    # ours.
    "mcan": Preset(MCAN, {}),
    "mcan_gsa": Preset(MCAN, {"geometry": "query"}),
    # A variant of ours, in no paper.
    "mcan_gsa_signed": Preset(MCAN, {"geometry": "query", "signed_geometry": True}),
}


def presets(model: type[TaskModel] = TaskModel) -> list[str]:
    """Lists the names of presets of a class of models, paper by paper.

    Args:
        model: Class, such as `Captioner` or `Translator`. Defaults to all classes.
    """
    return [name for name, preset in PRESETS.items() if issubclass(preset.model, model)]


def _find(name: str) -> Preset:
    need_model(name, PRESETS)
    return PRESETS[name]


def arguments(name: str) -> dict[str, Any]:
    """Arguments of a preset's model, without those that depend on the data.

    Args:
        name: str, one of `presets()`.

    Returns:
        dict from argument to value.

    Raises:
        InputError: If there is no such preset. The message names similar presets.
    """
    values = _find(name).arguments
    return {p.name: values.get(p.name, p.default) for p in _settings(name)}


def decoding(name: str) -> dict[str, Any]:
    """Default options of decoding of a preset's model, by name.

    Args:
        name: str, one of `presets()`, of a captioner or translator.

    Returns:
        dict of the fields of `keras_caption.decoding.Decoding`.
    """
    return dataclasses.asdict(_find(name).model.default_decoding())


def argument_types(name: str) -> dict[str, Any]:
    """Types of the `arguments` of a preset's model, by name.

    Args:
        name: str, one of `presets()`.

    Returns:
        dict from argument to an `Annotated` type with a description. Pydantic validates
        values of these types, see `keras_caption.base.arguments`.
    """
    texts = descriptions_of(_find(name).model)
    return {
        p.name: Annotated[p.annotation, Doc(texts.get(p.name, ""))]
        for p in _settings(name)
    }


def _settings(name):
    """Parameters of a preset's model that an experiment sets."""
    parameters = parameters_of(_find(name).model)
    for parameter in parameters.values():
        if parameter.annotation is parameter.empty:
            raise InputError(
                f"The model '{name}' should say the type of its argument "
                f"`{parameter.name}`, as in `{parameter.name}: Count`, see "
                "`keras_caption.base.arguments`."
            )
    # `threshold` is chosen for a trained model, on a validation split.
    decided = {
        *OF_KERAS,
        "threshold",
        *data_arguments(name),
        *(f"{x}_size" for x in parameters),
    }
    return [
        parameter
        for parameter in parameters.values()
        if is_setting(parameter.annotation) and parameter.name not in decided
    ]


def data_arguments(name: str) -> list[str]:
    """Names of a preset's arguments that are sizes of inputs, such as `region_dim`.

    `keras_caption.inputs.sizes_of` reads their values from the data.

    Args:
        name: str, one of `presets()`.
    """
    sizes = {size for kind in KINDS for size in kind.sizes}
    return [name for name in parameters_of(_find(name).model) if name in sizes]


# Which tokenizers, answers or sizes there are says what the model does.
@overload
def create(name: str, *, answers: list[str], **arguments: Any) -> Classifier: ...
@overload
def create(
    name: str, *, source: Tokenizer, target: Tokenizer, **arguments: Any
) -> Translator: ...
@overload
def create(
    name: str, *, source_size: int, target_size: int, **arguments: Any
) -> Translator: ...
@overload
def create(name: str, *, vocabulary: Vocabulary, **arguments: Any) -> Captioner: ...
@overload
def create(name: str, *, vocabulary_size: int, **arguments: Any) -> Captioner: ...
@overload
def create(name: str, **arguments: Any) -> Any: ...
def create(name: str, **arguments: Any) -> Any:
    """Creates a model from a preset.

    The mechanisms of all papers are options of every model, and can be combined, see
    `keras_caption.models.AttentionOptions`. A model has only the options that make
    sense in it: geometry needs boxes, norms need an encoder with self-attention, and
    areas of the output need a Transformer decoder.

    Args:
        name: str, one of `presets()`.
        **arguments: Arguments of the model's class. Arguments that depend on the data
            are required:

            - for captioning `vocabulary`, a `keras_caption.text.Vocabulary` that is
              saved with the model, or `vocabulary_size`;
            - for translation `source` and `target`, tokenizers, or their sizes;
            - for question answering `answers`, a list of str, and `question`, a
              tokenizer, or `question_size`.

            Other arguments replace those of the preset, such as `region_dim`,
            `num_layers`, `model_dim`, `num_heads`, `feedforward_dim` and `dropout`.

    Returns:
        A `keras_caption.models.Captioner`, `Translator` or `Classifier`, compiled with
        Adam and cross-entropy.

    Raises:
        InputError: If there is no such preset or argument (the message names similar
            ones), or an option makes no sense in the model.

    Example:

    ```python
    model = keras_caption.models.create("ngsan", vocabulary=vocabulary, num_layers=2)
    other = keras_caption.models.create("area", vocabulary=vocabulary, gate="aoa")
    model.fit(batches.map(keras_caption.text.teacher_forcing))
    captions = model.generate({"regions": regions, "boxes": boxes})

    model = keras_caption.models.create("transformer_tiny", source=en, target=de)
    sentences = model.generate(["The red star is small."])

    model = keras_caption.models.create("mcan", answers=answers, question=tokenizer)
    answers = model.answer({"regions": regions, "boxes": boxes}, ["Is there a star?"])
    ```
    """
    preset = _find(name)
    model = preset.model(**{"name": name, **preset.arguments, **arguments})
    if isinstance(model, Classifier):
        loss = AnswerCrossEntropy(model.multi_label)
    else:
        loss = SequenceCrossEntropy()
    model.compile(keras.optimizers.Adam(3e-4), loss)
    return model
