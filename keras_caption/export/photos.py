"""Decodes image files and extracts their features in an exported graph."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_caption.apps.objects import ObjectDetector
from keras_caption.features import MAX_PIXELS, Extractor
from keras_caption.formats.jpeg_scans import (
    END_OF_IMAGE,
    MAX_SCANNED,
    MAX_SCANS,
    SEGMENTS,
    START_OF_SCAN,
)
from keras_caption.formats.photo_parts import PNG

APP1, FILL = 0xE1, 0xFF
ORIENTATION, SHORT = 0x0112, 3  # EXIF's tag of the orientation, and its 16-bit type
# EXIF's orientations whose rows and columns are transposed, then reversed.
TRANSPOSED = (5, 6, 7, 8)
COLUMNS_REVERSED = (2, 3, 6, 7)
ROWS_REVERSED = (3, 4, 7, 8)


def extract_photos(
    extractor: Extractor | ObjectDetector, image_bytes: Any
) -> tuple[dict[str, Any], Any]:
    """Extracts the features of image files.

    Args:
        extractor: `keras_caption.features.Extractor` or `ObjectDetector`.
        image_bytes: string `(batch,)`, contents of the files.

    Returns:
        dict of features, as the extractor returns it; and bool `(batch,)`, whether a
        file could be decoded.
    """
    count = tf.shape(image_bytes)[0]
    # Not every network accepts an empty batch: one black photo stands for it.
    files = tf.concat([image_bytes, tf.fill([tf.cast(count == 0, tf.int32)], "")], 0)
    pixels, decoded = decode_photos(files, extractor.place)
    features = extractor(pixels)
    return {name: x[:count] for name, x in features.items()}, decoded[:count]


def decode_photos(image_bytes: Any, place: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Decodes JPEG and PNG files as `keras_caption.features.read_photo` does.

    Photos are turned by the orientation in EXIF data, but not by one in XMP, and colour
    profiles are ignored. Files are decoded one by one, so that a batch takes the memory
    of one photo.

    Args:
        image_bytes: string `(batch,)`, contents of the files.
        place: Function of a photo, uint8 `(height, width, 3)`, that returns tensors
            of fixed shapes, such as the resized photo.

    Returns:
        Tensors of `place`, stacked as a batch; and bool `(batch,)`, whether a file
        could be decoded. A black photo replaces one that could not.
    """
    black = (place(tf.zeros((1, 1, 3), tf.uint8)), False)

    def decode(content):
        return place(decode_photo(content)), True

    def decode_or_black(content):
        # A graph cannot catch an error of an operator; a dataset can skip an element.
        photo = tf.data.Dataset.from_tensors(content).map(decode)
        both = photo.ignore_errors().concatenate(tf.data.Dataset.from_tensors(black))
        return both.take(1).get_single_element()

    return tf.map_fn(
        decode_or_black,
        image_bytes,
        fn_output_signature=tf.data.Dataset.from_tensors(black).element_spec,
        parallel_iterations=1,
    )


@tf.autograph.experimental.do_not_convert
def decode_photo(content: Any) -> Any:
    """Decodes a JPEG or PNG file: uint8 `(height, width, 3)`.

    The operator fails for files of other formats and damaged files; and, before it
    decodes them, for files of more than `MAX_PIXELS` pixels or of too many scans.
    """

    def jpeg():
        shape = tf.io.extract_jpeg_shape(content)
        with tf.control_dependencies([check_size(shape), check_scans(content, shape)]):
            pixels = tf.io.decode_jpeg(content, 3, dct_method="INTEGER_ACCURATE")
        return pixels, jpeg_exif(content)

    def png():
        # After the signature: length and name of the header, width, height.
        sides = tf.io.decode_raw(
            tf.strings.substr(content, 16, 8), tf.int32, little_endian=False
        )
        is_png = tf.debugging.assert_equal(tf.strings.substr(content, 0, 8), PNG)
        with tf.control_dependencies([is_png, check_size(sides)]):
            # Asked for alpha, TensorFlow makes opaque pixels of less than 8 bits
            # transparent.
            pixels = tf.cond(
                has_alpha(content),
                lambda: over_white(tf.io.decode_png(content, 4)),
                lambda: tf.io.decode_png(content, 3),
            )
        return pixels, png_exif(content)

    pixels, exif = tf.cond(tf.io.is_jpeg(content), jpeg, png)
    return tf.ensure_shape(orient(pixels, exif_orientation(exif)), (None, None, 3))


