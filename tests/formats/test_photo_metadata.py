"""Descriptions in photos and beside them: found, added, and nothing else changed."""

import io
import os
import pathlib
import struct

import numpy as np
import pyexiv2
import pytest
from keras_caption.results import PhotoMetadata
from PIL import Image, PngImagePlugin

import keras_caption as kc
from keras_caption.base.atomic import exclusive_file, replacing
from keras_caption.formats.photo_metadata import (
    EMPTY_SIDECAR,
    is_described,
)

NOISE = np.random.default_rng(0).integers(0, 256, (40, 48, 4)).astype("uint8")
SIDECAR = EMPTY_SIDECAR


def encode(kind, mode="RGB", **options):
    file = io.BytesIO()
    channels = {"RGB": 3, "RGBA": 4}[mode]
    Image.fromarray(NOISE[..., :channels]).save(file, kind, **options)
    return file.getvalue()


def with_fields(content, **fields):
    with pyexiv2.ImageData(content) as photo:
        for kind, values in fields.items():
            getattr(photo, f"modify_{kind}")(values)
        return photo.get_bytes()


def described(path):
    """The description of a file."""
    with pyexiv2.Image(str(path)) as photo:
        return photo.read_xmp()["Xmp.dc.description"]['lang="x-default"']


def write(path, text="a dog"):
    PhotoMetadata().write({"photo": str(path), "caption": text}, None)


def exif(**fields):
    values = {k.replace("__", "."): x for k, x in fields.items()}
    return with_fields(encode("JPEG"), exif={f"Exif.{k}": x for k, x in values.items()})


def png_text(**texts):
    info = PngImagePlugin.PngInfo()
    for name, text in texts.items():
        info.add_text(name, text)
    return encode("PNG", pnginfo=info)


OF_PEOPLE = {
    "comment": exif(Photo__UserComment="charset=Unicode Lisboa à noite"),
    "windows": exif(Image__XPTitle="Ferry"),
    "words": exif(Image__ImageDescription="My first digital camera"),
    "make": exif(Image__Make="Canon", Image__ImageDescription="Canon of Pachelbel"),
    "title": with_fields(encode("PNG"), xmp={"Xmp.dc.title": {'lang="de"': "Fähre"}}),
    "alt": with_fields(encode("WEBP"), xmp={"Xmp.iptc.AltTextAccessibility": "A tram"}),
    "iptc": with_fields(encode("JPEG"), iptc={"Iptc.Application2.Caption": "Tram"}),
    "png": png_text(Description="A tram"),
}
OF_DEVICES = {
    "sony": exif(Image__ImageDescription="SONY DSC       "),
    "drone": exif(Image__ImageDescription="DCIM\\100MEDIA\\DJI_0012.JPG"),
    "model": exif(
        Image__Make="Samsung Techwin",
        Image__Model="S760",
        Image__ImageDescription="Samsung S760 digital camera",
    ),
    "mode": exif(Image__ImageDescription="oznor", Photo__UserComment="oplus_32"),
    "blank": exif(Photo__UserComment="charset=Ascii       "),
    "png": png_text(Software="gnome-screenshot"),
}


def test_a_description_is_what_a_person_wrote(tmp_path):
    for kind, contents in (True, OF_PEOPLE), (False, OF_DEVICES):
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content)
            assert is_described(tmp_path / name) == kind, name


def test_a_description_beside_a_photo_is_found_in_any_case_of_its_suffix(tmp_path):
    description = {"Xmp.dc.description": {'lang="x-default"': "Mine"}}
    content = with_fields(SIDECAR, xmp=description)
    for folder, name in enumerate(("dog.jpg.XMP", "dog.Xmp", "dog.jpg.xmp")):
        photo = tmp_path / str(folder) / "dog.jpg"
        photo.parent.mkdir()
        photo.write_bytes(encode("JPEG"))
        assert not is_described(photo)
        photo.with_name(name).write_bytes(content)
        assert is_described(photo)
    # The file of both, dog.Xmp, is of neither unless it says so.
    photo, other = (tmp_path / "1" / f"dog.{suffix}" for suffix in ("jpg", "png"))
    other.write_bytes(encode("PNG"))
    assert not is_described(photo)
    owner = {"Xmp.photoshop.SidecarForExtension": "PNG"}
    photo.with_name("dog.Xmp").write_bytes(with_fields(content, xmp=owner))
    assert is_described(other)
    assert not is_described(photo)
    (photo.parent / "cut.webp").write_bytes(b"RIFF\xff\xff\xff\xffWEBPVP8 " + b"x" * 28)
    assert not is_described(photo.parent / "cut.webp")


