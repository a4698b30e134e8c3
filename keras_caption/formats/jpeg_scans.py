"""The scans of JPEG files, each of which takes time for all pixels."""

import re

from keras_caption.base.errors import InputError

# A progressive photo has about ten scans; a malicious one has many scans of few bytes.
MAX_SCANS = 100
MAX_SCANNED = 2**30  # pixels of all scans, which take decoders a second
SEGMENTS = 10_000
END_OF_IMAGE, START_OF_SCAN = 0xD9, 0xDA
START = b"\xff\xd8"
# A marker that begins a segment or ends the image. Within a scan, 0xFF 0x00 is the byte
# 0xFF itself, and markers without content are skipped.
MARKER = re.compile(rb"\xff[^\x00\x01\xd0-\xd7\xff]")


def check_scans(content: bytes, width: int, height: int, name: str) -> None:
    """Checks, before an image is decoded, that decoding is fast.

    Args:
        content: bytes of the file; other formats than JPEG have no scans.
        width, height: int, in pixels.
        name: str, name of the image in the message.

    Raises:
        InputError: If the image has too many scans.
    """
    scans = count_scans(content)
    if scans > MAX_SCANS or scans * width * height > MAX_SCANNED:
        raise InputError(
            f"{name} has {scans} scans or more of {width} x {height} pixels; at most "
            f"{MAX_SCANS} are read, of {MAX_SCANNED:,} pixels in all."
        )


def count_scans(content: bytes) -> int:
    """Counts the scans of a JPEG file, up to one more than are read."""
    if not content.startswith(START):
        return 0
    scans, at = 0, len(START)
    for _ in range(SEGMENTS):
        marker = MARKER.search(content, at)
        if not marker or marker[0][1] == END_OF_IMAGE or scans > MAX_SCANS:
            return scans
        at = marker.end()
        scans += marker[0][1] == START_OF_SCAN
        at += int.from_bytes(content[at : at + 2])  # its length, with these two bytes
    return MAX_SCANS + 1
