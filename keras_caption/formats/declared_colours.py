"""The colours that a photo declares by other means than a profile."""

import struct
from typing import Any, NamedTuple

from keras_caption.base.progress import report
from keras_caption.formats.photo_parts import PNG

ADOBE_RGB = "R03"  # the interoperability index of cameras (DCF 2.0)
D65, DCI = (0.3127, 0.3290), (0.314, 0.351)
SRGB_GAMMA = 0.45455  # of PNG; exact sRGB differs from it by less than 2 of 255
# Parameters g, a, b, c and d: `(a x + b) ** g` from d on, and `c x` below it.
SRGB_CURVE = (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
BT_709_CURVE = (1 / 0.45, 1 / 1.099, 0.099 / 1.099, 1 / 4.5, 0.081)
SRGB_PRIMARIES = ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06))
BT_601 = ((0.630, 0.340), (0.310, 0.595), (0.155, 0.070))
P3 = ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060))
# White and primaries by their numbers in ITU-T H.273, 2 for unspecified ones.
PRIMARIES = {
    1: (D65, SRGB_PRIMARIES),
    2: (D65, SRGB_PRIMARIES),
    5: (D65, ((0.64, 0.33), (0.29, 0.60), (0.15, 0.06))),
    6: (D65, BT_601),
    7: (D65, BT_601),
    9: (D65, ((0.708, 0.292), (0.170, 0.797), (0.131, 0.046))),
    11: (DCI, P3),
    12: (D65, P3),
}
CURVES = {
    **dict.fromkeys((1, 6, 14, 15), BT_709_CURVE),
    **dict.fromkeys((2, 13), SRGB_CURVE),
    4: (2.2,),
    5: (2.8,),
    8: (1.0,),
}


class DeclaredColours(NamedTuple):
    """Colours of an image.

    Attributes:
        white: tuple of float, chromaticity x and y.
        primaries: Three such tuples, of red, green and blue.
        curve: tuple of one float, an exponent, or of five, as in `SRGB_CURVE`: the
            function from values in [0, 1] to light.
    """

    white: tuple[float, float]
    primaries: tuple[tuple[float, float], ...]
    curve: tuple[float, ...]


def declared_colours(image: Any, content: bytes, name: str) -> DeclaredColours | None:
    """Reads the colours that a photo declares by other means than a profile.

    These are the chunks `cICP`, `gAMA` and `cHRM` of a PNG, and the interoperability
    index R03 in EXIF data, by which cameras declare Adobe RGB. Colours of HDR and other
    ones that are not known are reported, and taken for sRGB.

    Args:
        image: Image of Pillow, before it is turned by its EXIF data.
        content: bytes of a PNG; those of other files are not read.
        name: str, name of the photo in messages.

    Returns:
        `DeclaredColours`; or `None` if they are those of the profile, or sRGB.
    """
    if image.format == "PNG" and (codes := cicp_of(content)) is not None:
        primaries, transfer, *others = codes
        if primaries in PRIMARIES and transfer in CURVES and others == [0, 1]:
            return DeclaredColours(*PRIMARIES[primaries], CURVES[transfer])
        report(
            f"{name} declares colours that are not known here, such as HDR (cICP "
            f"{'-'.join(map(str, codes))}): it is read as sRGB."
        )
        return None
    info = image.info
    if info.get("icc_profile") or "srgb" in info:
        return None
    if "gamma" in info or "chromaticity" in info:
        return of_chunks(info.get("gamma"), info.get("chromaticity"))
    return of_exif(image)


def cicp_of(content: bytes) -> tuple[int, ...] | None:
    """The four numbers in the chunk `cICP` of a PNG, which Pillow does not read."""
    place = len(PNG)
    while place + 12 <= len(content):
        size, kind = struct.unpack(">I4s", content[place : place + 8])
        if kind == b"IDAT":
            return None
        if kind == b"cICP" and size == 4:
            return tuple(content[place + 8 : place + 12])
        place += 12 + size
    return None


def of_chunks(
    gamma: float | None, chromaticity: tuple[float, ...] | None
) -> DeclaredColours | None:
    """Colours by `gAMA` and `cHRM`; `None` if they are those of sRGB, or impossible."""
    white, *primaries = D65, *SRGB_PRIMARIES
    if chromaticity is not None:
        white, *primaries = zip(chromaticity[::2], chromaticity[1::2], strict=True)
    if any(y <= 0 for _, y in (white, *primaries)):
        return None
    if gamma is not None and not 0.01 < gamma < 100:
        return None
    near = all(
        abs(x - y) < 0.002
        for of, other in zip((white, *primaries), (D65, *SRGB_PRIMARIES), strict=True)
        for x, y in zip(of, other, strict=True)
    )
    curve: tuple[float, ...] = SRGB_CURVE
    if gamma is not None and abs(gamma - SRGB_GAMMA) >= 0.002:
        curve = (1 / gamma,)
    elif near:
        return None
    return DeclaredColours(white, tuple(primaries), curve)


def of_exif(image: Any) -> DeclaredColours | None:
    """Adobe RGB, if EXIF data of a camera declare it."""
    from PIL.ExifTags import IFD, Interop

    try:
        index = image.getexif().get_ifd(IFD.Interop).get(Interop.InteropIndex)
    except Exception:  # damaged EXIF data do no harm
        return None
    if str(index or "").rstrip("\0 ") != ADOBE_RGB:
        return None
    green = (0.21, 0.71)
    red, _, blue = SRGB_PRIMARIES
    return DeclaredColours(D65, (red, green, blue), (563 / 256,))
