"""Preparation of clips: features of their frames, extracted once and stored."""

import collections
import concurrent.futures
import functools
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

from keras_caption.apps.prepare.photos import EXTRACTOR, identity_of
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
from keras_caption.features import Clip, ClipExtractor, film_strip, find_clips
from keras_caption.formats.feature_records import FeatureRecords
from keras_caption.formats.folders import describe_passed_over
from keras_caption.formats.listings import ListedVideo

READ_AHEAD = 8  # clips that are decoded at once


def prepare_clips(
    folder: str | os.PathLike,
    listed: dict[str, list[ListedVideo]],
    extractor: ClipExtractor,
    output: str | os.PathLike,
    *,
    batch_size: int = 16,
    strict: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Writes the features of clips as a dataset for `keras_caption.datasets.load`.

    An example has `frames`, `times` (see `frame_features`) and `image`, a film strip.
    Clips that are missing, damaged, truncated or have a single frame are skipped and
    counted, as are clips without captions.

    Args:
        folder: Path of a folder with clips, at any depth, named as the videos in
            `listed`, whatever their suffix.
        listed: dict from split to a list of `ListedVideo`, from `list_videos`. If it is
            empty, all clips are for test, without captions.
        extractor: `keras_caption.features.ClipExtractor`.
        output: Path of the folder of the dataset, where the extractor is saved too.
        batch_size: int, number of frames whose features are extracted together.
            Defaults to 16.
        strict: bool, whether to raise an error instead of skipping. Defaults to
            `False`.
        **options: `shard_size` and `execute` of `write_shards`.

    Returns:
        The manifest, see `write_shards`, with an entry `features`, see `match`.

    Raises:
        InputError: See `write_shards`; also if no listed video has a clip, or the
            extractor's number of frames is out of range.
    """
    check_num_frames(extractor.num_frames)
    clips = ClipFolder(folder, extractor)
    if not any(listed.values()):
        listed = {"test": [ListedVideo(name, []) for name in clips.ids]}
    records, features = records_of_videos(listed, [clips], strict)
    strip = tfds.features.Image(shape=(None, None, 3), encoding_format="jpeg")
    content = Content(
        records,
        ClipExamples(extractor, batch_size),
        frame_features(extractor.frame_dim, np.float16, image=strip),
        [*identity_of(extractor), listing_of(records)],
        manifest={"features": features},
        files={EXTRACTOR: extractor.save},
    )
    return write_shards(content, output, strict=strict, **options)


class ClipFolder(FeatureRecords):
    """The clips in a folder, by name without suffix: a source of `match`.

    Args:
        folder: Path of the folder.
        extractor: `keras_caption.features.ClipExtractor` that reads them.

    Raises:
        InputError: If there is no clip in the folder.
    """

    def __init__(self, folder: str | os.PathLike, extractor: ClipExtractor):
        super().__init__(pathlib.Path(folder))
        self.extractor = extractor
        passed_over: collections.Counter[str] = collections.Counter()
        for path in find_clips(folder, passed_over):
            self.add(path.stem, path, str(path))
        if passed_over:
            print(f"{folder}: passed over: {describe_passed_over(passed_over)}")

    def read_record(self, place: pathlib.Path, where: str) -> Clip:
        """Samples frames of a clip."""
        return self.extractor.read(place)


class ClipExamples:
    """Makes examples of clips, for `write_shards`.

    Args:
        extractor: `keras_caption.features.ClipExtractor`.
        batch_size: int, number of frames in a batch.
    """

    def __init__(self, extractor: ClipExtractor, batch_size: int):
        self.extractor = extractor
        self.batch_size = batch_size

    @functools.cached_property
    def extract(self) -> Any:
        """The extraction of frame vectors, as a graph."""
        size = self.extractor.image_size
        images = tf.TensorSpec((None, size, size, 3), tf.uint8)
        vectors = self.extractor.extractor.vectors
        return tf.function(vectors, input_signature=[images], autograph=False)

    def __getstate__(self):  # a graph cannot be pickled
        return {name: x for name, x in vars(self).items() if name != "extract"}

    def __call__(self, records: list[VideoRecord]) -> Iterator[dict | InputError]:
        """Yields the example, or the error, of each record."""
        with concurrent.futures.ThreadPoolExecutor(READ_AHEAD) as pool:
            for start in range(0, len(records), READ_AHEAD):
                batch = records[start : start + READ_AHEAD]
                clips = [pool.submit(record.read) for record in batch]
                for record, clip in zip(batch, clips, strict=True):
                    yield or_error(self.example_of, record, clip.result)

    def example_of(
        self, record: VideoRecord, read: Callable[[], Clip]
    ) -> dict[str, Any]:
        """Makes the example of a clip; raises `InputError` if it has none."""
        clip = read()
        starts = range(0, len(clip.frames), self.batch_size)
        batches = [clip.frames[start : start + self.batch_size] for start in starts]
        frames = np.concatenate([self.extract(batch).numpy() for batch in batches])
        frames = in_half_precision(frames, record.name)
        return {
            "image_id": record.image_id,
            "name": record.name,
            "frames": frames,
            "times": clip.times,
            "image": film_strip(clip),
            **captions_and_words(record.captions),
        }
