"""Descriptions in the metadata of photos: EXIF, IPTC and XMP, by exiv2."""

import contextlib
import functools
import os
import pathlib
import re

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.device_texts import is_of_device
from keras_caption.formats.folders import PHOTOS, in_any_case
from keras_caption.formats.photo_losses import DAMAGED, check_losses, check_xmp_losses
from keras_caption.formats.photo_parts import (
    JPEG,
    PNG,
    RIFF,
    TIFF,
    with_metadata,
    with_xmp_in_tiff,
)

UTF8 = "\x1b%G"  # IPTC's name of it
CHARACTERS, CAPTION = "Iptc.Envelope.CharacterSet", "Iptc.Application2.Caption"
DESCRIPTION = "Xmp.dc.description"
# Where people's programs keep what they write about a photo.
FIELDS = (
    *(DESCRIPTION, "Xmp.dc.title", "Xmp.tiff.ImageDescription", "Xmp.acdsee.caption"),
    *("Xmp.exif.UserComment", "Xmp.iptc.AltTextAccessibility"),
    *("Xmp.iptc.ExtDescrAccessibility", CAPTION, "Exif.Image.ImageDescription"),
    *("Exif.Photo.UserComment", "Exif.Image.XPTitle", "Exif.Image.XPComment"),
    "Exif.Image.XPSubject",
)
DEVICE = ("Exif.Image.Make", "Exif.Image.Model")
OWNER = "Xmp.photoshop.SidecarForExtension"
EXIF_CODES = {b"ASCII": "ascii", b"UNICODE": "utf-16-le", b"JIS": "iso2022_jp"}
XMP = ".xmp"
CONTENT_CREDENTIALS = (b"jumb", b"c2pa")  # signed with all bytes of the file
BLANK = b"\0\t\n\r \xef\xbb\xbf"
EMPTY_SIDECAR = b"""\
<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"/>
<?xpacket end="w"?>"""


def is_described(path: str | os.PathLike) -> bool:
    """Whether a photo has a description: in the file, or in XMP beside it.

    Texts in EXIF, IPTC and XMP count, Windows' titles, subjects and comments, and the
    description of a PNG, but not those of devices, as `is_of_device` says. The
    files beside `dog.jpg` are `dog.jpg.xmp` and `dog.xmp`, their suffix in any case. If
    other photos are called `dog`, `dog.xmp` has to name the suffix of its photo.
    A file that cannot be read has no description.
    """
    path = pathlib.Path(path)
    own = [path, *in_any_case(f"{path}{XMP}")]
    if any(_texts(file) for file in own):
        return True
    for shared in in_any_case(path.with_suffix(XMP)):
        if texts := _texts(shared):
            owner = texts.get(OWNER, "")
            same = [x for x in _photos_called(path) if x != path.name]
            if not same or owner.lower() == path.suffix[1:].lower() != "":
                return True
    return False


def sidecar_of(path: str | os.PathLike) -> pathlib.Path:
    """The path of the XMP file of a photo: the one there is, its suffix in any case."""
    name = f"{os.fspath(path)}{XMP}"
    return pathlib.Path(next(iter(in_any_case(name)), name))


def describe_photo(content: bytes, text: str) -> bytes:
    """Adds a description to the metadata of a photo, as XMP and, of a JPEG, as IPTC.

    Pictures, other metadata and all other bytes of the file stay as they are, see
    `with_metadata`; what is lost is an error.

    Args:
        content: bytes of the file.
        text: str.

    Returns:
        bytes of the file with the description.

    Raises:
        InputError: If descriptions are not written into its format, or the file is
            damaged, is signed or would lose something; the message is the reason,
            without a subject.
    """
    is_tiff = content[:4] in TIFF
    if not (is_tiff or content.startswith((JPEG, PNG, RIFF))):
        raise InputError("descriptions are not written into its format")
    if all(mark in content for mark in CONTENT_CREDENTIALS):
        raise InputError(
            "a change would break the signature of its Content Credentials"
        )
    try:
        before = _read(content)
        packet = before["packet"]
        if is_tiff:
            new = describe_xmp(packet.encode(), text)
            described = with_xmp_in_tiff(content, new)
        else:
            described = with_metadata(content, _rewritten(content, text))
        after = _read(described)
    except InputError:
        raise
    except Exception:  # exiv2 raises any class of error
        raise InputError(DAMAGED) from None
    check_losses(content, described)
    check_xmp_losses(packet, after["packet"])
    own = ("packet", DESCRIPTION, CHARACTERS, CAPTION, "Exif.Image.XMLPacket")
    if any(after.get(k) != x for k, x in before.items() if k not in own):
        raise InputError("some of its metadata would be lost")
    return described


