"""What type checkers and quick help read is what the library has; see `make lint`."""

import inspect
import runpy
from typing import get_args

import pytest
from conftest import PROJECT

import keras_caption as kc
from keras_caption.decoding import Decoding
from keras_caption.layers.multi_head_attention import AttentionKeywords
from keras_caption.layers.transformer_block import BlockKeywords, TransformerBlock
from keras_caption.models.captioner import CaptionerOptions
from keras_caption.models.classifier import ClassifierOptions
from keras_caption.models.constructors import parameters_of
from keras_caption.models.presets import PRESETS
from keras_caption.models.translator import TranslatorOptions
from keras_caption.settings.catalogue import FILE
from keras_caption.settings.options import DecodingOptions


@pytest.mark.parametrize(
    ("keywords", "described"),
    [
        (AttentionKeywords, kc.layers.MultiHeadAttention),
        (BlockKeywords, TransformerBlock),
        (CaptionerOptions, kc.models.Captioner),
        (TranslatorOptions, kc.models.Translator),
        (ClassifierOptions, kc.models.Classifier),
        (DecodingOptions, Decoding),
    ],
)
def test_keywords_that_classes_share_are_those_of_their_base(keywords, described):
    """Each is declared twice: with a default value, and for type checkers."""
    parameters = inspect.signature(described).parameters.values()
    (rest,) = [p for p in parameters if p.kind is p.VAR_KEYWORD] or [None]
    names = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    if rest is not None:
        names |= {*get_args(rest.annotation)[0].__annotations__}
    assert {*keywords.__annotations__} == names


def test_every_argument_of_a_model_is_in_the_source_of_its_constructor():
    """No decorator or metaclass adds one that editors would not see."""
    models = {preset.model for preset in PRESETS.values()}
    # Scripts, which other tests import, register models of their own.
    models = {x for x in models if x.__module__.startswith("keras_caption.")}
    assert len(models) >= 9
    for model in models:
        *named, rest = list(inspect.signature(model.__init__).parameters.values())[1:]
        names = {p.name for p in named} | {
            *get_args(rest.annotation)[0].__annotations__
        }
        assert names == {*parameters_of(model)}
        assert model.__init__.__code__.co_filename == inspect.getfile(model)
    assert not [*(PROJECT / "keras_caption").rglob("*.pyi")]


def test_the_catalogue_is_up_to_date(monkeypatch):
    # That of experiments/papers/gates.py, which another test may have imported.
    monkeypatch.delitem(PRESETS, "gated", raising=False)
    written = runpy.run_path(str(PROJECT / "docs" / "catalogue.py"))["catalogue"]()
    assert FILE.read_text() == written, "run `make format`"
