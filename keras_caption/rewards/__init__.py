"""Rewards of captions for self-critical training, computed in the graph."""

from keras_caption.rewards.cider_d import CiderD
from keras_caption.rewards.document_frequencies import DocumentFrequencies

__all__ = ["CiderD", "DocumentFrequencies"]
