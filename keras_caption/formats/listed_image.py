import dataclasses


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
