r"""Makes a sheet for judging captions of two systems blindly, and counts verdicts.

    python experiments/judging.py before.jsonl after.jsonl --sheet sheet
    python experiments/judging.py before.jsonl after.jsonl --verdicts sheet/verdicts.csv

The .jsonl files are outputs of `keras-caption caption --output`. The sheet is a page
with each photo and the captions of both systems, in random order for each photo. Fill
in `verdicts.csv` beside it: right, partly or wrong for each letter. A caption is right
if all of its statements are, partly right if the first named object is in the photo,
and wrong otherwise. Equal captions have one letter. --every K --from I chooses every
K-th photo in the order of names, from the I-th on.
"""

import collections
import csv
import html
import json
import os
import pathlib
import random

import keras_caption as kc
from keras_caption.commands.command_line import Parser, start

VERDICTS = ("right", "partly", "wrong")
HEAD = (
    "<!doctype html><meta charset=utf-8><title>Captions to be judged</title>"
    "<style>figure{display:inline-block;width:20em;vertical-align:top}"
    "img{max-width:100%}</style>\n"
)


def main(arguments):
    parser = Parser("experiments/judging.py", __doc__)
    parser.add_argument("systems", nargs=2, help=".jsonl files of captions")
    parser.add_argument("--sheet", help="new folder for the sheet")
    parser.add_argument("--verdicts", help="filled-in verdicts.csv, to be counted")
    parser.add_argument("--every", type=int, default=1, metavar="K")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="I")
    parser.add_argument("--seed", type=int, default=0, help="of the random order")
    options = parser.parse_args(arguments)
    if (options.sheet is None) == (options.verdicts is None):
        parser.error("name --sheet or --verdicts")
    systems = [read_captions(path) for path in options.systems]
    photos = sorted(systems[0])[options.first :: options.every]
    missing = [photo for photo in photos if photo not in systems[1]]
    if missing:
        raise kc.InputError(f"{options.systems[1]} has no caption of {missing[0]}.")
    order = random.Random(options.seed)
    shuffled = {}
    for photo in photos:
        captions = [*dict.fromkeys(system[photo] for system in systems)]
        order.shuffle(captions)
        shuffled[photo] = dict(zip("AB", captions, strict=False))
    if options.sheet:
        write_sheet(pathlib.Path(options.sheet), shuffled)
    else:
        count(read_verdicts(options.verdicts, shuffled), systems, options.systems)


def read_captions(path):
    """Captions by photo."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["photo"]: row["caption"] or "nothing detected" for row in rows}


def write_sheet(folder, shuffled):
    """Writes the page, and the file for the verdicts."""
    folder.mkdir(parents=True)
    with open(folder / "sheet.html", "w", encoding="utf-8") as page:
        page.write(HEAD)
        for photo, captions in shuffled.items():
            lines = "".join(
                f"<br>{letter}: {html.escape(text)}"
                for letter, text in captions.items()
            )
            source = html.escape(pathlib.Path(photo).resolve().as_uri())
            page.write(
                f"<figure><img src='{source}'><figcaption>"
                f"{html.escape(os.path.basename(photo))}{lines}</figcaption></figure>\n"
            )
    with open(folder / "verdicts.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("photo", "letter", "caption", "verdict"))
        for photo, captions in shuffled.items():
            name = os.path.basename(photo)
            writer.writerows((name, *item, "") for item in captions.items())


def read_verdicts(path, shuffled):
    """Verdicts by photo and caption."""
    names = {os.path.basename(photo): photo for photo in shuffled}
    verdicts = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["verdict"] not in VERDICTS:
                raise kc.InputError(
                    f"{path}: {row['photo']}, {row['letter']} should be one of "
                    f"{', '.join(VERDICTS)}. Received: {row['verdict']!r}"
                )
            verdicts[names[row["photo"]], row["caption"]] = row["verdict"]
    return verdicts


def count(verdicts, systems, paths):
    """Prints the numbers of right, partly right and wrong captions of each system."""
    photos = {photo for photo, _ in verdicts}
    rows = []
    for path, system in zip(paths, systems, strict=True):
        counts = collections.Counter(verdicts[photo, system[photo]] for photo in photos)
        rows.append([path, *(counts[verdict] for verdict in VERDICTS)])
    print(kc.evaluation.markdown_table(["captions", *VERDICTS], rows))


if __name__ == "__main__":
    start(main)
