r"""Fits the probabilities from which detected objects have finer names.

    python experiments/finer_names.py experiments/names_seen.csv \
        --output keras_caption/apps/objects/imagenet_names.csv

The file has a line for each name that ImageNet's classes give an object with a
probability of 0.2 or more: `photo`; `object`, its place among the detected ones;
`category`; `name`; `probability`; and `seen`, whether a person who looked at the object
says so: yes, no, or unclear, which counts for nothing.

The least probability of a name is the smallest of 0.25, 0.3, ..., 0.95 at which 8 or
more objects have it, and 90 % of such names are right with a confidence of 80 %, by
Wilson's interval. Names without one have that of all such names of their kind together,
from 0.5 on, or else 0.6; but those that were right in fewer than half of 4 objects or
more are never said. Writes them to the table of names, and prints them, and how often
objects get a right name, each by probabilities that were fitted on the four fifths of
photos without it.
"""

import collections
import csv

import numpy as np

from experiments.details import UNCLEAR, least_of
from keras_caption.apps.objects.imagenet_names import TABLE, imagenet_names
from keras_caption.base.atomic import replacing
from keras_caption.commands.command_line import Parser, start
from keras_caption.evaluation import markdown_table

FOLDS = 5
STEPS = np.arange(0.25, 1, 0.05).round(2)
FEW = 8  # objects, with fewer of which nothing is fitted
DOUBTED = 4  # objects, of which fewer than half are right, of a name that is not said
OF_KINDS = STEPS[STEPS >= 0.5]  # of names of which few were seen, or none
SUPPOSED = 0.6  # of a kind of which too few were
HEADER = ("names", "seen", "least probability", "said", "right, %")


def main(arguments):
    parser = Parser("experiments/finer_names.py", __doc__)
    parser.add_argument("seen", help="file of what was seen")
    parser.add_argument("--output", default=TABLE, help="table of names to change")
    options = parser.parse_args(arguments)
    with open(options.seen, newline="", encoding="utf-8") as file:
        seen = [x for x in csv.DictReader(file) if x["seen"] != UNCLEAR]
    least, rows = fit(seen)
    for title, fitted in (
        ("all, cross-validated", lambda others: fit(others)[0]),
        (f"all from {SUPPOSED} on", lambda _: dict.fromkeys(least, SUPPOSED)),
    ):
        right = [
            is_right
            for fold in range(FOLDS)
            for own, others in [divided(seen, fold)]
            for is_right in called(own, fitted(others))
        ]
        rows.append([title, len(seen), "", len(right), percent(right)])
    print(markdown_table(HEADER, rows))
    write(least, options.output)


def fit(seen):
    """The least probability of each name, `None` of one that is never said.

    Returns:
        dict, and rows of `HEADER`.
    """
    by_name, by_kind = collections.defaultdict(list), collections.defaultdict(list)
    for row in seen:
        by_name[row["name"]].append((float(row["probability"]), row["seen"] == "yes"))
    kinds = {x.name: x.kind for x in imagenet_names() if x.category}
    least, rows, doubted = {}, [], 0
    for name in kinds:
        looks = by_name[name]
        if found := least_of(looks, STEPS, FEW):
            least[name] = found[0]
            rows.append(row_of(name, looks, *found))
        elif len(looks) >= DOUBTED and np.mean([x for _, x in looks]) < 0.5:
            least[name] = None
            doubted += len(looks)
        else:
            by_kind[kinds[name]] += looks
    rows.sort(key=lambda row: -row[1])
    for kind in sorted({*kinds.values()}):
        if found := least_of(by_kind[kind], OF_KINDS, FEW):
            rows.append(row_of(f"other names: {kind}", by_kind[kind], *found))
        for name, own in kinds.items():
            if own == kind and name not in least:
                least[name] = found[0] if found else SUPPOSED
    return least, [*rows, ["never said", doubted, "", 0, ""]]


def row_of(title, looks, least, right):
    """A row of `HEADER`, see `least_of`."""
    return [title, len(looks), least, len(right), percent(right)]


def called(seen, least):
    """Whether the finest name that each object gets is right: a list of bool."""
    sizes = {x.name: len(x.classes) for x in imagenet_names()}
    names = collections.defaultdict(list)
    for row in seen:
        from_on = least[row["name"]]
        if from_on is not None and float(row["probability"]) >= from_on:
            is_right = row["seen"] == "yes"
            names[row["photo"], row["object"]].append((sizes[row["name"]], is_right))
    return [min(own)[1] for own in names.values()]


def divided(seen, fold):
    """What was seen in the photos of a fold, and in the others."""
    photos = {*sorted({row["photo"] for row in seen})[fold::FOLDS]}
    own = [row for row in seen if row["photo"] in photos]
    return own, [row for row in seen if row["photo"] not in photos]


def percent(right):
    return f"{100 * np.mean(right):.1f}"


def write(least, path):
    """Writes the probabilities to the column `least` of the table of names."""
    with open(TABLE, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        is_finer = row["category"] and row["name"] != row["category"]
        found = least.get(row["name"]) if is_finer else None
        row["least"] = "" if found is None else f"{found:g}"
    with replacing(path) as partial, open(partial, "w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    start(main)
