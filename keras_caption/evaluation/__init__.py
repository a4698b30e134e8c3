"""The standard metrics of captioning, translation and question answering."""

from typing import TYPE_CHECKING

from keras_caption.base.registration import importing
from keras_caption.evaluation.caption_diversity import diversity
from keras_caption.evaluation.caption_log_probabilities import caption_log_probabilities
from keras_caption.evaluation.caption_pairs import preference
from keras_caption.evaluation.captions import lacks_spaces, notes_on_references
from keras_caption.evaluation.cider import cider, cider_by_image
from keras_caption.evaluation.clip_score import ClipScorer
from keras_caption.evaluation.coco_results import (
    read_results,
    score_files,
    score_table,
    write_results,
)
from keras_caption.evaluation.comparison import (
    SCORES,
    Difference,
    bleu_statistics,
    paired_difference,
    ratio,
)
from keras_caption.evaluation.metric import METRICS, register_metric
from keras_caption.evaluation.metrics import check_metrics, score, table
from keras_caption.evaluation.outputs import note_on_outputs
from keras_caption.evaluation.perplexity import log_perplexity, log_probabilities
from keras_caption.evaluation.tables import markdown_table, text_of_shares
from keras_caption.evaluation.translation import score_translations
from keras_caption.evaluation.vqa import (
    answer_accuracy,
    answer_tables,
    score_answers,
    score_vqa_files,
    write_vqa_results,
)
from keras_caption.formats.vqa_results import read_vqa_results

if TYPE_CHECKING:  # for editors and type checkers: what an app gives
    from keras_caption.apps.objects.named_colours import (
        colour_agreement as colour_agreement,
    )
    from keras_caption.apps.objects.named_colours import named_colours as named_colours
    from keras_caption.apps.objects.named_objects import (
        hallucinations as hallucinations,
    )
    from keras_caption.apps.objects.named_objects import named_objects as named_objects
    from keras_caption.apps.objects.named_objects import (
        object_agreement as object_agreement,
    )
    from keras_caption.apps.objects.named_objects import object_scores as object_scores

__all__ = [
    "METRICS",
    "SCORES",
    "ClipScorer",
    "Difference",
    "answer_accuracy",
    "answer_tables",
    "bleu_statistics",
    "caption_log_probabilities",
    "check_metrics",
    "cider",
    "cider_by_image",
    "diversity",
    "lacks_spaces",
    "log_perplexity",
    "log_probabilities",
    "markdown_table",
    "note_on_outputs",
    "notes_on_references",
    "paired_difference",
    "preference",
    "ratio",
    "read_results",
    "read_vqa_results",
    "register_metric",
    "score",
    "score_answers",
    "score_files",
    "score_table",
    "score_translations",
    "score_vqa_files",
    "table",
    "text_of_shares",
    "write_results",
    "write_vqa_results",
]
if not TYPE_CHECKING:  # other names are errors
    __getattr__ = importing(__name__)
