import dataclasses

from keras_caption.formats.fields import with_words


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
