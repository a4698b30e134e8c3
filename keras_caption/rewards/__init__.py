"""Rewards of captions, computed inside the graph."""

from keras_caption.rewards.cider_d import CiderD
from keras_caption.rewards.document_frequencies import DocumentFrequencies

__all__ = ["CiderD", "DocumentFrequencies"]
