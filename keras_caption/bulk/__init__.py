"""Any number of photos, sentences and questions, on Apache Beam.

What prepares features is imported when it is first used: a job that is done needs no
Keras.
"""

from typing import TYPE_CHECKING

from keras_caption.bulk.job import Job
from keras_caption.bulk.pipeline import pipeline_options, run
from keras_caption.registration import importing

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.bulk.features import FeatureWriting

__all__ = ["FeatureWriting", "Job", "pipeline_options", "run"]
__getattr__ = importing(__name__, {"FeatureWriting": ".features"})
