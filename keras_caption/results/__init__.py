"""Captions as they are shown: with colours, in tables and in contact sheets.

Colours are imported when they are first used: files of captions need no Keras.
"""

from typing import TYPE_CHECKING

from keras_caption.registration import importing
from keras_caption.results.caption_files import CaptionFile, open_caption_file
from keras_caption.results.embedded_images import reduced
from keras_caption.results.examples import Attention, Example, Line, Outcome
from keras_caption.results.file_names import from_text, to_text
from keras_caption.results.labels import places_of_labels
from keras_caption.results.photo_metadata import PhotoMetadata
from keras_caption.results.sidecars import Sidecars

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.results.coloured_captions import with_colours

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
    "with_colours",
]
__getattr__ = importing(__name__, {"with_colours": ".coloured_captions"})
