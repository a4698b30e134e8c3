"""Caption normalization and the vocabulary."""

from keras_caption.text.normalization import split_words
from keras_caption.text.vocabulary import BOS, EOS, PAD, UNK, Vocabulary

__all__ = ["BOS", "EOS", "PAD", "UNK", "Vocabulary", "split_words"]
