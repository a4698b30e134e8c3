import keras
import numpy as np
import pytest
from conftest import PROJECT, read_oracle, tiny
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
    for name in ("model", "model.h5"):  # which nothing could load
        with pytest.raises(kc.InputError, match=f"/{name} should end in .keras"):
            model.save(tmp_path / name)


def test_a_table_shared_by_both_parts_is_not_saved_as_two(tmp_path):
    inputs = kc.inputs.Text.symbolic()
    table = kc.layers.WordEmbedding(9, 8)
    encoder = keras.Model(inputs, table(inputs["source"]))
    decoder = kc.models.TransformerDecoder(9, 8, [], embedding=table)
    model = kc.models.Seq2Seq(encoder, decoder)
    with pytest.raises(kc.InputError, match="share word_embedding"):
        model.save(tmp_path / "model.keras")
    assert not [*tmp_path.iterdir()]


OF_0_1 = PROJECT / "tests" / "oracles" / "saved_by_0_1"
SENTENCES = ["der hund", "katze die katze"]


@pytest.mark.parametrize("name", ["ngsan", "transformer"])
def test_what_version_0_1_saved_generates_as_it_did(name):
    oracle = read_oracle("saved_by_0_1")
    model = kc.models.load(OF_0_1 / f"{name}.keras")
    images = {key: oracle[key] for key in ("regions", "boxes")}
    raw = images if name == "ngsan" else SENTENCES
    memory = model.encode(model.read(model.to_batch(raw)))
    logits = model.logits(oracle["tokens"], memory)
    np.testing.assert_allclose(logits, oracle[f"{name}_logits"], atol=1e-4)
    tokens, scores = model.generate_tokens(raw, beam_size=2, max_length=8)
    np.testing.assert_array_equal(tokens, oracle[f"{name}_tokens"])
    np.testing.assert_allclose(scores, oracle[f"{name}_scores"], atol=1e-4)


def test_what_version_0_1_saved_answers_as_it_did():
    oracle = read_oracle("saved_by_0_1")
    model = kc.models.load(OF_0_1 / "mcan.keras")
    images = {key: oracle[key] for key in ("regions", "boxes")}
    best = model.answer_n_best(images, ["is it a dog", "a dog"], 3)
    assert [[text for text, _ in x] for x in best] == oracle["mcan_answers"].tolist()
    scores = [[score for _, score in x] for x in best]
    np.testing.assert_allclose(scores, oracle["mcan_scores"], atol=1e-5)


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
