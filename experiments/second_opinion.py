r"""Fits and judges a second opinion on detected objects.

    python experiments/second_opinion.py --detector yolox_nano.keras \
        --photos coco_mini/val2017 --instances coco_mini/instances_val2017.json \
        --output observed/coco.jsonl
    python experiments/second_opinion.py --detector yolox_nano.keras \
        --photos flickr8k_1000/images --captions dataset_flickr8k.json \
        --output observed/flickr8k.jsonl
    python experiments/second_opinion.py --detector yolox_nano.keras \
        --photos coco_questions_photos/images --questions coco_questions_photos \
        --output observed/questions.jsonl
    python experiments/second_opinion.py --fit observed/*.jsonl

The first form writes a line for each photo: its detected objects, the probabilities of
ImageNet's classes in their boxes, and which categories are there. With --instances, an
object is right if an annotated one of its category overlaps it (intersection over union
of 0.4, or within a crowd); with --captions, if a person's caption names its category;
with --questions, if a question or its answer does, where these name an animal: only
animals are then judged. Photos
that the files of --without name, such as those that were judged by hand, are passed
over.

--fit chooses the probabilities of the `Rule` of `keras_caption.objects.SecondOpinion`
on every other photo, in the order of names, and prints the precision of the detected
categories on the rest, before and after.
"""

import collections
import csv
import dataclasses
import itertools
import json
import pathlib
import re

import numpy as np

import keras_caption as kc
from keras_caption.apps.objects.imagenet_names import CLASSES, imagenet_names, members
from keras_caption.apps.objects.object_words import mentions
from keras_caption.apps.objects.second_opinion import (
    ANIMALS,
    RULE,
    Rule,
    opinion_on,
)
from keras_caption.base.progress import progress
from keras_caption.commands.command_line import Parser, names, new_file, start
from keras_caption.datasets.questions import QUESTIONS
from keras_caption.evaluation import markdown_table
from keras_caption.formats.coco import read_instances
from keras_caption.formats.coco_categories import CATEGORIES
from keras_caption.formats.fields import image_id_of

OVERLAP = 0.4  # intersection over union of a right object and an annotated one
LEAST = 1e-3  # probability of a class that is written
NOT_ALIVE = re.compile(r"\b(teddy bear|stuffed (animal|bear|dog|cat)|hot dog)s?\b")
OPEN = re.compile(r"(what|how many|where|which|why|who)\b", re.IGNORECASE)
GRID = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LOST = 0.005  # share of the right animals that may be dropped
OWN, INSTEAD = (0.01, 0.02, 0.03, 0.05, 0.1), (0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
NO_CHANGE = Rule(replaced=2.0, vague=2.0, thing=2.0, dropped=2.0, own=0.0)
HEADER = ("objects", "before", "right, %", "now", "right now, %", "mended", "spoilt")
THINGS_HEADER = ("least probability", "things", "people say so, %")


def main(arguments):
    parser = Parser("experiments/second_opinion.py", __doc__)
    parser.add_argument("--detector", help="as of `keras-caption caption`")
    parser.add_argument("--photos", help="folder of photos")
    parser.add_argument("--instances", type=names, help="COCO's files of their objects")
    parser.add_argument("--captions", type=names, help="files of their captions")
    parser.add_argument("--questions", help="folder of questions about them")
    parser.add_argument(
        "--without", type=names, default=[], help="CSV files whose photos are not read"
    )
    parser.add_argument("--output", type=new_file, help="new .jsonl file")
    parser.add_argument("--fit", nargs="+", default=[], help="such files")
    options = parser.parse_args(arguments)
    if bool(options.fit) == bool(options.output):
        parser.error("name --output or --fit")
    if options.fit:
        fit([read_lines(path) for path in options.fit])
        return
    observe(options)


# === What is detected, what ImageNet's classes say of it, and what is there ===


def observe(options):
    """Writes the detected objects of photos, and which are right."""
    judged = {photo for path in options.without for photo in photos_of(path)}
    truths = truths_of(options)
    second = kc.objects.load_detector(options.detector, 0.3, second_opinion=True)
    judged_categories = ANIMALS if options.questions else CATEGORIES
    photos = [
        path
        for path in kc.features.find_photos(options.photos)
        if path.stem not in judged and image_id_of(path.stem) in truths
    ]
    with open(options.output, "w", encoding="utf-8") as file:
        for path in progress(photos, unit="photos"):
            there = truths[image_id_of(path.stem)]
            line = observed(second, path, there)
            line["objects"] = [
                x for x in line["objects"] if x["category"] in judged_categories
            ]
            file.write(json.dumps({"photo": path.stem, **line}) + "\n")


def observed(second, path, there):
    """The objects of a photo, each with the categories that are where it is."""
    detected, classes = second.observe(second.to_pixels([path]))
    objects = kc.objects.ObjectDetector.objects_of(detected, 0)
    for j, found in enumerate(objects):
        found["true"] = sorted(true_categories(found["box"], there))
        if (0, j) in classes and found["category"] != "person":
            found["classes"] = sparse(classes[0, j])
    said = there if isinstance(there, str) else ""
    return {"objects": objects, "classes": sparse(classes[0, None]), "said": said}


def sparse(probabilities):
    likely = np.flatnonzero(probabilities >= LEAST)
    return {int(i): round(float(probabilities[i]), 4) for i in likely}


def dense(classes):
    probabilities = np.zeros(CLASSES, "float32")
    probabilities[[int(i) for i in classes]] = list(classes.values())
    return probabilities


def true_categories(box, there):
    """Categories of annotated objects in a box, or of those that words name."""
    if isinstance(there, str):
        return {category for _, category in mentions(NOT_ALIVE.sub("teddy", there))}
    return {category for category, other in there if overlap(box, other) >= OVERLAP}


def overlap(one, other):
    """Intersection over union of two boxes."""
    one, other = np.array(one), np.array(other)
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    common = np.prod(np.maximum(sides, 0))
    return common / (
        np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2]) - common
    )


