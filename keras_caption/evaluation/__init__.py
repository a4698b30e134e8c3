"""The standard metrics of captioning and translation, by their usual packages."""

from keras_caption.evaluation.caption_pairs import preference
from keras_caption.evaluation.cider import cider
from keras_caption.evaluation.coco_results import (
    read_results,
    score_files,
    score_table,
    write_results,
)
from keras_caption.evaluation.metrics import METRICS, score, table
from keras_caption.evaluation.perplexity import log_perplexity
from keras_caption.evaluation.translation import score_translations

__all__ = [
    "METRICS",
    "cider",
    "log_perplexity",
    "preference",
    "read_results",
    "score",
    "score_files",
    "score_table",
    "score_translations",
    "table",
    "write_results",
]