def check_size(shape: Any) -> Any:
    """Asserts that height times width is at most `MAX_PIXELS`."""
    pixels = tf.reduce_prod(tf.cast(shape[:2], tf.int64))
    return tf.debugging.assert_less_equal(pixels, tf.constant(MAX_PIXELS, tf.int64))


def check_scans(content: Any, shape: Any) -> Any:
    """The check `keras_caption.formats.jpeg_scans.check_scans` as an assertion."""
    data = tf.io.decode_raw(content, tf.uint8)
    codes = data[1:]
    # 0xFF begins a marker, unless 0x00 (a byte of data), 0x01 or another 0xFF (fill)
    # follows. Restart markers, 0xD0 to 0xD7, are within a scan.
    begins = (data[:-1] == FILL) & (codes > 0x01) & (codes != FILL)
    markers = tf.where(begins & ((codes < 0xD0) | (codes > 0xD7)))[:, 0]
    last = tf.size(markers, tf.int64) - 1
    byte = bytes_of(content)

    def next_marker(at):
        """Index of the first marker at or behind the position `at`."""
        return tf.searchsorted(markers, [at], out_type=tf.int64)[0]

    def is_inside(place, scans, segments):
        is_end = byte(marker_at(place) + 1) == END_OF_IMAGE
        few = (scans <= MAX_SCANS) & (segments < SEGMENTS)
        return few & (place <= last) & ~is_end

    def marker_at(place):
        return tf.gather(markers, tf.minimum(place, last))

    def next_segment(place, scans, segments):
        at = marker_at(place)
        scans += tf.cast(byte(at + 1) == START_OF_SCAN, tf.int64)
        length = 256 * byte(at + 2) + byte(at + 3)
        return next_marker(at + 2 + length), scans, segments + 1

    none = tf.constant(0, tf.int64)
    first = next_marker(tf.constant(2, tf.int64))  # behind the start of the image
    _, scans, segments = tf.while_loop(is_inside, next_segment, [first, none, none])
    pixels = tf.reduce_prod(tf.cast(shape[:2], tf.int64))
    few = (scans <= MAX_SCANS) & (scans * pixels <= MAX_SCANNED) & (segments < SEGMENTS)
    return tf.debugging.assert_equal(few, True)


