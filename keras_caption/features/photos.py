import collections
import contextlib
import importlib.util
import io
import os
import pathlib
import threading
from typing import Any

import numpy as np
from jaxtyping import Float32, Num, UInt8

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.features.colour_profile import colour_profile
from keras_caption.formats.deadline import check_time
from keras_caption.formats.declared_colours import declared_colours
from keras_caption.formats.faults import existing_folder, reason_of
from keras_caption.formats.folders import (
    PHOTOS,
    describe_passed_over,
    existing_path,
    list_files,
)
from keras_caption.formats.jpeg_scans import check_scans

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
HEIF = importlib.util.find_spec("pi_heif") is not None
# Decoding and resizing a photo takes up to 20 bytes for each pixel.
MAX_PIXELS = 64 * 2**20
# TensorFlow crashes at times if several threads resize photos eagerly.
RESIZING = threading.Lock()


def read_photo(
    source: str | os.PathLike | bytes,
    name: str | None = None,
    max_pixels: int = MAX_PIXELS,
) -> UInt8[np.ndarray, "height width 3"]:
    """Reads the pixels of a photo in any format and colour space.

    The formats are BMP, GIF, JPEG, PNG, TIFF and WebP, AVIF if Pillow reads it, as from
    11.3 on, and HEIC if pi-heif is installed; the content decides, not the name. Grey,
    CMYK, Lab, palette and 16-bit images are converted to RGB, and colours to sRGB: by
    the profile in the file, or by what a PNG or EXIF data declare instead, see
    `keras_caption.formats.declared_colours`; a damaged profile is ignored. The first
    frame of several is read. Transparent pixels are composed over white. Photos are
    turned by the orientation in their EXIF data or, without EXIF data, in XMP.

    Args:
        source: Path of an image file, or its bytes.
        name: str, subject of messages. Defaults to the path.
        max_pixels: int, greatest number of pixels that are decoded.

    Returns:
        uint8 `(height, width, 3)`.

    Raises:
        InputError: If there is no such file, it is no image, it is truncated, it has
            more than `max_pixels` pixels, or it is a JPEG of too many scans.
    """
    with missing_extras():
        from PIL import Image, ImageOps, UnidentifiedImageError
        from PIL.JpegImagePlugin import JpegImageFile

    if isinstance(source, bytes):
        name = name or "The file"
    else:
        name = name or str(source)
        source = existing_path(source)
        if not pathlib.Path(source).is_file():
            raise InputError(f"There is no file {source}.")
        if not pathlib.Path(source).stat().st_size:
            raise InputError(f"{source} is empty.")
    if not source:
        raise InputError(f"{name} is empty.")
    check_time(name)
    try:
        file: io.BytesIO | str = (
            source if isinstance(source, str) else io.BytesIO(source)
        )
        with Image.open(file, formats=readable_formats()) as image:
            check_size(image.size, name, max_pixels)
            is_jpeg = isinstance(image, JpegImageFile)  # also one of several images
            if isinstance(source, bytes):
                content = source
            elif is_jpeg or image.format == "PNG":
                content = pathlib.Path(source).read_bytes()
            else:
                content = b""  # nothing reads that of other formats
            if is_jpeg:
                check_scans(content, *image.size, name)
            image.load()
            if colours := declared_colours(image, content, name):
                image.info["icc_profile"] = colour_profile(colours)
            with contextlib.suppress(Exception):  # damaged EXIF data do no harm
                ImageOps.exif_transpose(image, in_place=True)
            return to_rgb(image, name)
    except InputError:
        raise
    except UnidentifiedImageError:
        *others, last = readable_formats()
        formats = f"{', '.join(others)} or {last}"
        needed = "" if HEIF else "; HEIC needs the package pi-heif"
        raise InputError(f"{name} is not an image ({formats}{needed}).") from None
    except Image.DecompressionBombError:
        raise InputError(
            f"{name} has far more than {max_pixels:,} pixels, the most that are read."
        ) from None
    except Exception as error:  # damaged files make Pillow raise any class of error
        raise InputError(f"{name} cannot be read: {reason_of(error)}.") from None


def readable_formats() -> tuple[str, ...]:
    """Pillow's names of the formats that `read_photo` reads."""
    from PIL import features

    formats = [*FORMATS]
    if "avif" in features.get_supported():
        formats.append("AVIF")
    if HEIF:
        import pi_heif

        pi_heif.register_heif_opener()  # which turns images by their orientation
        formats.append("HEIF")
    return tuple(formats)


def check_size(size: tuple[int, int], name: str, max_pixels: int = MAX_PIXELS) -> None:
    """Checks the number of pixels of an image before it is decoded.

    Raises:
        InputError: If it has more than `max_pixels`.
    """
    width, height = size
    if width * height > max_pixels:
        raise InputError(
            f"{name} has {width} x {height} pixels; at most {max_pixels:,} are read."
        )


