"""Captions as they are shown: in tables and in contact sheets."""

from keras_caption.apps.report.results.caption_files import (
    CaptionFile,
    open_caption_file,
)
from keras_caption.apps.report.results.embedded_images import reduced
from keras_caption.apps.report.results.examples import Attention, Example, Line, Outcome
from keras_caption.apps.report.results.file_names import from_text, to_text
from keras_caption.apps.report.results.labels import places_of_labels
from keras_caption.apps.report.results.photo_metadata import PhotoMetadata
from keras_caption.apps.report.results.sidecars import Sidecars

__all__ = [
    "Attention",
    "CaptionFile",
    "Example",
    "Line",
    "Outcome",
    "PhotoMetadata",
    "Sidecars",
    "from_text",
    "open_caption_file",
    "places_of_labels",
    "reduced",
    "to_text",
]
