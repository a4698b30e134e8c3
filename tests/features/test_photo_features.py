import base64
import io
import itertools
import struct
import zlib

import keras
import numpy as np
import pytest
from PIL import ExifTags, Image, features

import keras_caption as kc
from keras_caption.features import (
    Extractor,
    application_network,
    read_photo,
    roi_align,
    windows,
)

SMALL = {"image_size": 32, "arguments": {"alpha": 0.25}}


def interpolate(grid, y, x):
    """Bilinear interpolation at cell coordinates, held within the grid."""
    height, width, _ = grid.shape
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    y1, x1 = int(np.floor(y)), int(np.floor(x))
    y2, x2 = min(y1 + 1, height - 1), min(x1 + 1, width - 1)
    upper = grid[y1, x1] * (1 - (x - x1)) + grid[y1, x2] * (x - x1)
    lower = grid[y2, x1] * (1 - (x - x1)) + grid[y2, x2] * (x - x1)
    return upper * (1 - (y - y1)) + lower * (y - y1)


def test_roi_align_is_the_mean_of_interpolated_points(rng):
    grid = rng.normal(size=(2, 5, 7, 3))
    boxes = [[[0.1, 0.2, 0.55, 0.9], [0, 0, 1, 1]], [[0.9, 0.9, 1, 1], [0.5] * 4]]
    found = np.array(roi_align(grid.astype("float32"), np.float32(boxes), samples=4))
    for image in range(2):
        for box in range(2):
            x1, y1, x2, y2 = boxes[image][box]
            points = [
                interpolate(
                    grid[image],
                    (y1 + (y2 - y1) * (i + 0.5) / 4) * 5 - 0.5,
                    (x1 + (x2 - x1) * (j + 0.5) / 4) * 7 - 0.5,
                )
                for i in range(4)
                for j in range(4)
            ]
            np.testing.assert_allclose(
                found[image, box], np.mean(points, axis=0), atol=1e-5
            )


