"""Writes captions into photos of many layouts, with kills and full disks.

    sudo python tests/endurance/photo_metadata.py [--photos 200] [--heic FILE]

Makes photos of random layouts: JPEG, multi-picture and motion photos, PNG, WebP,
TIFF of one and of several pages and GIF, with EXIF, makers' notes, IPTC, XMP, profiles,
texts and comments, with data behind the picture, whole, cut or with changed bytes; and
HEIC, if a file of it is named. A process writes a caption into each photo, or beside
it, and

- ends by itself;
- is killed before a random one of its operations on files;
- is killed at a random byte that it writes; or
- has a disk in memory, which Linux lets root mount, with room for a random part.

Then the photo has to be the old file or one that is no worse, as told here by other
means than the program's: its pictures as Pillow decodes them, its bytes in their order,
its metadata as exiv2 reads it, and owner, group, mode, time and extended attributes.
"""

import argparse
import collections
import contextlib
import io
import os
import pathlib
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings

import numpy as np
import pyexiv2
from full_disk import mounted
from keras_caption.results import PhotoMetadata
from PIL import Image, ImageCms, ImageSequence, PngImagePlugin

CAPTION = "a dog on a couch"
OPERATIONS = (
    "open",
    "write",
    "fsync",
    "chown",
    "utime",
    "setxattr",
    "chmod",
    "replace",
)
OWN = ("Xmp.dc.description", "Iptc.Envelope.CharacterSet", "Iptc.Application2.Caption")
XMP_OF_TIFF = 700


# === Photos ===


def pixels(rng):
    height, width = rng.randint(1, 200), rng.randint(1, 200)
    low = np.random.default_rng(rng.random().__hash__() % 2**32)
    return low.integers(0, 256, (height, width, 3)).astype("uint8")


def exif_of(rng):
    exif = Image.Exif()
    exif[271] = rng.choice(["Canon", "SONY", "Apple", "NIKON", "samsung"])
    if rng.random() < 0.5:
        exif[274] = rng.randint(1, 8)
    if rng.random() < 0.3:
        exif[270] = rng.choice(["SONY DSC", "OLYMPUS DIGITAL CAMERA", "My garden"])
    fields = exif.get_ifd(0x8769)
    fields[36867] = "2024:05:06 07:08:09"
    if rng.random() < 0.5:
        fields[37500] = rng.randbytes(rng.randint(1, 4000))  # the maker's note
    if rng.random() < 0.3:
        exif.get_ifd(0x8825)[1] = "N"
    return exif


