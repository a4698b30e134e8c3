"""Texts that cameras and programs write where people write descriptions."""

import re

# Letters and digits of whole texts, in lower case.
TEXTS = frozenset(
    [
        *("dsc", "digitalcamera", "digitalstillcamera", "camera", "photo", "picture"),
        *("image", "imagedescription", "exifjpegpicture", "default", "untitled"),
        *("mybeautifulpicture", "defaultdescription", "screenshot", "thumbnail"),
        # Modes of telephones.
        *("cof", "dav", "mde", "mdn", "hdr", "hdrpl", "sdr", "rhdr", "vhdr", "qrf"),
        *("edf", "fbt", "btf", "ptr", "nor", "norm", "smart", "dig", "oznor"),
        *("oznorwo", "oznorcor", "oznorpl", "rptnb", "rptfc", "ptfbty", "hbqr"),
    ]
)
MADE = re.compile(
    r"^(?-i:[A-Z ]+ (DIGITAL (STILL ?)?CAMERA|CAMERA PICTURES|DSC))$"
    r"|^<.*>$"  # <Digimax S600 / Kenox S600>
    r"|^(dcim|[a-z]:)?[\\/]\S*$"  # DCIM\100MEDIA\DJI_0012.JPG
    r"|^\S+\.(jpe?g|png|tiff?|heic|webp|dng|mp4|mov)$"
    r"|^(dsc|img|pxl|dji|gopr|oplus|oppo|maker)[_:]?\w*\d\w*$"  # oplus_32
    r"|^(\s*\w+: ?[^;]*;){2,}"  # filter: 0; jpegRotation: 90;
    r"|^(\{|ImageJ=|(created|generated) (with|by) )",
    re.IGNORECASE,
)


def is_of_device(text: str, device: str = "") -> bool:
    """Returns whether nobody has written a text: a device, or a program, has.

    Args:
        text: str, as EXIF's `ImageDescription`.
        device: str, name of the maker and the model of the camera.
    """
    words = set(re.findall(r"\w+", text.lower()))
    return (
        "".join(re.findall(r"[^\W_]+", text.lower())) in {"", *TEXTS}
        or words <= {*re.findall(r"\w+", device.lower()), "camera", "digital"}
        or MADE.search(text.strip()) is not None
    )
