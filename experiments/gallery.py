r"""Captions photos of free licence from packages, and draws them as one picture.

    apt-get download gcompris-qt-data && dpkg-deb -x gcompris-qt-data_*.deb packages
    pip install --target packages --no-deps scikit-image==0.26.0 matplotlib==3.11.2
    python experiments/gallery.py packages --detector yolox_nano.keras \
        --output photos.jpg

--list is a CSV with the photos, their packages and licences, the categories of COCO
that people see in them, a caption, and a person's verdict on that caption. Other
captions are printed, and drawn without a verdict. The picture shows photos with objects
of COCO's categories, with "(unsure)" as the command prints it; others whose captions
are right; and those without a caption, in which nothing is detected. With --right, it
shows only photos whose captions are right and say more than categories of COCO: a
relation, a colour, a place, or a finer name. Photos in resource files of Qt (.rcc) are
read from these files.
"""

import collections
import csv
import json
import pathlib
import struct
import tempfile
import textwrap
import zlib

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import keras_caption as kc
from keras_caption.apps.objects.description import OBJECT
from keras_caption.apps.report.results import places_of_labels
from keras_caption.base.atomic import creating
from keras_caption.commands import caption
from keras_caption.commands.command_line import Parser, new_figure, start
from keras_caption.features import read_photo

COLUMNS = 7
WIDTH = 18.6  # inches
PHOTO, TEXT = 2.0, 1.1  # inches of height, of a photo and of what stands below it
LINE = 25  # characters of a caption
NO_CAPTION = "nothing detected: no caption"
FRAME = "#ffd60a"
MARKS = {
    "right": "#1b6e35",
    "partly right": "#9a6700",
    "wrong": "#b3123c",
    "declined": "#57606a",
}


def main(arguments):
    parser = Parser("experiments/gallery.py", __doc__)
    parser.add_argument("folders", nargs="+", help="folders of unpacked packages")
    parser.add_argument("--list", default="docs/results/gallery.csv")
    parser.add_argument("--output", required=True, type=new_figure)
    parser.add_argument(
        "--right",
        action="store_true",
        help="draw those only whose captions are right and say more than categories",
    )
    parser.add_argument("--model", help="as of `keras-caption caption`")
    parser.add_argument("--detector", help="as of `keras-caption caption`")
    options = parser.parse_args(arguments)
    with open(options.list, newline="", encoding="utf-8") as file:
        listed = list(csv.DictReader(file))
    passed = [
        f"--{name}={getattr(options, name)}"
        for name in ("model", "detector")
        if getattr(options, name)
    ]
    with tempfile.TemporaryDirectory() as folder:
        paths = [find(entry["photo"], options.folders, folder) for entry in listed]
        output = pathlib.Path(folder, "captions.jsonl")
        caption.main([*map(str, paths), *passed, f"--output={output}"])
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        photos = [read_photo(path) for path in paths]
    verdicts = [*map(verdict_on, listed, rows)]
    for name, entries in ("of COCO's categories", True), ("of none", False):
        of_kind = [
            v
            for v, e in zip(verdicts, listed, strict=True)
            if entries == bool(e["shows"])
        ]
        print(f"{len(of_kind)} photos {name}:", dict(collections.Counter(of_kind)))
    shown = [
        (photo, row, verdict)
        for entry, photo, row, verdict in zip(
            listed, photos, rows, verdicts, strict=True
        )
        if is_shown(entry, row, verdict, options.right)
    ]
    figure = draw(*zip(*shown, strict=True))
    with creating(options.output) as partial:
        figure.savefig(partial, dpi=80)


def verdict_on(entry, row):
    """The verdict on a row: a person's, "declined" without a caption, or `None`."""
    if not row["caption"]:
        return "declined"
    if row["caption"] == entry["caption"]:
        return entry["verdict"]
    print(f"not judged: {entry['photo']},{row['caption']}")
    return None


def is_shown(entry, row, verdict, right):
    """Whether the picture shows a photo; `right` is --right."""
    if right:
        says_more = any(x["kind"] != OBJECT for x in row["links"])
        return verdict == "right" and says_more
    return bool(entry["shows"]) or verdict in ("declined", "right")


