"""Datasets by name: captions of images, questions about them, and parallel text."""

from keras_caption.batches.examples import frame_features, references, region_features
from keras_caption.datasets.array_dataset import ArrayDataset, from_arrays
from keras_caption.datasets.coco import CocoFiles
from keras_caption.datasets.coco_objects import CocoObjects, CocoObjectsConfig
from keras_caption.datasets.extractors import load_extractor, reader_of
from keras_caption.datasets.image_ids import given_ids
from keras_caption.datasets.parallel import ParallelText, load_parallel
from keras_caption.datasets.questions import (
    ImageQuestions,
    load_questions,
    register_questions,
)
from keras_caption.datasets.registry import (
    check_name,
    load,
    model_sizes,
    read,
    register,
)
from keras_caption.datasets.statements import Statements, statements_of
from keras_caption.datasets.vocabulary import build_vocabulary
from keras_caption.formats.question import Question

__all__ = [
    "ArrayDataset",
    "CocoFiles",
    "CocoObjects",
    "CocoObjectsConfig",
    "ImageQuestions",
    "ParallelText",
    "Question",
    "Statements",
    "build_vocabulary",
    "check_name",
    "frame_features",
    "from_arrays",
    "given_ids",
    "load",
    "load_extractor",
    "load_parallel",
    "load_questions",
    "model_sizes",
    "read",
    "reader_of",
    "references",
    "region_features",
    "register",
    "register_questions",
    "statements_of",
]
