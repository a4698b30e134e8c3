import pytest
import tensorflow as tf

import keras_caption as kc
from keras_caption.text import PAD, UNK, QuestionTokenizer

# As MCAN's code splits them.
WORDS = {
    "What's the man's t-shirt": "whats the mans t shirt",
    "10:30 a.m.?": "1030 am",
    'Is "this" (a) black/white #1 * dog; or: it!': "is this a black white 1 dog or it",
    "What color & size_is 5% of it @home": "what color & size_is 5% of it @home",
    "  \t-/- ?!": "",
    "": "",
}


def test_questions_are_normalized_as_in_official_code():
    for text, words in WORDS.items():
        assert QuestionTokenizer.split(text) == words.split()


def test_graph_and_python_tokenize_alike():
    texts = [*WORDS, "ÉTOILE\u00a0à\u2028gauche? 漢字 x\x1cy", "red " * 20]
    tokenizer = QuestionTokenizer.build(texts[:-1])
    ids = tf.function(tokenizer.tokenize)(tf.constant(texts)).to_list()
    assert ids == [tokenizer.to_ids(text) for text in texts]
    assert not any(UNK in row for row in ids[:-1])
    assert ids[-1] == 14 * [UNK]
    # Bytes that are no UTF-8 do no harm.
    assert len(tokenizer.tokenize(tf.constant([b"what\xff\xfe", "is"])).to_list()) == 2


def test_another_spelling_of_a_word_is_known():
    tokenizer = QuestionTokenizer(["color", "grey", "tyre", "tire"])
    texts = ["Colour color", "grey gray", "tyre tire", "colours"]
    expected = [[4, 4], [5, 5], [6, 7], [UNK]]
    assert [tokenizer.to_ids(text) for text in texts] == expected
    assert tokenizer.tokenize(tf.constant(texts)).to_list() == expected
    assert len(tokenizer) == 8
    assert tokenizer == QuestionTokenizer(tokenizer.words[4:])


def test_questions_are_read_as_tokens():
    kind = kc.inputs.QuestionText(kc.inputs.QuestionText.symbolic())
    tokens = kind.complete({"question": [[5, PAD], [PAD, PAD]]})["question"]
    assert tokens.numpy().tolist() == [[5, PAD], [UNK, PAD]]
    assert kind.complete({"question": [[5] * 20]})["question"].shape == (1, 14)
    with pytest.raises(kc.InputError, match="need at least one token"):
        kind.read({"question": tf.zeros((2, 0), "int32")}, "mcan")
