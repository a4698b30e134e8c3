import functools
import io
import struct

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from yolox_file import white_yolox

import keras_caption as kc
from keras_caption.export.photos import decode_photos
from keras_caption.features import read_photo, resize_photo

SIZE = 24


@pytest.fixture(scope="module")
def decode():
    return in_graph(functools.partial(resize_photo, size=SIZE))


def in_graph(place):
    function = tf.function(lambda files: decode_photos(files, place), autograph=False)
    return function.get_concrete_function(tf.TensorSpec((None,), tf.string))


def encode(pixels, kind="jpeg", **options):
    file = io.BytesIO()
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(file, kind, **options)
    return file.getvalue()


def exif(orientation, endian):
    found = Image.Exif()
    found.endian = endian
    found[0x010F] = "Someone"
    found[0x0112] = orientation
    return found.tobytes()


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(0).integers(0, 256, (30, 50, 3)).astype("uint8")


def test_python_and_the_graph_see_the_same_photo(decode, noise):
    image = Image.fromarray(noise)
    grey = np.array(image.convert("L"))
    deep = (np.arange(48).reshape(6, 8) * 1300).astype("uint16")
    files = [
        encode(noise, kind, exif=exif(orientation, endian))
        for kind in ("jpeg", "png")
        for orientation in range(10)
        for endian in "<>"
    ]
    files += [
        encode(noise),
        encode(noise, progressive=True),
        encode(noise, exif=b"Exif\0\0II*\0\xff\xff\xff\xff"),  # points nowhere
        encode(noise, exif=b"Exif\0\0"),
        *(encode(image.convert(mode)) for mode in ("L", "CMYK")),
        *(encode(image.convert(mode), "png") for mode in ("L", "LA", "P", "RGBA", "1")),
        encode(deep, "png"),
        # One transparent colour, a palette of transparent ones, and alpha.
        encode(deep, "png", transparency=13000),
        encode(image.convert("L"), "png", transparency=int(grey[0, 0])),
        encode(image, "png", transparency=tuple(noise[0, 0].tolist())),
        encode(image.convert("P"), "png", transparency=bytes(range(256))),
        encode(image.quantize(4), "png", bits=2, transparency=b"\0\x80"),
        encode(np.stack([grey, noise[..., 0]], -1), "png"),
        encode(np.concatenate([noise, noise[::-1, :, :1]], -1), "png"),
    ]
    # The graph does not stop at what stands before the EXIF data.
    comment = b"\xff\xfe" + struct.pack(">H", 5) + b"abc"
    files.append(files[12][:2] + comment + b"\xff" + files[12][2:])
    photos, decoded = decode(tf.constant(files))
    assert decoded.numpy().all()
    for content, photo in zip(files, photos.numpy(), strict=True):
        expected = resize_photo(read_photo(content), SIZE)
        np.testing.assert_allclose(photo, expected, atol=1e-3)


def test_detectors_see_the_same_photo_in_the_graph(rng):
    detector = kc.objects.Yolox(white_yolox(), image_size=64)
    shapes = [(30, 50), (50, 30), (64, 64), (200, 1), (1, 3), (131, 97)]
    photos = [rng.integers(0, 256, (*shape, 3)).astype("uint8") for shape in shapes]
    files = [encode(photo, "png") for photo in photos]
    placed, decoded = in_graph(detector.place)(tf.constant([*files, b"no photo"]))
    assert decoded.numpy().tolist() == [True] * len(shapes) + [False]
    for name, expected in detector.to_pixels(photos).items():
        np.testing.assert_array_equal(placed[name][:-1], expected)


def test_files_that_cannot_be_decoded_harm_no_others(decode, noise):
    png = encode(noise, "png")
    huge = png[:16] + struct.pack(">II", 13000, 13000) + png[24:]
    files = [
        png,
        b"",
        b"\xff\xd8\xff",
        b"This is not an image.",
        encode(noise)[:600],
        png[:600],
        huge,
        encode(noise, "gif"),
    ]
    photos, decoded = decode(tf.constant(files))
    assert decoded.numpy().tolist() == [True] + 7 * [False]
    np.testing.assert_allclose(photos[0], resize_photo(noise, SIZE), atol=1e-3)
    assert not photos[1:].numpy().any()


def scanned(number, between=b"", side=32):
    """A progressive JPEG whose last scan comes again, up to a number of scans."""
    content = encode(np.zeros((side, side), "uint8"), progressive=True)
    number -= content.count(b"\xff\xda")
    last = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + number * (between + last) + content[-2:]


def test_scans_are_counted_before_a_photo_is_decoded(decode):
    # What stands in a comment, or behind the image, is neither an end nor a scan.
    end = b"\xff\xfe\0\x04\xff\xd9"
    few = [scanned(100), scanned(100, b"\xff\xfe\0\x04\xff\xda") + b"\xff\xda"]
    many = [scanned(101), scanned(101, end), scanned(7, 10_000 * b"\xff\xfe\0\x02")]
    many.append(scanned(98, side=3400))  # of many pixels in all
    _, decoded = decode(tf.constant([*few, *many]))
    assert decoded.numpy().tolist() == [True] * 2 + [False] * 4
    for content in few:
        assert read_photo(content).shape == (32, 32, 3)
    for content in many:
        with pytest.raises(kc.InputError, match=r"A photo has .* at most 100 are"):
            read_photo(content, "A photo")