def to_rgb(image: Any, name: str) -> np.ndarray:
    """Converts a Pillow image to pixels over white, uint8 `(height, width, 3)`.

    Raises:
        InputError: If pixels have 32 bits: their range of values is unknown.
    """
    with missing_extras():
        from PIL import Image

    if image.mode in ("F", "I"):
        raise InputError(f"{name} has pixels of 32 bits; at most 16 are read.")
    if image.mode.startswith("I;16"):  # the upper 8 of 16 bits are kept
        deep, info = np.array(image), image.info
        transparent = info.get("transparency")
        image = Image.fromarray((deep >> 8).astype("uint8"))
        image.info["icc_profile"] = info.get("icc_profile")
        if transparent is not None:
            alpha = 255 * (deep != transparent).astype("uint8")
            image.putalpha(Image.fromarray(alpha))
    image = _in_srgb(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image)
        image = white
    return np.array(image.convert("RGB"))


def _in_srgb(image):
    """An image with the colours of its profile, if it has one, in sRGB."""
    from PIL import ImageCms

    if not (content := image.info.get("icc_profile")):
        if image.mode != "LAB":
            return image
        content = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    try:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(content))
        if "sRGB" in ImageCms.getProfileDescription(profile):
            return image
        alpha = None
        if image.has_transparency_data:
            image = image.convert("LA" if image.mode in ("L", "LA") else "RGBA")
            alpha = image.getchannel("A")
            image = image.convert(image.mode.removesuffix("A"))
        elif image.mode == "P":
            image = image.convert("RGB")
        if image.mode == "L" and profile.profile.xcolor_space.strip() == "RGB":
            image = image.convert("RGB")
        srgb = ImageCms.createProfile("sRGB")
        converted = ImageCms.profileToProfile(image, profile, srgb, outputMode="RGB")
    except (ImageCms.PyCMSError, OSError):  # damaged, or of another kind of colours
        return image
    if alpha is not None:
        converted.putalpha(alpha)
    return converted


def resize_photo(
    pixels: Num[Tensor, "*batch height width 3"], size: int
) -> Float32[Tensor, "*batch size size 3"]:
    """Resizes a photo to the square that an `Extractor` reads.

    Args:
        pixels: `(height, width, 3)`, 0 to 255, or a batch of photos.
        size: int, height and width of the square; proportions are not kept.

    Returns:
        float32 `(size, size, 3)`, or a batch. Interpolation is bilinear, with
        antialiasing.
    """
    return resize(pixels, size, size)


def resize(
    pixels: Num[Tensor, "*batch height width 3"],
    height: int,
    width: int,
    antialias: bool = True,
) -> Float32[Tensor, "*batch height width 3"]:
    """Resizes images by bilinear interpolation. Threads do this one at a time."""
    from keras import ops

    from keras_caption.features.keras_defaults import CHANNELS_LAST

    pixels = ops.cast(pixels, "float32")
    with RESIZING:
        return ops.image.resize(
            pixels, (height, width), antialias=antialias, data_format=CHANNELS_LAST
        )


def find_photos(
    folder: str | os.PathLike, passed_over: collections.Counter | None = None
) -> list[pathlib.Path]:
    """Lists all images in a folder and below it, by their suffixes, sorted.

    Hidden files and folders, and links to folders, are passed over.

    Args:
        folder: Path.
        passed_over: `collections.Counter` that counts the files passed over, see
            `keras_caption.formats.folders.list_files`. Defaults to `None`.

    Raises:
        InputError: If there is no such folder, or no image in it.
    """
    return find_files(folder, PHOTOS, "image", passed_over)


def find_files(
    folder: str | os.PathLike,
    suffixes: tuple[str, ...],
    noun: str,
    passed_over: collections.Counter | None = None,
) -> list[pathlib.Path]:
    """Lists the files with one of the suffixes in a folder and below it.

    Args:
        folder: Path.
        suffixes: tuple of str, in lower case.
        noun: str, noun for such a file in messages.
        passed_over: As in `find_photos`.

    Raises:
        InputError: If there is no such folder, or no such file in it.
    """
    folder = existing_folder(existing_path(folder))
    counts: collections.Counter = collections.Counter()  # of this folder alone
    files = list_files(folder, suffixes, True, counts)
    if passed_over is not None:
        passed_over.update(counts)
    if not files:
        has = f"; it has {describe_passed_over(counts)}" if counts else ""
        known = ", ".join(suffixes)
        raise InputError(f"There is no {noun} in {folder} ({known}){has}.")
    return files


def check_photos(photos: Any) -> Any:
    """Returns photos, or raises `InputError` if they are no list of at least one."""
    if isinstance(photos, (str, bytes, os.PathLike)) or not len(photos):
        raise InputError(
            "Photos should be a list of at least one path or array. "
            f"Received: {photos!r}"
        )
    return photos


def pixels_of(photo: Any) -> Any:
    """The pixels of a photo, which is a path or an array.

    Raises:
        InputError: If the file cannot be read, or the array has another shape.
    """
    if not hasattr(photo, "shape"):
        return read_photo(photo)
    if len(photo.shape) != 3 or photo.shape[-1] != 3 or 0 in photo.shape:
        raise InputError(
            "A photo's array should have the shape (height, width, 3). "
            f"Received: {tuple(photo.shape)}"
        )
    return photo