def describe_xmp(content: bytes, text: str) -> bytes:
    """Adds a description to XMP.

    Args:
        content: bytes of an XMP file; those of an empty one become XMP.
        text: str.

    Raises:
        InputError: If it is no XMP, or values would be lost; the message is the reason.
    """
    if not content.strip(BLANK):
        content = EMPTY_SIDECAR
    check_xmp_losses(content, content)
    try:
        with load_exiv2().ImageData(content) as xmp:
            xmp.modify_xmp({DESCRIPTION: {'lang="x-default"': text}})
            described = xmp.get_bytes()
    except Exception:
        raise InputError("it is no XMP") from None
    check_xmp_losses(content, described)
    return described


@functools.cache
def load_exiv2():
    """Imports the package `pyexiv2` and silences its warnings."""
    with missing_extras():
        import pyexiv2
    pyexiv2.set_log_level(4)
    return pyexiv2


def _rewritten(content, text):
    """A photo with a description, as exiv2 writes the file."""
    with load_exiv2().ImageData(content) as photo:
        photo.modify_xmp({DESCRIPTION: {'lang="x-default"': text}})
        if content.startswith(JPEG):
            # IPTC has one encoding for all of its texts.
            earlier = photo.read_iptc(encoding="latin-1")
            if not earlier or earlier.get(CHARACTERS) == UTF8:
                photo.modify_iptc({CHARACTERS: UTF8, CAPTION: text})
        return photo.get_bytes()


def _read(source):
    """All metadata of a file, or of its bytes; `packet` is XMP as it stands there.

    Raises:
        Exception: Of any class, if it cannot be opened.
    """
    exiv2, values = load_exiv2(), {"packet": ""}
    is_content = isinstance(source, bytes)
    with exiv2.ImageData(source) if is_content else exiv2.Image(source) as photo:
        for read in photo.read_xmp, photo.read_iptc, photo.read_exif:
            with contextlib.suppress(Exception):  # one that is damaged hides no other
                values |= read(encoding="latin-1")
        with contextlib.suppress(Exception):
            values["packet"] = photo.read_raw_xmp()
        if photo.get_mime_type() == "image/png":  # of others, programs write it
            with contextlib.suppress(Exception):
                values["comment"] = photo.read_comment()
    return values


def _texts(path):
    """Fields of a file with texts of people; none if it cannot be read."""
    if not os.path.isfile(path):
        return {}
    try:
        values = _read(str(path))
    except Exception:  # exiv2 raises any class of error
        return {}
    device = " ".join(str(values.get(field, "")) for field in DEVICE)
    texts = {
        field: text
        for field in (*FIELDS, "comment")
        for text in _variants(values.get(field, ""))
        if not is_of_device(text, device)
    }
    return texts and {**texts, OWNER: str(values.get(OWNER, ""))}


def _variants(value):
    """The texts of a field, in all languages, without padding and codes."""
    values = value.values() if isinstance(value, dict) else [value]
    for text in values:
        if isinstance(text, list):
            text = " ".join(text)
        if re.fullmatch(r"\d+( \d+){8,}", text):  # EXIF's comments as bytes
            content = bytes(int(x) % 256 for x in text.split())
            code = EXIF_CODES.get(content[:8].rstrip(b"\0"), "latin-1")
            text = content[8:].decode(code, "replace")
        yield re.sub("^charset=\\w+ |\0", "", text).strip()


def _photos_called(path):
    """Names of the photos of a folder that differ from a path in suffix only."""
    names = os.listdir(path.parent)
    return [
        name
        for name in names
        if pathlib.PurePath(name).stem == path.stem and name.lower().endswith(PHOTOS)
    ]
