import base64
import io

import numpy as np
from jaxtyping import UInt8

from keras_caption.base.errors import missing_extras


def embedded_image(
    pixels: UInt8[np.ndarray, "height width 3"],
    side: int | None,
    quality: int,
) -> tuple[tuple[int, int], str]:
    """An image as a URL that holds its content, for pages of one file.

    Args:
        pixels: uint8 `(height, width, 3)`.
        side: int, pixels of the longer side at most, or `None` for any number.
        quality: int, of the JPEG.

    Returns:
        Width and height of what is shown, and the URL, a str.
    """
    image = _reduced(pixels, side)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    content = base64.b64encode(file.getvalue()).decode()
    return image.size, f"data:image/jpeg;base64,{content}"


def reduced(
    pixels: UInt8[np.ndarray, "height width 3"], side: int
) -> UInt8[np.ndarray, "height width 3"]:
    """An image of `side` pixels at most, as `embedded_image` makes it."""
    return np.array(_reduced(pixels, side))


def _reduced(pixels, side):
    """An image of Pillow, of `side` pixels at most unless `side` is `None`."""
    with missing_extras():
        from PIL import Image

    image = Image.fromarray(pixels)
    if side is not None:
        image.thumbnail((side, side))
    return image