def find(photo, folders, temporary):
    """The path of a photo. A photo in a resource file is written to a folder first."""
    for folder in folders:
        resource, _, name = photo.rpartition(".rcc/")
        pattern = f"**/{resource}.rcc" if resource else f"**/{photo}"
        for path in sorted(pathlib.Path(folder).glob(pattern)):
            if not resource:
                return path
            target = pathlib.Path(temporary, name)
            target.write_bytes(qt_resources(path)[name])
            return target
    raise kc.InputError(f"{photo} is in none of {', '.join(folders)}.")


def qt_resources(path):
    """Reads the files in a resource file of Qt, a dict from name to bytes.

    The tree of a resource file has entries, of 22 bytes from version 2 on: position of
    the name, flags (1 for compressed, 2 for a folder), four bytes that files do not
    need, position of the content, and a time.
    """
    content = path.read_bytes()
    _, version, tree, data, names = struct.unpack_from(">4s4I", content)
    size, files = 22 if version > 1 else 14, {}
    folders, i = [(0, 1)], 0
    while folders:
        first, count = folders.pop()
        for i in range(first, first + count):
            name, flags, children, place = struct.unpack_from(
                ">IHII", content, tree + size * i
            )
            if flags & 2:
                folders.append((place, children))
                continue
            (length,) = struct.unpack_from(">H", content, names + name)
            begin = names + name + 6
            text = content[begin : begin + 2 * length].decode("utf-16-be")
            (length,) = struct.unpack_from(">I", content, data + place)
            begin = data + place + 4
            value = content[begin : begin + length]
            files[text] = zlib.decompress(value[4:]) if flags & 1 else value
    return files


def draw(photos, rows, verdicts):
    """A figure of photos with their objects, captions and verdicts."""
    lines = -(-len(photos) // COLUMNS)
    figure = Figure((WIDTH, lines * (PHOTO + TEXT)))
    panels = figure.subplots(
        lines,
        COLUMNS,
        squeeze=False,
        gridspec_kw={
            "left": 0.005,
            "right": 0.995,
            "top": 0.995,
            "bottom": TEXT / (PHOTO + TEXT) / lines,
            "wspace": 0.04,
            "hspace": TEXT / PHOTO,
        },
    ).ravel()
    for panel in panels:
        panel.axis("off")
    for panel, photo, row, verdict in zip(panels, photos, rows, verdicts, strict=False):
        panel.imshow(photo)
        panel.set_anchor("SW")
        name_objects(panel, row["objects"], *photo.shape[1::-1])
        said = row["caption"] + " (unsure)" * row["unsure"]
        said = textwrap.fill(said if row["caption"] else NO_CAPTION, LINE)
        text = {"xycoords": "axes fraction", "textcoords": "offset points"}
        text |= {"va": "top", "parse_math": False, "fontsize": 13}
        if verdict:
            colour = MARKS[verdict]
            panel.annotate(
                verdict, (0, 0), (0, -6), color=colour, weight="bold", **text
            )
        panel.annotate(said, (0, 0), (0, -24), **text)
    return figure


def name_objects(panel, objects, width, height):
    """Frames objects, and writes their categories on a solid background."""
    scale = width / max(width, 4 / 3 * height) * 72 * WIDTH / COLUMNS / width
    shown = scale * width, scale * height  # in points
    for item, place in zip(objects, places_of_labels(objects, *shown), strict=True):
        x1, y1, x2, y2 = np.array(item["box"]) * (width, height, width, height)
        frame = Rectangle((x1, y1), x2 - x1, y2 - y1, ec=FRAME, fc="none", lw=2)
        panel.add_patch(frame)
        if place:
            x, y = place[0] / scale, place[1] / scale
            solid = {"fc": FRAME, "ec": "none", "pad": 2}
            text = {"va": "top", "fontsize": 12, "parse_math": False}
            panel.text(
                x + 2 / scale, y + 2 / scale, item["category"], bbox=solid, **text
            )


if __name__ == "__main__":
    start(main)
