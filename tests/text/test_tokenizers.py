import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_caption as kc
from keras_caption.text import BOS, EOS, PAD

SENTENCES = [
    "Ein großer roter Kreis ist unter dem kleinen Stern.",
    "A big red circle is below the small star.",
    "dans l'image, il y a un carré bleu à gauche d'une étoile",
    "two pla@@ y@@ houses are red@@",
]
TOKENIZERS = {
    "captions": kc.text.Vocabulary.build(SENTENCES, 1),
    "words": kc.text.WordTokenizer.build(SENTENCES, 1),
    "characters": kc.text.CharacterTokenizer.build(SENTENCES[:2]),
    "subwords": kc.text.SubwordTokenizer.build(SENTENCES * 4, 330),
}
# Of unknown script, with spaces of all kinds, accents of two characters, and empty.
TEXTS = [
    *SENTENCES,
    "",
    "   ",
    "漢字 und Ελλάδα 🙂",
    "a\tbig\u00a0red\u2028circle\x1c\x85",
    "e\u0301toile ½ ² x-y/z don't",
    "<eos> <pad> <0x41> </s>",
]


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]


def test_graph_and_python_tokenize_alike(tokenizer):
    ids = tf.function(tokenizer.tokenize)(tf.constant(TEXTS))
    assert ids.to_list() == [tokenizer.to_ids(text) for text in TEXTS]
    assert [tokenizer.tokenize([text])[0].numpy().tolist() for text in TEXTS] == (
        ids.to_list()
    )
    assert ids.dtype == tf.int32
    assert ids.values.numpy().max() < len(tokenizer)


def test_a_random_seed_does_not_change_tokenizers(tokenizer):
    expected = tokenizer.to_ids(TEXTS[0])
    for seed in range(2):  # which destroys what kernels own
        assert tokenizer.tokenize(TEXTS[:1])[0].numpy().tolist() == expected
        traced = tf.function(lambda texts: tokenizer.tokenize(texts))
        assert traced(tf.constant(TEXTS[:1]))[0].numpy().tolist() == expected
        keras.utils.set_random_seed(seed)


def test_graph_and_python_detokenize_alike(tokenizer, rng):
    tokens = rng.integers(0, len(tokenizer), (40, 9))
    tokens[:4] = [BOS, 5, 6, EOS, 7, 8, PAD, PAD, PAD]
    tokens[4:8] = PAD
    texts = tf.function(tokenizer.detokenize)(tf.constant(tokens))
    assert [text.decode() for text in texts.numpy()] == list(
        map(tokenizer.decode, tokens)
    )


@pytest.mark.parametrize("name", ["characters", "subwords"])
def test_nothing_is_unknown_to_bytes(name):
    tokenizer = TOKENIZERS[name]
    text = "Ein 漢 🙂 Kreis"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert kc.text.UNK not in tokenizer.encode(text)


def test_pieces_of_words_are_joined():
    tokenizer = TOKENIZERS["words"]
    tokens = tokenizer.encode(SENTENCES[3])
    assert tokenizer.decode(tokens) == "two playhouses are red"


def test_a_tokenizer_is_saved_with_what_has_it(tokenizer):
    config = keras.saving.serialize_keras_object(tokenizer)
    loaded = keras.saving.deserialize_keras_object(config)
    assert loaded == tokenizer
    assert loaded.encode(SENTENCES[0]) == tokenizer.encode(SENTENCES[0])
    others = [x for x in TOKENIZERS.values() if x is not tokenizer]
    assert loaded not in others


def test_a_saved_graph_takes_and_returns_text(tokenizer, tmp_path):
    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def answer(texts):
        return tokenizer.detokenize(tokenizer.tokenize(texts).to_tensor(PAD))

    signature = answer.get_concrete_function()
    module = tf.Module()
    module.tokenizer = tokenizer.trackables()
    tf.saved_model.save(module, str(tmp_path), signatures=signature)
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    (texts,) = served(tf.constant(SENTENCES)).values()
    decoded = [tokenizer.decode(tokenizer.encode(text)) for text in SENTENCES]
    assert [text.decode() for text in texts.numpy()] == decoded


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: kc.text.SubwordTokenizer.build(SENTENCES, 9000), "not yield 9000"),
        (lambda: kc.text.SubwordTokenizer.build([], 300), "not yield 300"),
        (lambda: kc.text.SubwordTokenizer("abcd"), "no SentencePiece model"),
        (lambda: kc.text.CharacterTokenizer(["ab"]), "Element 0"),
        (lambda: kc.text.CharacterTokenizer(["a", "a"]), "distinct"),
        (lambda: kc.text.WordTokenizer.build([""], 1), "No word"),
        (lambda: TOKENIZERS["subwords"].decode([330]), "Token 330"),
    ],
)
def test_mistakes_are_one_sentence(build, message):
    with pytest.raises(kc.InputError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_subwords_of_the_same_text_are_the_same():
    again = kc.text.SubwordTokenizer.build(SENTENCES * 4, 330)
    assert again == TOKENIZERS["subwords"]
    assert np.mean([len(again.encode(s)) / len(s) for s in SENTENCES]) < 0.7
