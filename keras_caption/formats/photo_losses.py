"""What a new version of a photo's file has lost."""

import collections
import hashlib
import io
import warnings
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.photo_parts import JPEG, TIFF

MAX_PIXELS = 2**30  # of all pictures of a file, which decode in seconds
END_OF_IMAGE = b"\xff\xd9"
IPTC, IPTC_DIGEST, XMP_OF_TIFF = 0x0404, 0x0425, 700
# Places and lengths of the strips or tiles of a TIFF's page.
PIECES = ((273, 279), (324, 325))
MAKE, EXIF, MAKER_NOTE = 0x010F, 0x8769, 0x927C
# Their notes hold no places in the file, such as those of a preview at its end.
WITHOUT_PLACES = ("apple", "google", "samsung")
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
ABOUT_THE_FILE = (RDF + "about", RDF + "parseType", "{adobe:ns:meta/}xmptk")
DAMAGED = "the file is damaged"


def check_losses(before: bytes, after: bytes) -> None:
    """Checks that a photo with a new description has all that it had before.

    Compares the pixels of all pictures, as Pillow decodes them, and what it reads
    beside them: profiles, EXIF, comments, texts, the tags of all pages of a TIFF.

    Args:
        before, after: bytes of the two files.

    Raises:
        InputError: If something is missing, or the photo was damaged before.
    """
    try:
        pictures = list(_pictures(before))
        _check_places(before)
    except Exception:  # Pillow raises any class of error
        raise InputError(DAMAGED) from None
    try:
        is_kept = list(_pictures(after)) == pictures
    except Exception:
        is_kept = False
    if not is_kept:
        raise InputError("some of what the file holds would be lost")


def check_xmp_losses(before: str | bytes, after: str | bytes) -> None:
    """Checks that XMP with a new description has all values that it had before.

    Raises:
        InputError: If one is missing, or one of the two is no XMP.
    """
    try:
        lost = _values(before) - _values(after)
    except (ElementTree.ParseError, ValueError, LookupError):
        raise InputError("it is no XMP") from None
    if lost:
        raise InputError("some of its XMP would be lost")


def _values(packet):
    """Counts pairs of a name and a text, of XMP's elements and attributes alike."""
    if not packet:
        return collections.Counter()
    return collections.Counter(
        (name, value.strip())
        for element in ElementTree.fromstring(packet).iter()
        for name, value in [(element.tag, element.text), *element.attrib.items()]
        if value and value.strip() and name not in ABOUT_THE_FILE
    )


def _pictures(content) -> Iterator[tuple[Any, ...]]:
    """For each picture of a file: what it is, its pixels, and what is beside it."""
    with missing_extras():
        from PIL import Image, ImageSequence

    with warnings.catch_warnings(), Image.open(io.BytesIO(content)) as image:
        warnings.simplefilter("ignore")
        yield image.format, getattr(image, "n_frames", 1)
        pixels = 0
        for picture in ImageSequence.Iterator(image):
            pixels += picture.width * picture.height
            if pixels > MAX_PIXELS:
                raise ValueError("too many pixels")
            digest = hashlib.sha256(picture.tobytes()).digest()
            tags = dict(getattr(picture, "tag_v2", {}))
            tags.pop(XMP_OF_TIFF, None)
            yield picture.mode, picture.size, digest, tags, _beside(picture.info)


def _beside(info):
    """What Pillow reads beside a picture, without XMP and IPTC."""
    own = ("xmp", "XML:com.adobe.xmp", "photoshop", "mpoffset")
    photoshop = info.get("photoshop", {})
    kept = {k: x for k, x in photoshop.items() if k not in (IPTC, IPTC_DIGEST)}
    return {k: x for k, x in info.items() if k not in own}, kept


def _check_places(content):
    """Raises `ValueError` if what a file says of its places would be wrong."""
    from PIL import Image, ImageSequence

    with Image.open(io.BytesIO(content)) as image:
        if content[:4] in TIFF:
            for page in ImageSequence.Iterator(image):
                for places, sizes in PIECES:
                    pieces = zip(
                        page.tag_v2.get(places, ()),
                        page.tag_v2.get(sizes, ()),
                        strict=True,
                    )
                    if any(place + size > len(content) for place, size in pieces):
                        raise ValueError("a strip ends beyond the file")
        elif content.startswith(JPEG) and "mpoffset" not in image.info:
            scans = content.find(b"\xff\xda")
            end = content.find(END_OF_IMAGE, scans) + len(END_OF_IMAGE)
            exif = image.getexif()
            maker = str(exif.get(MAKE, "")).lower()
            if (
                content[end:].strip(b"\0")
                and MAKER_NOTE in exif.get_ifd(EXIF)
                and not maker.startswith(WITHOUT_PLACES)
            ):
                raise ValueError("a maker's note may name places behind the picture")