def encode(rng):
    """A photo: the name of its layout, and its bytes."""
    image, file, options = Image.fromarray(pixels(rng)), io.BytesIO(), {}
    kind = rng.choice(
        ["JPEG"] * 4 + ["MPO", "PNG", "PNG", "WEBP", "WEBP"] + ["TIFF"] * 3
    )
    kind = "GIF" if rng.random() < 0.04 else kind
    if rng.random() < 0.6 and kind != "GIF":
        options["exif"] = exif_of(rng)
    if rng.random() < 0.4 and kind != "GIF":
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
        options["icc_profile"] = profile.tobytes()
    others = [Image.fromarray(pixels(rng)).resize(image.size) for _ in range(2)]
    if kind == "MPO" or (kind != "JPEG" and rng.random() < 0.4):
        options |= {"save_all": True, "append_images": others}
    if kind == "JPEG":
        image = image.convert(rng.choice(["RGB", "L", "CMYK"]))
        options |= {"quality": rng.randint(20, 95), "progressive": rng.random() < 0.4}
        if rng.random() < 0.3:
            options["comment"] = b"a comment"
    elif kind == "PNG":
        image = image.convert(rng.choice(["RGB", "RGBA", "L", "P"]))
        if "append_images" in options:
            options["append_images"] = [x.convert(image.mode) for x in others]
        info = PngImagePlugin.PngInfo()
        for name in rng.sample(["Title", "Software", "parameters", "Comment"], 2):
            info.add_itxt(name, "text " * rng.randint(1, 99), zip=rng.random() < 0.5)
        options["pnginfo"] = info
    elif kind == "WEBP":
        image = image.convert(rng.choice(["RGB", "RGBA"]))
        options["lossless"] = rng.random() < 0.5
    elif kind == "TIFF":
        image = image.convert(rng.choice(["RGB", "L", "CMYK", "1"]))
        small = image.mode == "1"
        if "append_images" in options:
            options["append_images"] = [x.convert(image.mode) for x in others]
        options["compression"] = rng.choice(
            ["raw", "group4"] if small else ["raw", "tiff_lzw", "tiff_adobe_deflate"]
        )
    image.save(file, kind, **options)
    content = file.getvalue()
    name = [kind.lower()]
    if rng.random() < 0.3 and kind != "GIF":
        content, name = with_metadata(content, rng), [*name, "xmp"]
    if rng.random() < 0.35:
        motion = (
            struct.pack(">I", 24) + b"ftypmp42" + rng.randbytes(rng.randint(1, 9999))
        )
        content, name = content + motion, [*name, "trailing"]
    change = rng.random()
    if change < 0.12:
        content = content[: rng.randint(20, len(content) - 1)]
        name.append("cut")
    elif change < 0.24:
        changed = bytearray(content)
        for _ in range(rng.randint(1, 5)):
            changed[rng.randrange(12, len(content))] = rng.randrange(256)
        content = bytes(changed)
        name.append("changed")
    return "_".join(name), content


def with_metadata(content, rng):
    """A photo with XMP, and IPTC in a JPEG, of a program of its owner."""
    with pyexiv2.ImageData(content) as photo:
        photo.modify_xmp({"Xmp.xmp.Rating": "4", "Xmp.dc.subject": ["a", "b"]})
        if rng.random() < 0.3:
            photo.modify_xmp({"Xmp.dc.description": {'lang="de"': "Mein Hund"}})
        if content.startswith(b"\xff\xd8"):
            photo.modify_iptc({"Iptc.Application2.Keywords": ["a", "b"]})
        return photo.get_bytes()


# === What a photo has ===


def pictures(content):
    """Pixels of all pictures up to one that cannot be decoded, and tags of pages."""
    found = []
    with contextlib.suppress(Exception), Image.open(io.BytesIO(content)) as image:
        for picture in ImageSequence.Iterator(image):
            tags = {
                key: value
                for key, value in getattr(picture, "tag_v2", {}).items()
                if key != XMP_OF_TIFF
            }
            found.append((picture.mode, picture.tobytes(), tags))
    return found


def metadata(content):
    values = {}
    with contextlib.suppress(Exception), pyexiv2.ImageData(content) as photo:
        for read in photo.read_exif, photo.read_iptc, photo.read_xmp:
            with contextlib.suppress(Exception):
                values |= read(encoding="latin-1")
    own = (*OWN, "Exif.Image.XMLPacket")
    return {key: value for key, value in values.items() if key not in own}


def is_in_order(old, new):
    """Whether new bytes have the old ones in their order, but for XMP and lengths."""
    if old[:4] in (b"II*\0", b"MM\0*"):
        return new[8 : len(old)] == old[8:]
    place, kept = 0, 0
    for start in range(0, len(old), 64):  # pieces, of which few are metadata
        piece = old[start : start + 64]
        at = new.find(piece, place)
        if at >= 0:
            place, kept = at + len(piece), kept + len(piece)
    changed = 4096 if b"xmpmeta" in old else 256
    ends_alike = new[-16:] == old[-16:] or old[:4] == b"RIFF"  # XMP may be its end
    return len(old) - kept <= changed and ends_alike


def attributes(path):
    state = path.stat()
    extended = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return state.st_uid, state.st_gid, state.st_mode, state.st_mtime_ns, extended


