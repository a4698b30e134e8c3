import importlib.util
import io
import os
import pathlib
from typing import Any

import numpy as np
from keras import ops

from keras_caption.errors import InputError
from keras_caption.formats.faults import reason_of
from keras_caption.formats.folders import list_files

SUFFIXES = (".bmp", ".gif", ".heic", ".jpeg", ".jpg", ".png", ".webp")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "WEBP")
HEIF = importlib.util.find_spec("pillow_heif") is not None
# A photo takes up to 20 bytes a pixel while it is decoded and resized.
MAX_PIXELS = 64 * 2**20

# EXIF's orientations: rows and columns transposed, then reversed.
ORIENTATION = 0x0112
TRANSPOSED = (5, 6, 7, 8)
COLUMNS_REVERSED = (2, 3, 6, 7)
ROWS_REVERSED = (3, 4, 7, 8)


def read_photo(source: str | os.PathLike | bytes) -> np.ndarray:
    """Reads a photo's pixels, whatever its format and colours.

    BMP, GIF, JPEG, PNG and WebP are read, by content and not by name, and HEIC where
    pillow-heif is installed. Grey, CMYK, palette and 16-bit images are converted; of
    several frames the first is taken; transparency is dropped. The EXIF orientation of
    JPEG and HEIC is respected.

    Args:
        source: Path of an image file, or its bytes.

    Returns:
        uint8 `(height, width, 3)`.

    Raises:
        InputError: If there is no such file, or it is no image, is truncated, or has
            more than `MAX_PIXELS` pixels.
    """
    from PIL import Image, UnidentifiedImageError

    name, file = "The file", source
    if isinstance(source, bytes):
        file = io.BytesIO(source)
    else:
        name = str(source)
        if not pathlib.Path(source).is_file():
            raise InputError(f"There is no file {source}.")
        if not pathlib.Path(source).stat().st_size:
            raise InputError(f"{source} is empty.")
    try:
        with Image.open(file, formats=readable_formats()) as image:
            check_size(image.size, name)
            return orient(to_rgb(image), exif_orientation(image))
    except InputError:
        raise
    except UnidentifiedImageError:
        *others, last = readable_formats()
        formats = f"{', '.join(others)} or {last}"
        needed = "" if HEIF else "; HEIC needs the package pillow-heif"
        raise InputError(f"{name} is not an image ({formats}{needed}).") from None
    except Image.DecompressionBombError:
        raise InputError(
            f"{name} has far more than {MAX_PIXELS:,} pixels, the most that are read."
        ) from None
    except Exception as error:  # Pillow's decoders raise anything at damaged files
        raise InputError(f"{name} cannot be read: {reason_of(error)}.") from None


def readable_formats() -> tuple[str, ...]:
    """Names of the formats that `read_photo` reads, as Pillow calls them."""
    if not HEIF:
        return FORMATS
    import pillow_heif

    pillow_heif.register_heif_opener()  # which turns images by their orientation
    return (*FORMATS, "HEIF")


def check_size(size: tuple[int, int], name: str) -> None:
    """Checks the number of an image's pixels, before it is decoded.

    Raises:
        InputError: If there are more than `MAX_PIXELS`.
    """
    width, height = size
    if width * height > MAX_PIXELS:
        raise InputError(
            f"{name} has {width} x {height} pixels; at most {MAX_PIXELS:,} are read."
        )


def to_rgb(image: Any) -> np.ndarray:
    """Converts a Pillow image to pixels, uint8 `(height, width, 3)`."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits, of which 8 are kept
        grey = (np.array(image).astype("uint32") >> 8).astype("uint8")
        image = Image.fromarray(grey)
    return np.array(image.convert("RGB"))


def exif_orientation(image: Any) -> int:
    """Reads the orientation in a JPEG's EXIF data; 1 if there is none."""
    from PIL import Image

    if image.format not in ("JPEG", "MPO"):
        return 1
    exif = Image.Exif()
    try:
        exif.load(image.info.get("exif"))
        return exif.get(ORIENTATION, 1)
    except Exception:  # damaged EXIF data
        return 1


def orient(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Rotates or flips pixels, `(height, width, 3)`, by EXIF's orientation."""
    if orientation in TRANSPOSED:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in COLUMNS_REVERSED:
        pixels = pixels[:, ::-1]
    if orientation in ROWS_REVERSED:
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def resize_photo(pixels: Any, size: int) -> Any:
    """Resizes a photo to the square that an `Extractor` reads.

    Args:
        pixels: `(height, width, 3)`, 0 to 255, or a batch of them.
        size: int, height and width of the square; proportions are not kept.

    Returns:
        float32 `(size, size, 3)`, or a batch, bilinear with antialiasing.
    """
    pixels = ops.cast(pixels, "float32")
    return ops.image.resize(pixels, (size, size), antialias=True)


def find_photos(folder: str | os.PathLike) -> list[pathlib.Path]:
    """Lists all images in a folder and below it, by their suffixes, sorted.

    Hidden files and folders are passed over.

    Raises:
        InputError: If there is no such folder, or no image in it.
    """
    return find_files(folder, SUFFIXES, "image")


def find_files(
    folder: str | os.PathLike, suffixes: tuple[str, ...], noun: str
) -> list[pathlib.Path]:
    """Lists the files of some suffixes in a folder and below it, see `list_files`.

    Args:
        folder: Path.
        suffixes: tuple of str, in lower case.
        noun: str, what such a file is called in messages.

    Raises:
        InputError: If there is no such folder, or no such file in it.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    found = list_files(folder, suffixes, below=True)
    if not found:
        raise InputError(f"There is no {noun} in {folder} ({', '.join(suffixes)}).")
    return found


def check_photos(photos: Any) -> Any:
    """Returns photos; raises `InputError` if they are no list of at least one."""
    if isinstance(photos, (str, bytes, os.PathLike)) or not len(photos):
        raise InputError(
            "Photos should be a list of at least one path or array. "
            f"Received: {photos!r}"
        )
    return photos


def pixels_of(photo: Any) -> Any:
    """The pixels of a photo given as a path or an array.

    Raises:
        InputError: If it cannot be read, or has another shape.
    """
    if not hasattr(photo, "shape"):
        return read_photo(photo)
    if len(photo.shape) != 3 or photo.shape[-1] != 3 or 0 in photo.shape:
        raise InputError(
            "A photo's array should have the shape (height, width, 3). "
            f"Received: {tuple(photo.shape)}"
        )
    return photo
