"""A plain JSON list of videos: `[{"id": ..., "split": ..., "captions": [...]}]`."""

import pathlib

from typing_extensions import TypedDict

from keras_caption.formats.fields import Caption, PhotoName, Records, refuse_repeats
from keras_caption.formats.json_files import read_json
from keras_caption.formats.listings import (
    ListedFile,
    ListedVideo,
    captions_of,
    listed_video,
)
from keras_caption.formats.splits import Split


class Video(TypedDict):
    id: PhotoName
    split: Split
    captions: list[Caption]


def list_captioned_videos(path: pathlib.Path) -> ListedFile:
    """Lists the videos of a plain list by split.

    Args:
        path: `pathlib.Path` of the file.

    Returns:
        `ListedFile`.

    Raises:
        InputError: If the file does not follow the format, or lists a video twice.
    """
    videos = read_json(path, Records[Video])
    refuse_repeats(path, "videos[].id", (video["id"] for video in videos))
    listed: dict[str, list[ListedVideo]] = {"train": [], "val": [], "test": []}
    skipped: list[str] = []
    for video in videos:
        name = video["id"]
        captions = captions_of(path, name, video["captions"], skipped)
        listed[video["split"]].append(listed_video(path, name, captions))
    return ListedFile(listed, skipped)
