"""MSR-VTT's `videodatainfo.json`: the splits and sentences of its videos."""

import pathlib
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.fields import (
    Caption,
    PhotoName,
    Records,
    refuse_repeats,
    with_words,
)
from keras_caption.formats.json_files import read_json
from keras_caption.formats.listings import ListedFile, ListedVideo, listed_video

SPLITS = {"train": "train", "validate": "val", "test": "test"}


class Video(TypedDict):
    video_id: PhotoName
    split: Literal["train", "validate", "test"]


class Sentence(TypedDict):
    video_id: str
    caption: Caption


class VideosFile(TypedDict):
    videos: Annotated[Records[Video], Field(min_length=1)]
    sentences: Records[Sentence]


def list_msrvtt_videos(path: pathlib.Path) -> ListedFile:
    """Lists the videos of a file of MSR-VTT by split.

    Args:
        path: `pathlib.Path` of the file.

    Returns:
        `ListedFile`. In a file without sentences, videos have neither captions nor a
        problem.

    Raises:
        InputError: If the file does not follow the format, lists a video twice, or has
            a sentence of a video that it does not list.
    """
    content = read_json(path, VideosFile)
    videos, sentences = content["videos"], content["sentences"]
    refuse_repeats(path, "videos[].video_id", (video["video_id"] for video in videos))
    captions: dict[str, list[str]] = {video["video_id"]: [] for video in videos}
    skipped: list[str] = []
    for number, sentence in enumerate(sentences):
        name = sentence["video_id"]
        if name not in captions:
            raise InputError(
                f"{path}: sentences[{number}] belongs to video {name!r:.60}, which is "
                "not among the file's videos."
            )
        where = f"{path}: sentences[{number}] of video {name}"
        captions[name] += with_words([(where, sentence["caption"])], skipped)
    listed: dict[str, list[ListedVideo]] = {x: [] for x in SPLITS.values()}
    for video in videos:
        name = video["video_id"]
        entry = ListedVideo(name, [])
        if sentences:
            entry = listed_video(path, name, captions[name])
        listed[SPLITS[video["split"]]].append(entry)
    return ListedFile(listed, skipped)
