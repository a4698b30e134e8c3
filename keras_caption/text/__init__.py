"""Tokenizers, normalization of captions and answers, and teacher forcing."""

from keras_caption.text.answers import normalize_answer
from keras_caption.text.characters import CharacterTokenizer
from keras_caption.text.normalization import one_line, split_words
from keras_caption.text.questions import QuestionTokenizer
from keras_caption.text.subwords import SubwordTokenizer
from keras_caption.text.teacher_forcing import teacher_forcing
from keras_caption.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from keras_caption.text.vocabulary import Vocabulary
from keras_caption.text.words import WordTokenizer

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "UNK",
    "CharacterTokenizer",
    "QuestionTokenizer",
    "SubwordTokenizer",
    "Tokenizer",
    "Vocabulary",
    "WordTokenizer",
    "normalize_answer",
    "one_line",
    "split_words",
    "teacher_forcing",
]
