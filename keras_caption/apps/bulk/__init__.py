"""Answers any number of photos, sentences and questions on Apache Beam.

Functions that prepare features are imported at their first use: a finished job needs no
Keras.
"""

from typing import TYPE_CHECKING

from keras_caption.apps.bulk.job import Job
from keras_caption.apps.bulk.pipeline import pipeline_options, run
from keras_caption.base.registration import importing

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.apps.bulk.features import FeatureWriting

__all__ = ["FeatureWriting", "Job", "pipeline_options", "run"]
if not TYPE_CHECKING:  # other names are errors
    __getattr__ = importing(__name__, {"FeatureWriting": ".features"})
