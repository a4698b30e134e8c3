"""Videos with captions, and the sources of their frames."""

import dataclasses
from typing import Annotated, Any

from pydantic import Field

from keras_caption.apps.prepare.matching import match
from keras_caption.base.arguments import check
from keras_caption.base.errors import InputError
from keras_caption.formats.listings import ListedVideo
from keras_caption.inputs.frames import MAX_FRAMES

NumFrames = Annotated[int, Field(ge=1, le=MAX_FRAMES)]


@dataclasses.dataclass(frozen=True)
class VideoRecord:
    """A video whose frames are to be read.

    Attributes:
        image_id: int, the number of the video.
        name: str, its name in the caption file.
        captions: List of str.
        source: Reader whose `read` takes the name; `None` if no source has the video.
        problem: str, a sentence that says why the video is skipped, or `None`.
    """

    image_id: int
    name: str
    captions: list[str]
    source: Any
    problem: str | None = None

    def read(self) -> Any:
        """Reads the frames; raises `InputError` if there are none."""
        if self.problem:
            raise InputError(self.problem)
        return self.source.read(self.name)


def records_of_videos(
    listed: dict[str, list[ListedVideo]], sources: list[Any], strict: bool
) -> tuple[dict[str, list[VideoRecord]], dict[str, Any]]:
    """Makes the records of listed videos, and numbers them in the order of the list.

    Args:
        listed: dict from split to a list of `ListedVideo`.
        sources: List of readers of videos by name, see `match`.
        strict: bool, see `match`.

    Returns:
        dict from split to a list of `VideoRecord`; and the entry `features` of a
        manifest, see `match`.

    Raises:
        InputError: If no video is in a source; see also `match`.
    """
    captioned = {
        v.name: () for videos in listed.values() for v in videos if not v.problem
    }
    source_of, features = match(captioned, sources, "video", strict)
    paths = ", ".join(str(source.path) for source in sources)
    records: dict[str, list[VideoRecord]] = {}
    number = 0
    for split, videos in listed.items():
        records[split] = []
        for video in videos:
            source, problem = source_of.get(video.name), video.problem
            if source is None and not problem:
                problem = f"Video {video.name} has captions, but is not in {paths}."
            record = VideoRecord(number, video.name, video.captions, source, problem)
            records[split].append(record)
            number += 1
    return records, features


def listing_of(records: dict[str, list[VideoRecord]]) -> dict[str, list]:
    """Identifies videos and captions, as JSON, for `Content`."""
    return {
        split: [(r.name, r.captions, r.problem) for r in split_records]
        for split, split_records in records.items()
    }


def check_num_frames(num_frames: int) -> None:
    """Raises `InputError` if a number of frames is out of range."""
    check(NumFrames, num_frames=num_frames)
