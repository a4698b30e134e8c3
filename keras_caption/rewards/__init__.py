"""Rewards of sampled texts for self-critical training, computed in the graph."""

from typing import TYPE_CHECKING

from keras_caption.base.registration import importing
from keras_caption.rewards.cider_d import CiderD
from keras_caption.rewards.document_frequencies import DocumentFrequencies
from keras_caption.rewards.sentence_bleu import SentenceBleu
from keras_caption.rewards.weighted_sum import WeightedSum, reads_of

if TYPE_CHECKING:  # for editors and type checkers: what an app gives
    from keras_caption.apps.objects import ObjectTruth as ObjectTruth
    from keras_caption.apps.objects import PlaceTruth as PlaceTruth

__all__ = [
    "CiderD",
    "DocumentFrequencies",
    "SentenceBleu",
    "WeightedSum",
    "reads_of",
]
if not TYPE_CHECKING:  # other names are errors
    __getattr__ = importing(__name__)
