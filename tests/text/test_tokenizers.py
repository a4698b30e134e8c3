import functools
import os
import subprocess
import sys
import time
import unicodedata

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

import keras_caption as kc
from keras_caption.text import BOS, EOS, PAD, UNK, normalization

SENTENCES = [
    "Ein großer roter Kreis ist unter dem kleinen Stern.",
    "A big red circle is below the small star.",
    "dans l'image, il y a un carré bleu à gauche d'une étoile",
    "two pla@@ y@@ houses are red@@",
]
TOKENIZERS = {
    "captions": kc.text.Vocabulary.build(SENTENCES, 1),
    "questions": kc.text.QuestionTokenizer.build(SENTENCES, 1),
    "words": kc.text.WordTokenizer.build(SENTENCES, 1),
    "characters": kc.text.CharacterTokenizer.build(SENTENCES[:2]),
    "subwords": kc.text.SubwordTokenizer.build(SENTENCES * 4, 330),
}
# Of vocabularies that version 0.1 saved: only the punctuation of ASCII is any.
SAVED = {
    name: type(TOKENIZERS[name]).from_config({"words": TOKENIZERS[name].words[4:]})
    for name in ("captions", "questions")
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


# Characters that a rule of some tokenizer or normalization is about.
ODD = [
    *"aAßİЁ!-/'.<>@_1½",
    *(chr(code) for code in (0x0, 0xA, 0xD, 0xB, 0x1C, 0x85, 0xA0, 0x2028, 0x3000)),
    *(chr(code) for code in (0x300, 0x301, 0x307, 0x323, 0x345, 0x34F, 0xFE0F, 0x20E3)),
    *(chr(code) for code in (0x1100, 0x1161, 0x11A8, 0x212B, 0x1E9E, 0x2581, 0xFB01)),
    *(
        chr(code)
        for code in (
            0x3A3,
            0x3C3,
            0x3C2,
            0x93C,
            0x93F,
            0x94D,
            0x9BE,
            0xE31,
            0xE4D,
            0xBC6,
            0xBBE,
        )
    ),
    *(chr(code) for code in (0x200B, 0x200D, 0xFEFF, 0xFFFD, 0x2764, 0x1F642)),
    *(chr(code) for code in (0xAD, 0xB4, 0x2BC, 0x964, 0x200C, 0x2014, 0x2019, 0x2026)),
    *(chr(code) for code in (0x2044, 0x2067, 0xFF0D, 0xFF0F, 0xFF1F, 0xFF21, 0xFF5E)),
    *("e\u0301", "ড\u09bc", "<eos>", "<pad>", "<unk>", "@@ ", "two", "red@@"),
]
# Capitals of Unicode 14, which TensorFlow's tables of lower case lack.
NEW_CAPITALS = set("\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8") | {
    chr(code) for code in range(0x10570, 0x10596)
}
CHARACTERS = st.characters(exclude_categories=["Cs", "Cn"]).filter(
    lambda c: c not in NEW_CAPITALS
)
TEXT = st.lists(st.sampled_from(ODD) | CHARACTERS).map("".join)


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


def read_in_graph(tokenizer):
    """What a tokenizer's graph reads of texts: ids, or words known or not."""

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def read(texts):
        if isinstance(tokenizer, kc.text.Vocabulary):
            words = tokenizer.normalize_in_graph(texts, False, tokenizer.punctuation)
            return tf.strings.split(words)
        return tokenizer.tokenize(texts)

    return read


ALL = {**TOKENIZERS, **{f"saved {name}": x for name, x in SAVED.items()}}
GRAPHS = {name: read_in_graph(tokenizer) for name, tokenizer in ALL.items()}


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(TEXT, min_size=1, max_size=40))
@example(["A\u03a3\0A", "\0\u03a3", "", "\u0301a", "a-\u0301b", "H\u0331 \u1e96"])
def test_graph_and_python_read_any_text_alike(texts):
    for name, tokenizer in ALL.items():
        read = tokenizer.to_ids
        if isinstance(tokenizer, kc.text.Vocabulary):
            read = functools.partial(tokenizer.split, punctuation=tokenizer.punctuation)
        pieces = [[*map(as_bytes, read(text))] for text in texts]
        assert GRAPHS[name](tf.constant(texts)).to_list() == pieces, name
        for text, of_text in zip(texts, pieces, strict=True):
            assert not {PAD, BOS, EOS} & {*tokenizer.to_ids(text)}
            for form in ("NFC", "NFD"):
                typed = unicodedata.normalize(form, text)
                assert [*map(as_bytes, read(typed))] == of_text, (name, form)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0f73", "\u0344\u0316"])
