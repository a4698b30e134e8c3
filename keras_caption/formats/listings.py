"""Images, videos and photos that caption files list."""

import dataclasses
from typing import Any

from keras_caption.formats.fields import with_words


@dataclasses.dataclass(frozen=True)
class CaptionedPhoto:
    """A photo that a user's own captions name.

    Attributes:
        file_name: str, path of the photo in the folder of photos, without its suffix if
            the captions are in a text file.
        captions: List of str.
        split: `"train"`, `"val"` or `"test"`, or `None` if unknown.
        problem: str, a sentence that says why the photo is skipped, or `None`.
    """

    file_name: str
    captions: list[str]
    split: str | None = None
    problem: str | None = None


@dataclasses.dataclass(frozen=True)
class ListedImage:
    """An image that a caption file lists.

    Attributes:
        image_id: int or str.
        file_name: str, path of the photo in the folder of photos.
        captions: List of str, empty in a file without captions.
        size: Width and height in pixels, or `None` if no file has them.
        problem: str, a sentence that says why the image is skipped, or `None`.
    """

    image_id: int | str
    file_name: str
    captions: list[str]
    size: tuple[int, int] | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The name of the image in messages."""
        return f"image {self.image_id}"


@dataclasses.dataclass(frozen=True)
class ListedVideo:
    """A video that a caption file lists.

    Attributes:
        name: str, id of the video in the file: the name of its clip or features without
            the suffix.
        captions: List of str, empty in a file without captions.
        problem: str, a sentence that says why the video is skipped, or `None`.
    """

    name: str
    captions: list[str]
    problem: str | None = None


def listed_video(path, name: str, captions: list[str]) -> ListedVideo:
    """Makes a `ListedVideo`; `path` is the path of a file with captions."""
    problem = None if captions else f"{path}: video {name} has no captions."
    return ListedVideo(name, captions, problem)


def captions_of(path, name: str, captions: list[str], skipped: list[str]) -> list[str]:
    """Keeps the captions of a video that have words; reports others in `skipped`."""
    where = f"{path}: video {name}: caption"
    return with_words(
        ((f"{where} {n}", text) for n, text in enumerate(captions, start=1)), skipped
    )


@dataclasses.dataclass(frozen=True)
class ListedFile:
    """The images or videos that a caption file lists.

    Attributes:
        splits: dict from split to a list of `ListedImage` or `ListedVideo`.
        skipped: List of str, a sentence for each skipped caption.
    """

    splits: dict[str, list[Any]]
    skipped: list[str] = dataclasses.field(default_factory=list)
