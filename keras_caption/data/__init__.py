"""Captioning datasets as TFDS builders, questions about images, and batches."""

from keras_caption.data.answers import build_answers, soft_scores
from keras_caption.data.array_dataset import ArrayDataset, from_arrays
from keras_caption.data.coco import CocoFiles
from keras_caption.data.coco_objects import CocoObjects, CocoObjectsConfig
from keras_caption.data.datasets import check_name, load, model_sizes, read, register
from keras_caption.data.examples import frame_features, references, region_features
from keras_caption.data.image_ids import given_ids
from keras_caption.data.listing import list_images
from keras_caption.data.moving_scenes import MovingScenes, MovingScenesConfig
from keras_caption.data.parallel import ParallelText, load_parallel
from keras_caption.data.photo_records import (
    PhotoRecord,
    records_of_photos,
    records_of_scenes,
)
from keras_caption.data.pipeline import (
    BatchOptions,
    grouped,
    image_batches,
    reference_tokens,
    train_batches,
)
from keras_caption.data.prepared import load_extractor, prepare
from keras_caption.data.prepared_clips import prepare_clips
from keras_caption.data.prepared_frames import prepare_frames
from keras_caption.data.prepared_regions import prepare_regions
from keras_caption.data.question_batches import EncodedQuestions
from keras_caption.data.questions import (
    ImageQuestions,
    load_questions,
    register_questions,
)
from keras_caption.data.scenes import Scenes, ScenesConfig
from keras_caption.data.statements import Statements, statements_of
from keras_caption.data.video_listing import list_videos
from keras_caption.data.vocabulary import build_vocabulary
from keras_caption.formats.coco import read_captions
from keras_caption.formats.frame_files import open_frames
from keras_caption.formats.listed_image import ListedImage
from keras_caption.formats.listed_video import ListedVideo
from keras_caption.formats.question import Question
from keras_caption.formats.region_files import open_regions
from keras_caption.text import teacher_forcing

__all__ = [
    "ArrayDataset",
    "BatchOptions",
    "CocoFiles",
    "CocoObjects",
    "CocoObjectsConfig",
    "EncodedQuestions",
    "ImageQuestions",
    "ListedImage",
    "ListedVideo",
    "MovingScenes",
    "MovingScenesConfig",
    "ParallelText",
    "PhotoRecord",
    "Question",
    "Scenes",
    "ScenesConfig",
    "Statements",
    "build_answers",
    "build_vocabulary",
    "check_name",
    "frame_features",
    "from_arrays",
    "given_ids",
    "grouped",
    "image_batches",
    "list_images",
    "list_videos",
    "load",
    "load_extractor",
    "load_parallel",
    "load_questions",
    "model_sizes",
    "open_frames",
    "open_regions",
    "prepare",
    "prepare_clips",
    "prepare_frames",
    "prepare_regions",
    "read",
    "read_captions",
    "records_of_photos",
    "records_of_scenes",
    "reference_tokens",
    "references",
    "region_features",
    "register",
    "register_questions",
    "soft_scores",
    "statements_of",
    "teacher_forcing",
    "train_batches",
]
