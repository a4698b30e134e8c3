import keras
import pytest
from conftest import PROJECT, tiny
from keras_caption.synthetic import Scenes, ScenesConfig

import keras_caption as kc
from keras_caption.apps.scenes import scenes
from keras_caption.formats import keras_files

# What a user's words may look like to a reader of configurations.
WORDS = [
    *("http://example.com", "gs://a/b", "hf://c", "file:///etc/hosts", "mailto:a@b"),
    *("keras_caption>Vocabulary", "__tuple__", "keras.applications", "null", "NaN"),
    *('"', "\\", "{", "]", "</s>", "\x07", "\ufeff", "\ufffe", "नमस्ते", "🙂"),
]


def translator(tokenizer):
    return kc.models.LSTMTranslator(tokenizer, tokenizer, num_layers=1, model_dim=8)


def classifier():
    question = kc.text.QuestionTokenizer(WORDS)
    return kc.models.create("mcan", answers=WORDS, question=question, **SIZES)


SIZES = tiny("mcan", num_layers=1, pooling_dim=8, fusion_dim=12)
MODELS = {
    "words": lambda: translator(kc.text.WordTokenizer(WORDS)),
    "characters": lambda: translator(kc.text.CharacterTokenizer.build(WORDS)),
    "subwords": lambda: translator(kc.text.SubwordTokenizer.build(WORDS * 9, 320)),
    "captions": lambda: kc.models.create(
        "san", vocabulary=kc.text.Vocabulary(WORDS), **tiny("san", num_layers=1)
    ),
    "answers": classifier,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_what_save_writes_load_reads(make, tmp_path, monkeypatch):
    # Much less than the configuration takes, as that of a million words does.
    monkeypatch.setattr(keras_files, "JSON_BYTES", 100)
    model = make()
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    for again in (
        kc.models.load(tmp_path / "model.keras"),
        kc.models.load(tmp_path / "preset"),
        type(model).from_config(model.get_config()),
    ):
        assert again.tokenizers == model.tokenizers
        assert getattr(again, "answers", None) == getattr(model, "answers", None)


def test_the_trained_model_of_the_repository_captions_new_scenes(tmp_path):
    new = ScenesConfig(name="new", seed=1, train=1, val=1, test=60)
    builder = Scenes(config=new, data_dir=tmp_path)
    builder.download_and_prepare()
    examples = kc.datasets.read(builder, "test")
    model = keras.models.load_model(PROJECT / "saved_models" / "ngsan_scenes.keras")
    captions = model.caption(kc.batches.image_batches(examples, 60))
    share, count = scenes.statement_accuracy(captions, examples)["colours"]
    assert count >= 60
    assert share > 0.9
