"""Rewards of sampled texts for self-critical training, computed in the graph."""

from keras_caption.registration import importing
from keras_caption.rewards.cider_d import CiderD
from keras_caption.rewards.document_frequencies import DocumentFrequencies
from keras_caption.rewards.sentence_bleu import SentenceBleu
from keras_caption.rewards.weighted_sum import WeightedSum, reads_of

__all__ = [
    "CiderD",
    "DocumentFrequencies",
    "SentenceBleu",
    "WeightedSum",
    "reads_of",
]
__getattr__ = importing(__name__)
