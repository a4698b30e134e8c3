import sys
import unicodedata

import keras
import pytest

import keras_caption as kc
from keras_caption.text import BOS, EOS, PAD, UNK, Vocabulary, split_words


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("A man's dog, on a T-shirt.", "a mans dog on a t shirt"),
        ("black/white  cat\n", "black white cat"),
        ("Ünïcode 2 café!", "ünïcode 2 café"),
        (" . , !", ""),
        ("Cafe\u0301!", "café"),
        # A boy and a girl: vowels are marks in scripts of India and in Thai.
        ("एक लड़का।", unicodedata.normalize("NFC", "एक लड़का")),
        ("एक लड़की।", unicodedata.normalize("NFC", "एक लड़की")),
        ("ছেলে-মেয়ে", unicodedata.normalize("NFC", "ছেলে মেয়ে")),
        ("เด็กผู้ชาย, เด็กผู้หญิง", "เด็กผู้ชาย เด็กผู้หญิง"),
        ("பையன்.", "பையன்"),
        ("dog\u2764\ufe0f \u0301 -\u0301", "dog"),  # marks of no letter
    ],
)
def test_words_of_a_caption(caption, words):
    assert " ".join(split_words(caption)) == words


def test_vocabulary_keeps_frequent_words_in_order_of_frequency():
    captions = ["A dog.", "a dog", "a cat", "the cat", "a bird"]
    vocabulary = Vocabulary.build(captions, min_count=2)
    assert vocabulary.words == ["<pad>", "<bos>", "<eos>", "<unk>", "a", "cat", "dog"]
    tokens = vocabulary.encode("A bird, a dog")
    assert tokens == [BOS, 4, UNK, 4, 6, EOS]
    assert vocabulary.encode("a dog a dog", max_tokens=2) == [BOS, 4, 6, EOS]
    assert vocabulary.decode([BOS, 4, 6, EOS, 5, PAD]) == "a dog"
    assert vocabulary.decode([4, 6, PAD, PAD]) == "a dog"


def test_vocabulary_round_trips_and_refuses_unknown_tokens():
    vocabulary = Vocabulary(["a", "b"])
    saved = keras.saving.serialize_keras_object(vocabulary)
    assert keras.saving.deserialize_keras_object(saved) == vocabulary
    assert vocabulary != Vocabulary(["b", "a"])
    with pytest.raises(ValueError, match="another vocabulary"):
        vocabulary.decode([6])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b", "a"], r"More than once: \['a'\]"),
        (["a", "<unk>"], r"More than once: \['<unk>'\]"),
        (["a", "two words"], "Word 1 .* without white space, received 'two words'"),
        (["a", "b\u2028"], "Word 1 .* without white space"),
        (["a", ""], "Word 1 .* received ''"),
        (["a", 7], "Word 1 .* received 7"),
        ("a dog", "list of str, received 'a dog'"),
    ],
)
def test_invalid_words_are_refused(words, message):
    with pytest.raises(kc.InputError, match=message):
        Vocabulary(words)


def test_input_that_is_no_text_is_refused():
    for use in (Vocabulary(["a"]).encode, lambda text: Vocabulary.build([text])):
        with pytest.raises(kc.InputError, match="A text must be a str, received None"):
            use(None)


def test_a_vocabulary_without_words_is_refused():
    with pytest.raises(kc.InputError, match=r"No word .* occurs min_count=5 times"):
        Vocabulary.build(["a dog", "a cat"])


def test_text_becomes_one_line():
    every_character = "".join(map(chr, range(sys.maxunicode + 1)))
    line = kc.text.one_line(every_character)
    assert len(line) == len(every_character)
    assert len(line.encode().decode().splitlines()) == 1
    printable = "".join(filter(str.isprintable, every_character)) + "\t"
    assert kc.text.one_line(printable) == printable