def test_windows_tile_the_image_at_every_level():
    boxes = windows((1, 3))
    assert boxes.shape == (10, 4)
    np.testing.assert_allclose(boxes[0], [0, 0, 1, 1])
    np.testing.assert_allclose(boxes[1:][:, 2:] - boxes[1:][:, :2], 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(boxes[1:].sum(axis=0), [3, 3, 6, 6], rtol=1e-6)


def test_photos_of_all_kinds_become_rgb(tmp_path, rng):
    colours = Image.fromarray(rng.integers(0, 256, (6, 8, 3)).astype("uint8"))
    deep = (np.arange(48).reshape(6, 8) * 1300).astype("uint16")
    kinds = {
        "grey.png": colours.convert("L"),
        "cmyk.jpg": colours.convert("CMYK"),
        "palette.gif": colours.convert("P"),
        "alpha.png": colours.convert("RGBA"),
        "scan.tif": colours,
        "deep.tiff": Image.fromarray(deep),
        "deep.png": Image.fromarray(deep),
        "dot.png": colours.crop((0, 0, 1, 1)),
    }
    for name, image in kinds.items():
        image.save(tmp_path / name)
        photo = read_photo(tmp_path / name)
        assert photo.dtype == np.uint8
        assert photo.shape == (*image.size[::-1], 3)
    for name in ("deep.png", "deep.tiff"):
        np.testing.assert_array_equal(read_photo(tmp_path / name)[..., 1], deep >> 8)
    for name in ("alpha.png", "scan.tif"):
        np.testing.assert_array_equal(read_photo(tmp_path / name), colours)
    assert len(kc.features.find_photos(tmp_path)) == len(kinds)
    phone = tmp_path / "phone.jpg"  # photo and gain map, one after the other
    colours.save(phone, "MPO", save_all=True, append_images=[colours])
    for path in tmp_path / "grey.png", phone:
        np.testing.assert_array_equal(read_photo(path.read_bytes()), read_photo(path))


def colour_profile(space, gamma, **points):
    """An ICC profile of a gamma, and of the places of primary colours in XYZ."""
    curve = b"curv" + struct.pack(">4xIH2x", 1, round(gamma * 256))
    tags = {"kTRC": curve} if space == b"GRAY" else {}
    for name, point in points.items():
        tags |= {f"{name}TRC": curve}
        places = [round(x * 65536) for x in point]
        tags |= {f"{name}XYZ": b"XYZ " + struct.pack(">4x3i", *places)}
    white = struct.pack(">3i", 63190, 65536, 54061)  # of D50
    tags |= {"wtpt": b"XYZ " + bytes(4) + white}
    tags |= {"desc": b"desc" + struct.pack(">4xI2s78x", 2, b"x")}
    place, table, body = 132 + 12 * len(tags), b"", b""
    for name, content in tags.items():
        content += bytes(-len(content) % 4)
        table += struct.pack(">4sII", name.encode(), place + len(body), len(content))
        body += content
    head = struct.pack(">I4xI", place + len(body), 0x02400000)
    head += b"mntr" + space + b"XYZ " + bytes(12) + b"acsp" + bytes(28) + white
    return head + bytes(128 - len(head)) + struct.pack(">I", len(tags)) + table + body


def press_profile():
    """An ICC profile of four inks on grey paper, whose black is a dark red."""
    same = bytes(range(256))
    nodes = [  # Lab of each combination of inks, black changing fastest
        (250 - 25 * sum(inks[:3]), 128, 128) if not inks[3] else (60, 178, 158)
        for inks in itertools.product((0, 1), repeat=4)
    ]
    unit = struct.pack(">9i", *(65536 * x for x in (1, 0, 0, 0, 1, 0, 0, 0, 1)))
    table = b"mft1" + struct.pack(">4x3Bx", 4, 3, 2) + unit + 4 * same
    table += bytes(itertools.chain(*nodes)) + 3 * same
    described = b"desc" + struct.pack(">4xI2s78x", 2, b"x") + bytes(3)
    white = struct.pack(">3i", 63190, 65536, 54061)
    tags = {b"desc": described, b"A2B0": table, b"wtpt": b"XYZ " + bytes(4) + white}
    place, entries, body = 132 + 12 * len(tags), b"", b""
    for name, content in tags.items():
        content += bytes(-len(content) % 4)
        entries += struct.pack(">4sII", name, place + len(body), len(content))
        body += content
    head = struct.pack(">I4xI", place + len(body), 0x02400000)
    head += b"prtrCMYKLab " + bytes(12) + b"acsp" + bytes(28) + white
    return head + bytes(128 - len(head)) + struct.pack(">I", len(tags)) + entries + body


def with_chunks(content, **chunks):
    """A PNG with more chunks behind its header."""
    more = b"".join(
        struct.pack(">I", len(x))
        + (named := name.encode() + x)
        + struct.pack(">I", zlib.crc32(named))
        for name, x in chunks.items()
    )
    return content[:33] + more + content[33:]


def test_inks_become_colours_by_their_profile():
    inks = np.array([[[0, 0, 0, 0], [0, 0, 0, 128], [255, 255, 255, 0]]], "uint8")
    image = Image.fromarray(np.tile(inks.repeat(16, 1), (16, 1, 1)), "CMYK")
    for kind in "jpeg", "tiff":
        places = np.s_[8, [8, 24, 40]]
        plain = read_photo(encode(image, kind))[places]
        np.testing.assert_allclose(plain, [[255] * 3, [127] * 3, [0] * 3], atol=4)
        photo = encode(image, kind, icc_profile=press_profile())
        paper, red, mixed = read_photo(photo)[places].astype(int)
        assert paper.min() > 250
        assert red[0] > red[1:].max() + 30
        assert mixed.min() > 130
        assert mixed.max() < 180


def to_light(values):
    return np.where(values < 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def from_light(light):
    return 255 * np.where(
        light < 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055
    )


def test_colours_are_those_of_the_profile_in_srgb(capsys):
    red, green, blue = (  # of Adobe RGB, relative to D50
        (0.60974, 0.31111, 0.01947),
        (0.20528, 0.62567, 0.06087),
        (0.14919, 0.06322, 0.74457),
    )
    srgb = [
        (0.43607, 0.22249, 0.01392),
        (0.38515, 0.71687, 0.09708),
        (0.14307, 0.06061, 0.71410),
    ]
    numbers = np.array([[[180, 140, 120], [90, 130, 110], [128, 128, 128]]], "uint8")
    light = (numbers / 255) ** 2.2 @ np.array([red, green, blue]) @ np.linalg.inv(srgb)
    light = np.clip(light, 0, 1)
    expected = from_light(light)
    adobe = colour_profile(b"RGB ", 2.2, r=red, g=green, b=blue)
    assert abs(numbers - expected).max() > 20
    for pixels in numbers, np.dstack([numbers, np.full((1, 3), 255, "uint8")]):
        for kind in "png", "tiff":
            photo = read_photo(encode(pixels, kind, icc_profile=adobe))
            np.testing.assert_allclose(photo, expected, atol=2)
    plain = encode(numbers, "png")
    # The chunks of PNG, and what cameras write, declare the same colours.
    points = (31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000)
    gamma = {"gAMA": struct.pack(">I", 45471), "cHRM": struct.pack(">8I", *points)}
    exif = Image.Exif()
    exif[ExifTags.IFD.Exif] = {0xA001: 65535, 0xA005: {1: "R03"}}
    for photo in (
        with_chunks(plain, **gamma),
        encode(numbers, "png", exif=exif),
        encode(numbers, "webp", exif=exif, lossless=True),
        encode(np.tile(numbers.repeat(16, 1), (16, 1, 1)), "jpeg", exif=exif),
    ):
        width = read_photo(photo).shape[1] // 3
        photo = read_photo(photo)[-1:, width // 2 :: width]
        np.testing.assert_allclose(photo, expected, atol=3)
    exif[ExifTags.IFD.Exif] = {0xA001: 1, 0xA005: {1: "R98"}}  # sRGB
    srgb = {"gAMA": struct.pack(">I", 45455)}
    nonsense = {"gAMA": struct.pack(">I", 1), "cHRM": bytes(32)}
    for chunks in ({}, srgb, nonsense, {**gamma, "sRGB": b"\0"}, {"cICP": b"\1\r\0\1"}):
        photo = read_photo(with_chunks(encode(numbers, "png", exif=exif), **chunks))
        np.testing.assert_allclose(photo, numbers, atol=1)
    # Display P3 overrides a profile, as in the standard; HDR is only reported.
    to_srgb = [[1.2249, -0.2247, 0], [-0.0420, 1.0419, 0], [-0.0197, -0.0786, 1.0979]]
    light = np.clip(to_light(numbers / 255) @ np.transpose(to_srgb), 0, 1)
    profiled = encode(numbers, "png", icc_profile=adobe)
    photo = read_photo(with_chunks(profiled, cICP=b"\x0c\r\0\1"))
    np.testing.assert_allclose(photo, from_light(light), atol=2)
    grey = encode(np.uint8([[55]]), "png")
    linear = with_chunks(grey, gAMA=struct.pack(">I", 100_000))
    np.testing.assert_allclose(read_photo(linear), 128, atol=2)
    photo = read_photo(with_chunks(plain, cICP=b"\x09\x10\0\1"), "of_film.png")
    np.testing.assert_array_equal(photo, numbers)
    assert "of_film.png declares colours that are not known" in capsys.readouterr().err
    linear = colour_profile(b"GRAY", 1.0)
    for grey in np.uint8([[55]]), np.uint16([[55 * 257]]):
        photo = read_photo(encode(grey, "png", icc_profile=linear))
        np.testing.assert_allclose(photo, 128, atol=2)
    for damaged in adobe[:200], linear:  # no profile, or one of other colours
        photo = read_photo(encode(numbers, "png", icc_profile=damaged))
        np.testing.assert_array_equal(photo, numbers)


def encode(pixels, kind, **options):
    file = io.BytesIO()
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(file, kind, **options)
    return file.getvalue()


def test_what_is_transparent_is_composed_over_white():
    colour, alpha = np.indices((256, 256))
    pixels = np.stack([colour, 255 - colour, 0 * colour, alpha], -1).astype("uint8")
    share = alpha[..., None] / 255
    expected = np.rint(pixels[..., :3] * share + 255 * (1 - share))
    for options in ({"kind": "png"}, {"kind": "webp", "lossless": True, "exact": True}):
        np.testing.assert_array_equal(read_photo(encode(pixels, **options)), expected)
    palette = Image.fromarray(pixels[..., :3]).quantize(8)
    for kind in ("gif", "png"):
        photo = read_photo(encode(palette, kind, transparency=3))
        hidden = np.array(palette) == 3
        assert (photo[hidden] == 255).all()
        np.testing.assert_array_equal(
            photo[~hidden], np.array(palette.convert("RGB"))[~hidden]
        )


HEIC = (  # 64 x 48 pixels of one red
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAX1tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0"
    "AAAAAAAAAAAAAAAAAAAAACJpbG9jAAAAAERAAAEAAQAAAAABoQABAAAAAAAAABoAAAAjaWluZgAAAAAA"
    "AQAAABVpbmZlAgAAAAABAABodmMxAAAAAA5waXRtAAAAAAABAAAA/WlwcnAAAADdaXBjbwAAAHZodmND"
    "AQNwAAAAkAAAAAAAHvAA/P34+AAADwNgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQAqQgEB"
    "A3AAAAMAkAAAAwAAAwAeoCCBBZbq5Ka5uAhoMCAAAAMDIAAAAwAhYgABAAZEAcFzwIkAAAATY29scm5j"
    "bHgAAQANAAaAAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAoY2xhcAAAAEAAAAABAAAAMAAAAAEAAAAAAAAA"
    "Av////AAAAACAAAAEHBpeGkAAAAAAwgICAAAABhpcG1hAAAAAAAAAAEAAQWBAgMFhAAAACJtZGF0AAAA"
    "FigBrxmA70mlv//eWV/qVL/iKtaY+bg="
)


def test_photos_of_telephones_are_read():
    pytest.importorskip("pi_heif")
    photo = read_photo(base64.b64decode(HEIC))
    assert photo.shape == (48, 64, 3)
    np.testing.assert_allclose(photo, photo * 0 + [200, 30, 60], atol=9)


def test_photos_of_the_web_are_read():
    if "avif" not in features.get_supported():
        pytest.skip("this Pillow reads no AVIF")
    content = encode(np.full((48, 64, 3), (200, 30, 60), "uint8"), "avif")
    photo = read_photo(content)
    assert photo.shape == (48, 64, 3)
    np.testing.assert_allclose(photo, photo * 0 + [200, 30, 60], atol=9)


def jpeg(pixels, **options):
    return encode(pixels, "jpeg", **options)


def png_header(width, height):
    """A PNG that names a size, and has no pixels."""
    fields = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    checksum = struct.pack(">I", zlib.crc32(fields))
    end = struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + fields + checksum + end


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
NOISE = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype("uint8")
BROKEN = {
    "cut.jpg": (jpeg(NOISE)[:600], "cannot be read"),
    "nothing.jpg": (b"", "is empty"),
    "text.jpg": (b"This is not an image.", "is not an image"),
    "postscript.jpg": (EPS, "is not an image"),
    "large.png": (png_header(13000, 13000), "13000 x 13000 pixels"),
    "elevation.tif": (
        encode(np.full((9, 9), 0.5, "float32"), "tiff"),
        "has pixels of 32 bits; at most 16 are read",
    ),
    "larger.png": (png_header(2**31 - 1, 2**31 - 1), "far more than 67,108,864 pixels"),
}


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("name", BROKEN)
def test_broken_photos_are_named(name, tmp_path):
    content, problem = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(kc.InputError, match=f"{name} .*{problem}"):
        read_photo(tmp_path / name)


def test_missing_photos_are_named(tmp_path):
    with pytest.raises(kc.InputError, match=r"There is no file .*away\.jpg"):
        read_photo(tmp_path / "away.jpg")
    with pytest.raises(kc.InputError, match="There is no image in"):
        kc.features.find_photos(tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_damaged_photos_give_an_image_or_one_sentence(rng):
    exif = Image.Exif()
    exif[0x0112] = 6
    files = [jpeg(NOISE[:9, :7], exif=exif.tobytes())]
    files += [encode(NOISE[:9, :7], kind) for kind in ("bmp", "gif", "tiff")]
    files += [encode(NOISE[:9, :7], kind, exif=exif) for kind in ("png", "webp")]
    for _ in range(40):
        for content in map(bytearray, files):
            for place in rng.integers(0, min(len(content), 120), 3):
                content[place] = rng.integers(0, 256)
            try:
                photo = read_photo(bytes(content))
            except kc.InputError:
                continue
            assert photo.shape[2] == 3


@pytest.mark.parametrize("kind", ["jpeg", "png", "tiff", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_orientation_of_every_format_is_respected(orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    # A quarter is dark, so that formats that lose details keep which.
    pixels = np.full((32, 64, 3), 255, "uint8")
    pixels[:16, :32] = 0
    photo = read_photo(encode(pixels, kind, exif=exif.tobytes()))
    if orientation in (5, 6, 7, 8):
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    np.testing.assert_allclose(photo, pixels, atol=60)


def test_extractor_makes_grids_and_regions(rng):
    extractor = Extractor("MobileNet", "conv_pw_3_relu", **SMALL)
    assert extractor.grid_shape == (8, 8, 32)
    assert not extractor.trainable_variables
    photos = rng.integers(0, 256, (2, 32, 32, 3)).astype("float32")
    before = photos.copy()
    found = {name: np.array(x) for name, x in extractor(photos).items()}
    np.testing.assert_array_equal(photos, before)
    network = keras.Model(
        extractor.network.input, extractor.network.get_layer("conv_pw_3_relu").output
    )
    expected = np.array(network(photos / 127.5 - 1.0))
    np.testing.assert_allclose(found["grid"], expected, atol=1e-5)
    assert found["regions"].shape == (2, 30, 32)
    np.testing.assert_allclose(found["boxes"], [windows()] * 2)
    whole = np.float32([[[0, 0, 1, 1]]] * 2)
    np.testing.assert_allclose(
        np.array(extractor(photos, whole)["regions"])[:, 0],
        found["regions"][:, 0],
        atol=1e-5,
    )


def test_mistakes_about_networks_are_named(tmp_path):
    with pytest.raises(kc.InputError, match="Did you mean MobileNet"):
        Extractor("MobilNet")
    with pytest.raises(kc.InputError, match=r", \w+, and \d+ more\.$"):  # of KerasHub
        Extractor("coloured_objects")
    with pytest.raises(kc.InputError, match="Did you mean conv_pw_3_relu"):
        Extractor("MobileNet", "conv_pw_3_rel", **SMALL)
    with pytest.raises(kc.InputError, match=r"no\.weights\.h5"):
        Extractor("MobileNet", weights="no.weights.h5", **SMALL)
    other = keras.applications.MobileNetV2(
        include_top=False, weights=None, input_shape=(32, 32, 3), alpha=0.35
    )
    path = tmp_path / "other.weights.h5"
    other.save_weights(path)
    with pytest.raises(kc.InputError, match=r"MobileNet with weights=.*other"):
        Extractor("MobileNet", weights=str(path), **SMALL)


def test_the_width_of_a_network_is_found_from_its_weights(
    monkeypatch, tmp_path, recwarn
):
    narrow = Extractor("MobileNet", **SMALL)
    path = tmp_path / "narrow.weights.h5"
    narrow.network.save_weights(path)
    monkeypatch.setattr(application_network, "ALPHAS", (0.5, 0.25))
    recwarn.clear()
    found = Extractor("MobileNet", image_size=32, weights=str(path))
    assert not [x for x in recwarn if "Skipping" in str(x.message)]
    assert found.get_config()["arguments"] == {"alpha": 0.25}
    for weight, expected in zip(found.get_weights(), narrow.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)
    monkeypatch.setattr(application_network, "ALPHAS", (0.5, 0.75))
    with pytest.raises(kc.InputError, match=r"with any `alpha` of 0\.5, 0\.75"):
        Extractor("MobileNet", image_size=32, weights=str(path))
