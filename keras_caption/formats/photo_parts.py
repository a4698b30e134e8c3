"""The parts of a photo's file: new metadata, with all other bytes as they were."""

from collections.abc import Iterator
from typing import Literal

JPEG, PNG, RIFF = b"\xff\xd8", b"\x89PNG\r\n\x1a\n", b"RIFF"
# The order of bytes, by the first four.
TIFF: dict[bytes, Literal["little", "big"]] = {b"II*\0": "little", b"MM\0*": "big"}
APP0, APP1, APP2, APP13, SCAN = b"\xff\xe0", b"\xff\xe1", b"\xff\xe2", b"\xff\xed", 0xDA
XMP_OF_JPEG = b"http://ns.adobe.com/xap/1.0/\0"
IPTC_OF_JPEG = b"Photoshop 3.0\0"
XMP_OF_PNG = b"iTXtXML:com.adobe.xmp\0"
HAS_XMP = 4  # a flag in WebP's VP8X
XMP_OF_TIFF, BYTES = 700, 1  # a tag, and its type


def with_metadata(content: bytes, described: bytes) -> bytes:
    """Puts XMP and IPTC from another version of a photo into it.

    Libraries that write metadata write the whole file anew, of what they understand.
    Here all other bytes stay, in their order: comments, what stands behind the picture.

    Args:
        content: bytes of a JPEG, PNG or WebP file.
        described: bytes of the same photo with other metadata.

    Raises:
        ValueError: If the parts of a file cannot be told, or it has several packets of
            XMP, or metadata behind the index of its pictures, which would move them.
    """
    if content.startswith(RIFF):
        return _webp(content, described)
    split, is_metadata = _png_parts, _is_metadata_of_png
    if content.startswith(JPEG):
        split, is_metadata = _jpeg_parts, _is_metadata_of_jpeg
    parts = list(split(content))
    places = [i for i, part in enumerate(parts) if is_metadata(part)]
    if sum(XMP_OF_JPEG in parts[i] or XMP_OF_PNG in parts[i] for i in places) > 1:
        raise ValueError("several packets of XMP")
    index = [i for i, x in enumerate(parts) if x[:2] == APP2 and x[4:8] == b"MPF\0"]
    if index and places and places[-1] > index[0]:
        raise ValueError("metadata behind the index of pictures")
    place = places[0] if places else _first_place(parts)
    new = [part for part in split(described) if is_metadata(part)]
    kept = [b"" if i in places else part for i, part in enumerate(parts)]
    return b"".join([*kept[:place], *new, *kept[place:]])


def with_xmp_in_tiff(content: bytes, packet: bytes) -> bytes:
    """Appends XMP to a TIFF, and the list of its first page with the place of the XMP.

    Only the eight bytes at the beginning change, which say where this list is: no
    picture and no other data moves.

    Raises:
        ValueError: If there is no such list.
    """
    order = TIFF[content[:4]]

    def number(x, size):
        return x.to_bytes(size, order)

    start = int.from_bytes(content[4:8], order)
    count = int.from_bytes(content[start : start + 2], order)
    end = start + 2 + 12 * count
    if not count or start < 8 or len(content) < end + 4:
        raise ValueError("no list of the first page")
    entries = [content[i : i + 12] for i in range(start + 2, end, 12)]
    entries = [x for x in entries if int.from_bytes(x[:2], order) != XMP_OF_TIFF]
    place = len(content) + len(content) % 2
    entry = number(XMP_OF_TIFF, 2) + number(BYTES, 2)
    entries.append(entry + number(len(packet), 4) + number(place, 4))
    entries.sort(key=lambda entry: int.from_bytes(entry[:2], order))
    packet += bytes(len(packet) % 2)
    return b"".join(
        [
            content[:4],
            number(place + len(packet), 4),
            content[8:],
            bytes(place - len(content)),
            packet,
            number(len(entries), 2),
            *entries,
            content[end : end + 4],
        ]
    )


def _first_place(parts):
    """Where metadata begins: behind a PNG's header, or a JPEG's JFIF and EXIF."""
    place = 2 if parts[0] == PNG else 1
    while parts[place][:2] in (APP0, APP1):
        place += 1
    return place


def _jpeg_parts(content) -> Iterator[bytes]:
    """The segments of a JPEG; the last part begins with its first scan."""
    yield content[:2]
    place = 2
    while content[place + 1] != SCAN:
        end = place + 2 + int.from_bytes(content[place + 2 : place + 4])
        if content[place] != 0xFF or content[place + 1] < 0xC0 or end > len(content):
            raise ValueError("no segment")
        yield content[place:end]
        place = end
    yield content[place:]


def _is_metadata_of_jpeg(part):
    head, content = part[:2], part[4:]
    return (head == APP1 and content.startswith(XMP_OF_JPEG)) or (
        head == APP13 and content.startswith(IPTC_OF_JPEG)
    )


def _png_parts(content) -> Iterator[bytes]:
    """The chunks of a PNG, and what follows them."""
    yield content[:8]
    place, name = 8, b""
    while name != b"IEND":
        end = place + 12 + int.from_bytes(content[place : place + 4])
        name = content[place + 4 : place + 8]
        if end > len(content) or len(name) < 4:
            raise ValueError("no chunk")
        yield content[place:end]
        place = end
    yield content[place:]


def _is_metadata_of_png(part):
    return part[4:].startswith(XMP_OF_PNG)


def _webp(content, described):
    """A WebP with the XMP of another, its size and its list of features made anew."""
    end = 8 + int.from_bytes(content[4:8], "little")
    if end > len(content):
        raise ValueError("a chunk beyond the end")
    chunks = dict(_webp_parts(described))
    old = [(name, x) for name, x in _webp_parts(content) if name != b"XMP "]
    if old[0][0] == b"VP8X":
        features = bytearray(old[0][1])
        features[8] |= HAS_XMP
        old[0] = b"VP8X", bytes(features)
    else:
        old.insert(0, (b"VP8X", chunks[b"VP8X"]))
    body = b"WEBP" + b"".join(x for _, x in old) + chunks[b"XMP "]
    return RIFF + len(body).to_bytes(4, "little") + body + content[end:]


def _webp_parts(content) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of the chunks of a WebP."""
    end, place = 8 + int.from_bytes(content[4:8], "little"), 12
    while place < end:
        size = int.from_bytes(content[place + 4 : place + 8], "little")
        following = place + 8 + size + size % 2
        if following > end:
            raise ValueError("a chunk beyond the end")
        yield content[place : place + 4], content[place:following]
        place = following
