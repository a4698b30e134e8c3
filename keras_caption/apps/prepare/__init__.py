"""Preparation of datasets from annotations and photos, clips or features."""

from keras_caption.apps.prepare.arrow_records import records_of_arrow
from keras_caption.apps.prepare.clips import prepare_clips
from keras_caption.apps.prepare.frames import prepare_frames
from keras_caption.apps.prepare.listing import list_images
from keras_caption.apps.prepare.photo_records import (
    PhotoRecord,
    records_of_photos,
    records_of_questions,
    records_of_scenes,
)
from keras_caption.apps.prepare.photos import prepare_photos
from keras_caption.apps.prepare.regions import prepare_regions
from keras_caption.apps.prepare.video_listing import list_videos
from keras_caption.datasets.extractors import load_extractor, reader_of
from keras_caption.formats.arrow_folder import is_arrow_folder
from keras_caption.formats.coco import read_captions
from keras_caption.formats.frame_files import open_frames
from keras_caption.formats.listings import ListedImage, ListedVideo
from keras_caption.formats.region_files import open_regions

__all__ = [
    "ListedImage",
    "ListedVideo",
    "PhotoRecord",
    "is_arrow_folder",
    "list_images",
    "list_videos",
    "load_extractor",
    "open_frames",
    "open_regions",
    "prepare_clips",
    "prepare_frames",
    "prepare_photos",
    "prepare_regions",
    "read_captions",
    "reader_of",
    "records_of_arrow",
    "records_of_photos",
    "records_of_questions",
    "records_of_scenes",
]
