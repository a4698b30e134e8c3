"""The papers' tables, as they print them."""

from keras_caption.apps.report.papers.published import (
    CROSS_ENTROPY,
    SELF_CRITICAL,
    Published,
    Table,
    read_tables,
)

TABLES: dict[str, Table] = read_tables()

__all__ = ["CROSS_ENTROPY", "SELF_CRITICAL", "TABLES", "Published", "Table"]
