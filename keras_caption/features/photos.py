import io
import pathlib

import numpy as np
from keras import ops

from keras_caption.errors import InputError

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")


def read_photo(source):
    """A photo's pixels, whatever its format and colours.

    Grey, CMYK, palette and 16-bit pictures are converted; of several frames the
    first is taken; transparency is dropped.

    Args:
        source: Path of a picture, or the bytes of one.

    Returns:
        uint8 `(height, width, 3)`.

    Raises:
        InputError: If there is no such file, or it is no picture, or is cut short.
    """
    from PIL import Image, UnidentifiedImageError

    name, file = "The picture", source
    if isinstance(source, bytes):
        file = io.BytesIO(source)
    else:
        name = str(source)
        if not pathlib.Path(source).is_file():
            raise InputError(f"There is no file {source}.")
        if not pathlib.Path(source).stat().st_size:
            raise InputError(f"{source} is empty.")
    try:
        with Image.open(file) as picture:
            if picture.mode.startswith("I"):  # 16 bits, of which 8 are kept
                grey = (np.array(picture).astype("uint32") >> 8).astype("uint8")
                picture = Image.fromarray(grey)
            return np.array(picture.convert("RGB"))
    except UnidentifiedImageError:
        raise InputError(f"{name} is not a picture.") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{name} cannot be read: {error}.") from None


def resize_photo(pixels, size):
    """A photo as the square that an `Extractor` reads.

    Args:
        pixels: `(height, width, 3)`, 0 to 255, or a batch of such.
        size: Height and width of the square; proportions are not kept.

    Returns:
        float32 `(size, size, 3)`, or a batch, bilinear with antialiasing.
    """
    pixels = ops.cast(pixels, "float32")
    return ops.image.resize(pixels, (size, size), antialias=True)


def find_photos(folder):
    """All pictures in a folder and below it, by their endings, in order.

    Raises:
        InputError: If there is no such folder, or no picture in it.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)
    if not found:
        raise InputError(f"There is no picture in {folder} ({', '.join(SUFFIXES)}).")
    return found