def over_white(pixels: Any) -> Any:
    """Composes pixels with alpha over white: uint8 `(height, width, 3)`.

    Args:
        pixels: uint8 `(height, width, 4)`.
    """
    pixels = tf.cast(pixels, tf.uint16)  # products of two bytes have 16 bits
    darkness = (255 - pixels[..., :3]) * pixels[..., 3:]
    return tf.cast(255 - (darkness + 127) // 255, tf.uint8)  # rounded to the nearest


def exif_orientation(exif: Any) -> Any:
    """Reads the orientation in EXIF data, int32; 1 if there is none.

    EXIF data are a TIFF file: byte order, position of a directory, and there the number
    of entries and entries of 12 bytes, each of tag, type, count and value.
    """
    byte = bytes_of(exif)
    order = tf.strings.substr(exif, 0, 4)
    little = order == b"II*\0"

    def number(at, size):
        parts = [byte(at + i) for i in range(size)]
        small = sum(part * 256**i for i, part in enumerate(parts))
        large = sum(part * 256**i for i, part in enumerate(reversed(parts)))
        return tf.where(little, small, large)

    directory = number(4, 4)
    entries = directory + 2 + 12 * tf.range(number(directory, 2))
    matches = (number(entries, 2) == ORIENTATION) & (number(entries + 2, 2) == SHORT)
    matches &= little | (order == b"MM\0*")
    values = tf.where(matches, number(entries + 8, 2), 0)
    orientation = tf.reduce_max(tf.concat([values, tf.ones(1, tf.int64)], axis=0))
    return tf.cast(orientation, tf.int32)


def jpeg_exif(content: Any) -> Any:
    """Reads a JPEG's EXIF data, string, empty if there are none.

    A JPEG is a list of segments: 0xFF, a marker, the length in two bytes, content.
    """
    byte = bytes_of(content)

    def length(at):
        return 256 * byte(at + 2) + byte(at + 3)

    def is_exif(at):
        named = between(content, at + 4, at + 10) == b"Exif\0\0"
        return (byte(at + 1) == APP1) & named

    def is_before(at):
        is_segment = (byte(at) == FILL) & (byte(at + 1) != START_OF_SCAN)
        return is_segment & ~is_exif(at)

    def next_segment(at):
        return at + tf.where(
            byte(at + 1) == FILL, tf.constant(1, tf.int64), 2 + length(at)
        )

    at = tf.while_loop(is_before, next_segment, [tf.constant(2, tf.int64)])[0]
    end = tf.where(is_exif(at), at + 2 + length(at), 0)
    return between(content, at + 10, end)


def has_alpha(content: Any) -> Any:
    """Whether a PNG has an alpha channel or a transparent colour."""
    kind = bytes_of(content)(25)  # of colours: 4 and 6 have alpha
    at, _ = find_chunk(content, b"tRNS", b"IDAT")
    return (kind == 4) | (kind == 6) | (between(content, at - 4, at) == b"tRNS")


def png_exif(content: Any) -> Any:
    """Reads a PNG's EXIF data, string, empty if there are none."""
    return between(content, *find_chunk(content, b"eXIf"))


def find_chunk(content: Any, *names: bytes) -> tuple[Any, Any]:
    """Start and end, int64, of a PNG's first chunk with one of the names.

    If there is none, both are behind the end of the file.

    A PNG is a list of chunks: the length in four bytes, a name in four, content, a
    checksum in four.
    """
    size = tf.cast(tf.strings.length(content), tf.int64)

    def is_before(at, end):
        name = between(content, at - 4, at)
        return (at < size) & tf.reduce_all(name != list(names))

    def next_chunk(at, end):
        at = end + 12
        length = tf.io.decode_raw(
            between(content, end + 4, end + 8), tf.int32, False, fixed_length=4
        )
        return at, at + tf.maximum(tf.cast(length[0], tf.int64), 0)

    # The last four bytes of the signature stand for the checksum of a chunk before the
    # first.
    end = tf.constant(len(PNG) - 4, tf.int64)
    return tf.while_loop(is_before, next_chunk, [end, end])


def between(content: Any, start: Any, end: Any) -> Any:
    """The bytes of a string from `start` to `end`, int64, cut at its end."""
    size = tf.cast(tf.strings.length(content), tf.int64)
    start, end = tf.minimum(start, size), tf.minimum(end, size)
    return tf.strings.substr(content, start, tf.maximum(end - start, 0))


def bytes_of(content: Any) -> Callable[[Any], Any]:
    """A function from positions, int64, to bytes, int64; 0 outside of the string."""
    data = tf.concat(
        [tf.io.decode_raw(content, tf.uint8), tf.zeros(1, tf.uint8)], axis=0
    )
    last = tf.size(data, tf.int64) - 1

    def byte(at):
        at = tf.cast(at, tf.int64)
        inside = (at >= 0) & (at < last)
        return tf.cast(tf.gather(data, tf.where(inside, at, last)), tf.int64)

    return byte


def orient(pixels: Any, orientation: Any) -> Any:
    """Rotates or flips pixels, `(height, width, 3)`, by EXIF's orientation."""

    def is_in(orientations):
        return tf.reduce_any(orientation == list(orientations))

    def turn(pixels, orientations, change):
        return tf.cond(is_in(orientations), lambda: change(pixels), lambda: pixels)

    pixels = turn(pixels, TRANSPOSED, lambda x: tf.transpose(x, (1, 0, 2)))
    pixels = turn(pixels, COLUMNS_REVERSED, lambda x: tf.reverse(x, [1]))
    return turn(pixels, ROWS_REVERSED, lambda x: tf.reverse(x, [0]))
