import dataclasses


@dataclasses.dataclass(frozen=True)
class ListedImage:
    """An image that a caption file lists.

    Attributes:
        image_id: int.
        file_name: str, the photo's path within the folder of photos.
        captions: List of str, empty in a file without captions.
        size: Width and height in pixels, or `None` if no file has them.
        problem: Why the image has to be skipped, a sentence, or `None`.
    """

    image_id: int
    file_name: str
    captions: list
    size: tuple | None = None
    problem: str | None = None