def check_no_worse(name, old, path, before):
    """Returns "same" or "new"; raises `AssertionError` if a photo is worse."""
    new = path.read_bytes()
    assert attributes(path) == before, name
    if new == old:
        return "same"
    assert pictures(new) == pictures(old), name
    assert metadata(new).items() >= metadata(old).items(), name
    assert is_in_order(old, new), name
    with pyexiv2.ImageData(new) as photo:
        assert CAPTION in photo.read_xmp()["Xmp.dc.description"].values(), name
    return "new"


# === Processes ===


def write(path, kill_before=None, kill_at_byte=None):
    """Writes a caption in a child; returns its exit status, or minus its signal."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            if kill_before is not None:
                kill_at(kill_before)
            if kill_at_byte is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_FSIZE, (kill_at_byte,) * 2)
            os._exit(write_here(path))
        os._exit(9)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def write_here(path):
    try:
        PhotoMetadata().write({"photo": str(path), "caption": CAPTION}, None)
    except (ValueError, OSError):  # said in one sentence
        return 1
    return 0


def kill_at(count):
    """Kills this process before one of its operations on files."""
    left = [count]

    def counting(function):
        def operate(*arguments, **options):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return operate

    for name in OPERATIONS:
        setattr(os, name, counting(getattr(os, name)))
    PhotoMetadata.write = counting(PhotoMetadata.write)


def lay(folder, name, content, rng):
    """A photo in a folder, with attributes of its own; returns path and attributes."""
    path = folder / name
    path.write_bytes(content)
    os.chown(path, rng.randrange(1, 60_000), rng.randrange(1, 60_000))
    path.chmod(rng.choice([0o600, 0o640, 0o644, 0o664]))
    os.setxattr(path, "user.tags", rng.randbytes(20))
    os.utime(path, ns=(1, rng.randrange(10**18)))
    return path, attributes(path)


def try_photo(folder, name, content, rng, counts):
    """Writes, kills and fills disks; counts what came of it."""
    operation, byte = rng.randint(0, 9), rng.randrange(len(content) + 3000)
    ways = {"written": {}, "full disk": {}, "killed": {"kill_before": operation}}
    ways["byte"] = {"kill_at_byte": byte}
    for way, kill in ways.items():
        size = len(content) + rng.randint(8192, len(content) + 16384)
        place = folder / f"{name}_{way.replace(' ', '_')}"
        with mounted(place, size) if way == "full disk" else making(place):
            path, before = lay(place, name, content, rng)
            status = write(path, **kill)
            killed = -signal.SIGKILL, -signal.SIGXFSZ
            assert status in (0, 1, *killed), (name, status)
            outcome = check_no_worse(name, content, path, before)
            beside = place / f"{name}.xmp"
            if status == 0 and outcome == "same" and beside.exists():
                outcome = "beside"
            counts[way, "killed" if status < 0 else "ended", outcome, status] += 1
            if status < 0:  # the same command again, beside what was left behind
                assert write(path) in (0, 1)
                check_no_worse(name, content, path, before)


@contextlib.contextmanager
def making(folder):
    folder.mkdir()
    yield folder


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--photos", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--heic", help="a HEIC file, tried besides")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    if os.geteuid():
        sys.exit("error: only root may mount the disks.")
    pyexiv2.set_log_level(4)
    warnings.simplefilter("ignore")
    start, counts = time.monotonic(), collections.Counter()
    layouts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.photos):
            name, content = encode(rng)
            layouts[name] += 1
            suffix = name.partition("_")[0]
            try_photo(pathlib.Path(folder), f"{number}.{suffix}", content, rng, counts)
        if options.heic:
            content = pathlib.Path(options.heic).read_bytes()
            try_photo(pathlib.Path(folder), "photo.heic", content, rng, counts)
    for (way, end, outcome, status), count in sorted(counts.items()):
        print(f"{way:10} {end:7} photo {outcome:7} status {status}: {count}")
    print(f"{len(layouts)} layouts: {dict(layouts.most_common())}")
    print(f"{time.monotonic() - start:.0f} s; no photo is worse")


if __name__ == "__main__":
    main()
