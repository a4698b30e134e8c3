"""The papers' tables, as they print them."""

from keras_caption.papers.published import (
    CAPTIONING,
    CROSS_ENTROPY,
    SELF_CRITICAL,
    Published,
    Table,
)
from keras_caption.papers.published_answers import ANSWERS
from keras_caption.papers.published_translation import TRANSLATION

TABLES: dict[str, Table] = {**CAPTIONING, **TRANSLATION, **ANSWERS}

__all__ = ["CROSS_ENTROPY", "SELF_CRITICAL", "TABLES", "Published", "Table"]
