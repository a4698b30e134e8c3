"""The standard metrics of captioning, through pycocoevalcap."""

from keras_caption.evaluation.cider import cider
from keras_caption.evaluation.coco_results import (
    read_results,
    score_files,
    score_table,
    write_results,
)
from keras_caption.evaluation.metrics import METRICS, score, table

__all__ = [
    "METRICS",
    "cider",
    "read_results",
    "score",
    "score_files",
    "score_table",
    "table",
    "write_results",
]
