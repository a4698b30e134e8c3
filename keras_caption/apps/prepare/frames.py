"""Converts third-party frame features to a prepared dataset."""

import os
from typing import Any

import numpy as np

from keras_caption.apps.prepare.matching import dim_of
from keras_caption.apps.prepare.shards import Content, or_error, write_shards
from keras_caption.apps.prepare.video_records import (
    VideoRecord,
    check_num_frames,
    listing_of,
    records_of_videos,
)
from keras_caption.base.errors import InputError
from keras_caption.batches.examples import (
    captions_and_words,
    frame_features,
    in_half_precision,
)
from keras_caption.features import sampled_frames
from keras_caption.formats.frame_files import FrameFiles
from keras_caption.formats.listings import ListedVideo


def prepare_frames(
    listed: dict[str, list[ListedVideo]],
    sources: list[FrameFiles],
    folder: str | os.PathLike,
    *,
    num_frames: int = 20,
    strict: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Writes frame features of videos as a dataset for `keras_caption.datasets.load`.

    Features are stored in half precision. Videos are skipped and counted if their
    features are missing, damaged, not finite in half precision, or of another size than
    those of the first video. So are features without captions.

    Args:
        listed: dict from split to a list of `ListedVideo`, from `list_videos`.
        sources: List of readers from `open_frames`, of any formats, with the features
            of a video in one of them.
        folder: Path of the folder of the dataset.
        num_frames: int, greatest number of frames of a video, which are sampled
            uniformly by the rule of `keras_caption.features.sampled_frames`. Defaults
            to 20.
        strict: bool, whether to raise an error instead of skipping. Defaults to
            `False`.
        **options: `shard_size` and `execute` of `write_shards`.

    Returns:
        The manifest, see `write_shards`, with an entry `features`, see `match`.

    Raises:
        InputError: See `write_shards`; also if no video has features, or `num_frames`
            is out of range.
    """
    check_num_frames(num_frames)
    records, features = records_of_videos(listed, sources, strict)
    dim = dim_of(record.read for split in records.values() for record in split)
    content = Content(
        records,
        lambda shard: (or_error(frame_example, x, dim, num_frames) for x in shard),
        frame_features(dim, np.float16, has_times=False),
        [features["sources"], num_frames, listing_of(records)],
        manifest={"features": features},
    )
    return write_shards(content, folder, strict=strict, **options)


def frame_example(record: VideoRecord, dim: int, num_frames: int) -> dict[str, Any]:
    """Makes the example of a video; raises `InputError` if it has none."""
    frames = record.read()
    if frames.shape[1] != dim:
        raise InputError(
            f"{record.source.path}, video {record.name} has {frames.shape[1]} "
            f"features a frame, not {dim} as the first video."
        )
    frames = frames[sampled_frames(len(frames), num_frames)]
    frames = in_half_precision(frames, f"{record.source.path}, {record.name}")
    return {
        "image_id": record.image_id,
        "name": record.name,
        "frames": frames,
        **captions_and_words(record.captions),
    }