def test_letters_of_many_marks_take_no_time(marks):
    begun = time.process_time()
    for tokenizer in TOKENIZERS.values():
        tokenizer.to_ids("e" + marks * 100_000)
    assert time.process_time() - begun < 5  # hours, if they were sorted at once
    few = unicodedata.normalize("NFD", "e" + (marks * 30)[:30])
    assert normalization.nfc(few) == unicodedata.normalize("NFC", few)


# As telephones, word processors and keyboards of other scripts write: a text, then the
# words of captions and of questions, by the rule of now, and by that of version 0.1.
TYPED = [
    "what\u2019s the man\u2019s?|whats the mans|whats the mans|"
    "whats the mans|what\u2019s the man\u2019s",
    "a \u201cdog\u201d\u2026|a dog|a dog|a dog|a \u201cdog\u201d\u2026",
    "dogs\uff0c cats\uff1f|dogs cats|dogs cats|dogs cats|dogs\uff0c cats\uff1f",
    "t\u2011shirt\u2014b|t shirt b|t shirt b|tshirtb|t\u2011shirt\u2014b",
    "\uff24og \uff12|dog 2|dog 2|\uff44og \uff12|\uff44og \uff12",
    "\u00bfwho? don\u02bct|who dont|who dont|who don\u02bct|\u00bfwho don\u02bct",
    "5\u221230\uff05 & it's|5 30 its|5 30% & its|530 its|5\u221230\uff05 & its",
    # Hindi with its full stop; joiners within words of Bengali and of Persian; a space
    # without width, as between words of Khmer.
    "\u0939\u093f\u0928\u0964|\u0939\u093f\u0928|\u0939\u093f\u0928|"
    "\u0939\u093f\u0928|\u0939\u093f\u0928\u0964",
    "\u09b0\u200d\u09cd\u09af|\u09b0\u200d\u09cd\u09af|\u09b0\u200d\u09cd\u09af|"
    "\u09b0\u09af|\u09b0\u200d\u09cd\u09af",
    "\u0645\u06cc\u200c\u062e|\u0645\u06cc\u200c\u062e|\u0645\u06cc\u200c\u062e|"
    "\u0645\u06cc\u062e|\u0645\u06cc\u200c\u062e",
    "\u1780\u17c2\u200b\u1798|\u1780\u17c2 \u1798|\u1780\u17c2 \u1798|"
    "\u1780\u17c2\u1798|\u1780\u17c2\u200b\u1798",
]


@pytest.mark.parametrize("case", TYPED, ids=ascii)
def test_punctuation_of_any_keyboard_is_read_and_saved_vocabularies_stay(case):
    text, *expected = case.split("|")
    tokenizers = [*map(TOKENIZERS.get, SAVED), *SAVED.values()]
    for tokenizer, words in zip(tokenizers, expected, strict=True):
        known = type(tokenizer)([*dict.fromkeys(words.split())], tokenizer.punctuation)
        assert known.split(text, known.punctuation) == words.split()
        ids = known.to_ids(text)
        assert UNK not in ids
        assert known.tokenize([text]).to_list() == [ids]


def test_vocabularies_of_both_rules_are_trained_and_joined(captioner):
    config = captioner.get_config()
    del config["vocabulary"]["config"]["punctuation"]
    old = captioner.from_config(config)
    assert old.vocabulary.punctuation == "ascii"
    assert old.vocabulary.get_config()["punctuation"] == "ascii"  # once saved again
    assert kc.models.Ensemble([captioner, old]).vocabulary == captioner.vocabulary