def pages(order):
    """A TIFF of three pages in one of both orders of bytes, and data behind them."""
    file = io.BytesIO()
    first, *others = (Image.fromarray(np.roll(NOISE[..., :3], i)) for i in range(3))
    options = {"save_all": True, "append_images": others, "compression": "tiff_lzw"}
    first.save(file, "TIFF", description="SONY DSC", **options)
    if order == "<":
        return file.getvalue() + b"behind"
    entries = [(256, 3), (257, 2), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1)]
    entries += [(278, 2), (279, 6)]
    places = b"".join(struct.pack(">HHII", tag, 4, 1, x) for tag, x in entries)
    head = struct.pack(">2sHI", b"MM", 42, 14) + b"pixels" + struct.pack(">H", 9)
    return head + places + bytes(4) + b"behind"


APNG = {"save_all": True, "append_images": [Image.fromarray(NOISE[::-1, :, :3])]}
KEPT = {
    "comment.jpg": encode("JPEG", comment=b"hi", progressive=True) + b"motion" * 99,
    "two.mpo": encode("MPO", **APNG),
    "animated.png": encode("PNG", **APNG, dpi=(72, 72)) + b"behind",
    "alpha.webp": encode("WEBP", "RGBA", lossless=True) + b"behind",
    "animated.webp": encode("WEBP", **APNG, exif=Image.Exif().tobytes()),
    "little.tif": pages("<"),
    "big.tif": pages(">"),
    "earlier.png": with_fields(encode("PNG"), xmp={"Xmp.xmp.Rating": "4"}),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_photo_keeps_all_bytes_that_are_not_about_its_description(name, tmp_path):
    path, content = tmp_path / name, KEPT[name]
    path.write_bytes(content)
    write(path, "Ein Hünd 🐶")
    assert described(path) == "Ein Hünd 🐶"
    assert list(tmp_path.iterdir()) == [path]
    with pyexiv2.Image(str(path)) as photo:
        assert ("Xmp.xmp.Rating" in photo.read_xmp()) == (name == "earlier.png")
    after, place = path.read_bytes(), 0
    if content[:4] in (b"II*\0", b"MM\0*"):
        assert after[8 : len(content)] == content[8:]
    elif content[:4] != b"RIFF" and name != "earlier.png":  # all is there, in order
        start = next(i for i, x in enumerate(content) if after[i] != x)
        assert after.endswith(content[start + 4 :])
    else:
        assert after[-6:] == content[-6:] or b"behind" not in content
    with Image.open(io.BytesIO(content)) as old, Image.open(path) as new:
        assert new.n_frames == old.n_frames if hasattr(old, "n_frames") else True
        for place in range(getattr(old, "n_frames", 1)):
            old.seek(place)
            new.seek(place)
            np.testing.assert_array_equal(np.array(new), np.array(old))


def test_a_photo_that_would_lose_something_stays_and_has_a_file_beside_it(tmp_path):
    jpeg = encode("JPEG")
    packet = b"http://ns.adobe.com/xap/1.0/\0" + SIDECAR
    segment = b"\xff\xe1" + struct.pack(">H", len(packet) + 2) + packet
    note = exif(Image__Make="SONY", Photo__MakerNote="1 2 3 4 5 6 7 8 9 10")
    contents = {
        "cut.webp": encode("WEBP")[:-200],
        "cut.jpg": jpeg[:-200],
        "strip.tif": pages(">").replace(b"\0\0\0\6", b"\0\0\0\x99", 1)[:-6],
        "two_packets.jpg": jpeg[:2] + 2 * segment + jpeg[2:],
        "signed.png": encode("PNG") + b"jumb c2pa",
        "preview.jpg": note + b"a preview that the maker's note points to",
        "none.gif": b"GIF89a",
        "odd.tif": b"II*\0" + b"\xff" * 9,
        "linked.png": encode("PNG"),
        "read_only.png": encode("PNG"),
    }
    metadata = PhotoMetadata()
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        if name == "linked.png":
            os.link(path, tmp_path / "other")
        if name == "read_only.png":
            path.chmod(0o444)
        metadata.write({"photo": str(path), "caption": "a dog"}, None)
        assert path.read_bytes() == content
        assert described(f"{path}.xmp") == "a dog"
        assert str(path) in metadata
    assert sum(map(len, metadata.beside.values())) == len(contents)
    assert "the file has other hard links" in metadata.beside
    assert all(".partial" not in x.name for x in tmp_path.iterdir())


def test_a_replaced_photo_keeps_its_attributes_and_links(tmp_path):
    path, link = tmp_path / "dog.png", tmp_path / "link.png"
    path.write_bytes(encode("PNG"))
    link.symlink_to(path)
    path.chmod(0o604)
    os.utime(path, ns=(1, 1_000_000_007))
    if not os.geteuid():
        os.chown(path, 12345, 54321)
    if hasattr(os, "setxattr"):
        os.setxattr(path, "user.tags", b"dog")
    before = path.stat()
    write(link)
    after = path.stat()
    assert described(path) == "a dog"
    assert link.is_symlink()
    for name in "st_mode", "st_uid", "st_gid", "st_mtime_ns":
        assert getattr(after, name) == getattr(before, name)
    if hasattr(os, "setxattr"):
        assert os.getxattr(path, "user.tags") == b"dog"


def test_what_cannot_be_kept_stays(tmp_path, monkeypatch):
    path = tmp_path / "dog.png"
    path.write_bytes(encode("PNG"))
    content = path.read_bytes()
    os.utime(path, ns=(1, 1_000_000_007))
    monkeypatch.setattr("shutil.copystat", lambda *_: None)
    write(path)
    assert path.read_bytes() == content
    assert described(f"{path}.xmp") == "a dog"


def test_a_file_beside_a_photo_that_holds_no_xmp_is_named(tmp_path):
    path = tmp_path / "dog.png"
    path.write_bytes(encode("PNG"))
    metadata = PhotoMetadata(in_sidecars=True)
    row = {"photo": str(path), "caption": "a dog"}
    side = tmp_path / "dog.png.XMP"
    for make, problem in (
        (os.mkfifo, "is not a file"),
        (os.mkdir, "is not a file"),
        (lambda x: pathlib.Path(x).symlink_to("nothing"), "is not a file"),
        (lambda x: pathlib.Path(x).write_text("<html>"), "stays as it is: it is no"),
        (lambda x: pathlib.Path(x).write_bytes(encode("PNG")), "it is no XMP"),
        (lambda x: os.link(path, x), "has other hard links"),
    ):
        make(side)
        with pytest.raises(kc.InputError, match=problem):
            metadata.write(row, None)
        side.rmdir() if side.is_dir() else side.unlink()
    side.write_text("\ufeff \n", encoding="utf-8")  # of a program that was killed
    metadata.write(row, None)
    assert described(side) == "a dog"
    side.write_bytes(with_fields(SIDECAR, xmp={"Xmp.xmp.Rating": "4"}))
    metadata.write(row, None)
    assert b"Rating" in side.read_bytes()
    assert sorted(x.name for x in tmp_path.iterdir()) == ["dog.png", "dog.png.XMP"]


@pytest.mark.parametrize("name", ["é" * 125 + ".jpg", "x." + "y" * 253, "x" * 255])
def test_names_of_any_allowed_length_are_written(name, tmp_path):
    path = tmp_path / name
    with exclusive_file(path), replacing(path) as partial:
        partial.write_text("x")
        assert all(len(os.fsencode(x.name)) <= 143 for x in tmp_path.iterdir())
    assert [x.name for x in tmp_path.iterdir()] == [name]
