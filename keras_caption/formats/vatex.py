"""VATEX's JSON: the captions of its videos, in English and in Chinese."""

import pathlib
import re
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.fields import Caption, PhotoName, Records, refuse_repeats
from keras_caption.formats.json_files import read_json
from keras_caption.formats.listings import (
    ListedFile,
    ListedVideo,
    captions_of,
    listed_video,
)
from keras_caption.formats.splits import splits_in, unclear

Language = Literal["en", "zh"]
KEYS = {"en": "enCap", "zh": "chCap"}
# A run of Latin letters and digits, or another character except punctuation.
CHARACTER = re.compile(r"[A-Za-z0-9]+|\w")


class Video(TypedDict):
    videoID: PhotoName
    enCap: NotRequired[list[Caption]]
    chCap: NotRequired[list[Caption]]


def list_vatex_videos(
    path: pathlib.Path, language: Language = "en", split: str | None = None
) -> ListedFile:
    """Lists the videos of one of VATEX's files, such as `vatex_training_v1.0.json`.

    Chinese captions without spaces between words are split into characters: spaces are
    inserted between all characters, except in runs of Latin letters and digits, and
    punctuation is dropped, which the metrics would count as words. Spaces separate
    words if most captions of the file have some.

    Args:
        path: `pathlib.Path` of the file.
        language: `"en"` or `"zh"`, of the captions. Defaults to `"en"`.
        split: str, `"train"`, `"val"` or `"test"`. Defaults to the split in the name of
            the file, see `splits_in`.

    Returns:
        `ListedFile`. In a file without captions, such as that of the private test
        videos, videos have neither captions nor a problem.

    Raises:
        InputError: If the file does not follow the format, lists a video twice, or has
            captions in the other language only, or if its name has no split.
    """
    videos = read_json(path, Records[Video])
    refuse_repeats(path, "videos[].videoID", (video["videoID"] for video in videos))
    splits = [split] if split else splits_in(path.name)
    if len(splits) != 1:
        raise unclear(path, "should have train, val or test in its name, its split")
    if not any(key in video for video in videos for key in KEYS.values()):
        listed = [ListedVideo(video["videoID"], []) for video in videos]
        return ListedFile({splits[0]: listed})
    key = KEYS[language]
    skipped: list[str] = []
    captions = [
        captions_of(path, video["videoID"], video.get(key, []), skipped)
        for video in videos
    ]
    if not any(captions):
        raise InputError(f"{path} has no captions in {key!r}: --language {language}.")
    if language == "zh":
        captions = separate_characters(captions)
    listed = [
        listed_video(path, video["videoID"], texts)
        for video, texts in zip(videos, captions, strict=True)
    ]
    return ListedFile({splits[0]: listed}, skipped)


def separate_characters(captions: list[list[str]]) -> list[list[str]]:
    """Puts spaces between the characters of captions, unless most have spaces."""
    all_texts = [text for texts in captions for text in texts]
    if 2 * sum(" " in text for text in all_texts) > len(all_texts):
        return captions
    return [[" ".join(CHARACTER.findall(text)) for text in texts] for texts in captions]
