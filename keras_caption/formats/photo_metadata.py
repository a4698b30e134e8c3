"""Descriptions in the metadata of photos: XMP and IPTC, by exiv2."""

import os
import pathlib

from keras_caption.errors import missing_extras

JPEG = b"\xff\xd8"
UTF8 = "\x1b%G"  # IPTC's name of it
CHARACTERS, CAPTION = "Iptc.Envelope.CharacterSet", "Iptc.Application2.Caption"
DESCRIPTION = "Xmp.dc.description"
EMPTY_SIDECAR = b"""\
<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"/>
<?xpacket end="w"?>"""


def is_described(path: str | os.PathLike) -> bool:
    """Whether a photo has a description: in the file, or in XMP beside it.

    The files beside `dog.jpg` are `dog.jpg.xmp` and `dog.xmp`. A file that cannot be
    read has no description. EXIF's `ImageDescription` does not count: cameras write
    their names into it.
    """
    path = pathlib.Path(path)
    return any(
        map(_has_description, (path, sidecar_of(path), path.with_suffix(".xmp")))
    )


def sidecar_of(path: str | os.PathLike) -> pathlib.Path:
    """The path of the XMP file of a photo."""
    path = pathlib.Path(path)
    return path.with_name(f"{path.name}.xmp")


def describe_photo(content: bytes, text: str) -> bytes | None:
    """Adds a description to the metadata of a photo, as XMP and, of a JPEG, as IPTC.

    The pixels stay as they are, bit for bit.

    Args:
        content: bytes of the file; or of an XMP file.
        text: str.

    Returns:
        bytes of the file with the description, or `None` if its format holds none, or
        the file is damaged.
    """
    exiv2 = load_exiv2()
    try:
        with exiv2.ImageData(content) as photo:
            photo.modify_xmp({DESCRIPTION: {'lang="x-default"': text}})
            if content.startswith(JPEG):
                # IPTC has one encoding for all of its texts.
                earlier = photo.read_iptc(encoding="latin-1")
                if not earlier or earlier.get(CHARACTERS) == UTF8:
                    photo.modify_iptc({CHARACTERS: UTF8, CAPTION: text})
            return photo.get_bytes()
    except (RuntimeError, ValueError):
        return None


def load_exiv2():
    """Imports the package `pyexiv2` and silences its warnings."""
    with missing_extras():
        import pyexiv2
    pyexiv2.set_log_level(3)
    return pyexiv2


def _has_description(path):
    """Whether one file has a description."""
    if not path.is_file():
        return False
    exiv2 = load_exiv2()
    try:
        with exiv2.Image(str(path)) as photo:
            texts = photo.read_xmp().get(DESCRIPTION, "")
            texts = texts.values() if isinstance(texts, dict) else [texts]
            iptc = photo.read_iptc(encoding="latin-1")
            return any(map(str.strip, [*texts, iptc.get(CAPTION, "")]))
    except (RuntimeError, ValueError):
        return False
