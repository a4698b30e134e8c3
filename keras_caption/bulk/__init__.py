"""Answers any number of photos, sentences and questions on Apache Beam."""

from keras_caption.bulk.features import FeatureWriting
from keras_caption.bulk.job import Job
from keras_caption.bulk.pipeline import pipeline_options, run

__all__ = ["FeatureWriting", "Job", "pipeline_options", "run"]