def truths_of(options):
    """By image id: a list of pairs of category and box, or words, a str."""
    truths = {}
    for path in options.instances or ():
        numbers, objects = read_instances(path)
        categories = dict(zip(numbers, CATEGORIES, strict=True))
        for image_id, boxes in objects.items():
            truths[image_id] = [(categories[number], box) for number, box in boxes]
    if options.captions:
        for records in kc.prepare.records_of_photos(
            options.photos, options.captions
        ).values():
            for x in records:
                stem = pathlib.Path(x.name).stem
                truths[image_id_of(stem)] = " . ".join(x.captions)
    if options.questions:
        said = collections.defaultdict(list)
        for question in itertools.chain(
            *QUESTIONS["vqa_coco_qa"](options.questions, None, {}).values()
        ):
            words = question.text if OPEN.match(question.text) else ""
            said[question.image_id] += [words, question.main_answer]
        words = {image_id: " . ".join(texts) for image_id, texts in said.items()}
        # Questions leave most objects out; of animals they name what is there.
        truths |= {
            i: x for i, x in words.items() if true_categories((), x) & {*ANIMALS}
        }
    return truths


def photos_of(path):
    """The names of photos in the first column of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        return [row[0].removesuffix(".jpg") for row in csv.reader(file)]


def read_lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


# === The fit ===


def fit(files):
    """Chooses a rule on every other photo, and prints what it changes on the rest."""
    halves = [[], []]
    for lines in files:
        lines.sort(key=lambda line: line["photo"])
        for half in (0, 1):
            halves[half] += lines[half::2]
    first, second = map(judged_of, halves)
    rule = NO_CHANGE
    for name in ("replaced", "vague", "thing"):
        rules = [dataclasses.replace(rule, **{name: x}) for x in GRID]
        rule = max(rules, key=lambda x: gain(first, x))
    for least in GRID:  # annotations have no animal that COCO lacks
        rule = dataclasses.replace(rule, dropped=least)
        if lost(first, rule) <= LOST:
            break
    rules = [
        dataclasses.replace(rule, own=own, instead=instead)
        for own, instead in itertools.product(OWN, INSTEAD)
    ]
    rule = max(rules, key=lambda x: gain(first, x))
    print(f"chosen: {rule}; the package's: {RULE}\n")
    for objects, title in (first, "photos of the fit"), (second, "other photos"):
        print(f"{title}\n\n{markdown_table(HEADER, rows_of(objects, RULE))}\n")
    print(markdown_table(THINGS_HEADER, [things_of(halves, x) for x in GRID]))


def judged_of(lines):
    """Pairs of a detected object and the probabilities in its box."""
    return [
        (found, dense(found["classes"]))
        for line in lines
        for found in line["objects"]
        if "classes" in found
    ]


def gain(objects, rule):
    """Right objects less wrong ones, after a rule."""
    total = 0
    for found, probabilities in objects:
        category, _ = opinion_on(found["category"], probabilities, rule)
        if category is not None:
            total += 1 if category in found["true"] else -1
    return total


def lost(objects, rule):
    """The share of right animals that a rule drops."""
    right = [x for x in objects if x[0]["category"] in {*ANIMALS} & {*x[0]["true"]}]
    dropped = [opinion_on(x["category"], p, rule)[0] is None for x, p in right]
    return np.mean(dropped)


def rows_of(objects, rule):
    """Rows of `HEADER`: of each animal, of all, and of all other objects."""
    counts = collections.defaultdict(collections.Counter)

    def count(category, **numbers):
        total = "all animals" if category in ANIMALS else "other objects"
        for row in (category, total):
            counts[row].update(numbers)

    for found, probabilities in objects:
        before, true = found["category"], found["true"]
        now, _ = opinion_on(before, probabilities, rule)
        count(before, before=1, right=before in true)
        if now is not None:
            count(now, now=1, right_now=now in true)
        if now != before:
            count(before, mended=before not in true and (now is None or now in true))
            count(before, spoilt=before in true)
    rows = []
    for name in (*ANIMALS, "all animals", "other objects"):
        of = counts[name]
        shares = [
            f"{100 * of[right] / of[all_]:.1f}" if of[all_] else ""
            for right, all_ in (("right", "before"), ("right_now", "now"))
        ]
        cells = (
            of["before"],
            shares[0],
            of["now"],
            shares[1],
            of["mended"],
            of["spoilt"],
        )
        rows.append([name, *cells])
    return rows


def things_of(halves, least):
    """A row of `THINGS_HEADER`: things in whole photos, and whether people say them."""
    counts = collections.Counter()
    for line in (x for half in halves for x in half if x["said"]):
        masses = members() @ dense(line["classes"])
        for row, name in enumerate(imagenet_names()):
            if not name.category and masses[row] >= least:
                counts["seen"] += 1
                counts["said"] += name.name.split()[-1] in line["said"].lower()
    share = f"{100 * counts['said'] / counts['seen']:.1f}" if counts["seen"] else ""
    return [f"{least:.1f}", counts["seen"], share]


if __name__ == "__main__":
    start(main)
