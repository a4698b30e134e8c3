"""Rewards of sampled texts for self-critical training, computed in the graph."""

from keras_caption.rewards.cider_d import CiderD
from keras_caption.rewards.document_frequencies import DocumentFrequencies
from keras_caption.rewards.sentence_bleu import SentenceBleu

__all__ = ["CiderD", "DocumentFrequencies", "SentenceBleu"]
