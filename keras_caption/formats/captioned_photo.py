import dataclasses


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
