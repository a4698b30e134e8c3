"""The standard metrics of captioning, translation and question answering."""

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
from keras_caption.evaluation.vqa import (
    answer_accuracy,
    score_answer_files,
    score_answers,
    write_answers,
)
from keras_caption.formats.vqa_results import read_answers

__all__ = [
    "METRICS",
    "answer_accuracy",
    "cider",
    "log_perplexity",
    "read_answers",
    "read_results",
    "score",
    "score_answer_files",
    "score_answers",
    "score_files",
    "score_table",
    "score_translations",
    "table",
    "write_answers",
    "write_results",
]