# A process of another language has another lower case of some letters.
IN_LANGUAGE = """
import sys, tensorflow as tf, keras_caption as kc
texts = ["IS IT RAINING?", "J\u0300\u00cc\u00cd\u0128 \u012e\u0307\u0130 I\u0307"]
for text in texts:
    for kind in (kc.text.Vocabulary, kc.text.QuestionTokenizer):
        [in_graph] = tf.strings.split(kind.normalize_in_graph(tf.constant([text])))
        assert [x.decode() for x in in_graph.numpy()] == kind.split(text), text
"""


@pytest.mark.parametrize("language", ["tr_TR.UTF-8", "lt_LT.UTF-8"])
def test_the_language_of_the_process_changes_no_token(language):
    environment = {**os.environ, "LC_ALL": language, "LANG": language}
    command = [sys.executable, "-c", IN_LANGUAGE]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]


def as_bytes(piece):
    return piece.encode() if isinstance(piece, str) else piece


def test_words_called_like_special_tokens_are_words(tokenizer):
    text = "<eos> <pad> <bos> <unk>"
    ids = tokenizer.to_ids(text)
    assert not {PAD, BOS, EOS} & {*ids}
    assert tokenizer.tokenize([text])[0].numpy().tolist() == ids
    if isinstance(tokenizer, kc.text.WordTokenizer | kc.text.QuestionTokenizer):
        assert ids == [UNK] * 4


@pytest.mark.parametrize("name", ["characters", "subwords", "words"])
def test_decoded_text_is_what_references_are_scored_as(name):
    typed = unicodedata.normalize("NFD", SENTENCES[0])
    decoded = TOKENIZERS[name].decode(TOKENIZERS[name].encode(typed))
    assert decoded == TOKENIZERS[name].as_decoded(typed) == SENTENCES[0]


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


def test_tokens_of_unknown_text_are_known_as_such(tokenizer):
    known, unknown = (
        [tokenizer.is_known(token) for token in tokenizer.to_ids(text)]
        for text in (SENTENCES[0], "\u72d7 \u732b")
    )
    assert sum(known) > len(known) / 2
    assert unknown
    assert not any(unknown)


def test_a_tokenizer_is_saved_with_its_model(tokenizer):
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
        (lambda: kc.text.SubwordTokenizer.build([], 300), "not yield 300.*is empty"),
        (lambda: kc.text.SubwordTokenizer.build([""], 300), "not yield 300.*is empty"),
        (lambda: kc.text.SubwordTokenizer.build(SENTENCES, 1), "greater than 260"),
        (lambda: kc.text.SubwordTokenizer.build(SENTENCES, 2**40), "less than 2147"),
        (lambda: kc.text.SubwordTokenizer.build("a dog"), "Texts must be a list of"),
        (lambda: kc.text.CharacterTokenizer.build(None), "Texts must be a list of"),
        (lambda: kc.text.CharacterTokenizer(None), "list of str, received None"),
        (lambda: kc.text.CharacterTokenizer(["a", "\ud800"]), "Element 1"),
        (lambda: kc.text.Vocabulary(None), "list of str, received None"),
        (lambda: kc.text.Vocabulary(["a", "\ud800"]), "Word 1"),
        (lambda: kc.text.Vocabulary(["a", "\0"]), "Word 1"),
        (lambda: kc.text.Vocabulary(["é", "e\u0301"]), "More than once: .'é'"),
        (lambda: kc.text.Vocabulary.build(7), "Captions must be a list of"),
        (lambda: kc.text.Vocabulary.build({"a.jpg": ["a"]}, 1), "Captions must be a"),
        (lambda: kc.text.CharacterTokenizer.build({"a": ["b"]}), "Texts must be a"),
        (lambda: kc.text.SubwordTokenizer("abcd"), "no SentencePiece model"),
        (lambda: kc.text.CharacterTokenizer(["ab"]), "Element 0"),
        (lambda: kc.text.CharacterTokenizer(["a", "a"]), "distinct"),
        (lambda: kc.text.WordTokenizer.build([""], 1), "No word"),
        (lambda: TOKENIZERS["subwords"].decode([330]), "Token 330"),
        (lambda: TOKENIZERS["words"].decode([[4, 5]]), "must be ints, received .4, 5"),
        (lambda: TOKENIZERS["words"].decode(np.eye(2)), "must be ints, received array"),
        (lambda: TOKENIZERS["words"].decode([1.5]), "Token 1.5"),
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
