r"""Fits what tells whether persons sit or ride, and animals stand.

    python experiments/actions.py --detector yolox_nano.keras \
        --photos flickr8k_1000/images,coco_mini/val2017,coco_questions_photos/images \
        --seen experiments/relations_seen.csv --output keras_caption/apps/objects

The file --seen, CSV, has what a person saw who looked at detected objects: `photo`;
`relation`, such as sitting; and `seen`, whether all those of which a caption may say
the relation have it: yes, no, some, other, if there is no such object, or unclear.
These two count for nothing; nothing is learnt from some, which is wrong.

Of each photo, those who may sit or ride are the persons whose boxes lie as
`keras_caption.apps.objects.actions.candidates` says; where no person's box is at a seat
or a table, all persons may sit. The least probabilities are found as
`experiments/details.py` does it, of the least sure object of each photo, by logistic
regressions over photos of the other folds. Prints, and writes as `actions.csv`, the
table of these; `actions.npz` has the weights of regressions over all photos.
"""

import collections
import csv
import pathlib

import numpy as np

from experiments.details import (
    fit,
    held_out_probabilities,
    light_second_opinion,
    row_of,
    write,
)
from keras_caption.apps.objects.actions import (
    ANIMAL,
    RIDING,
    SITTING,
    STANDING,
    candidates,
    values_of,
)
from keras_caption.apps.objects.details import ACTION
from keras_caption.apps.objects.person_names import PERSON
from keras_caption.base.progress import progress
from keras_caption.commands.command_line import Parser, names, start
from keras_caption.features.photos import read_photo

OF = {SITTING: PERSON, RIDING: PERSON, STANDING: ANIMAL}
DECAY = 600.0  # penalty of the regressions
FOLDINGS = 10
LABELS = {"yes": 1.0, "no": 0.0, "some": np.nan}  # others count for nothing


def main(arguments):
    parser = Parser("experiments/actions.py", __doc__)
    parser.add_argument("--detector", required=True)
    parser.add_argument("--photos", type=names, required=True, help="folders")
    parser.add_argument("--seen", required=True, help="file of what was seen")
    parser.add_argument("--few", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--output", required=True, help="folder")
    options = parser.parse_args(arguments)
    output, seen = pathlib.Path(options.output), read_seen(options.seen)
    looked_at = {photo for name in OF for photo in seen[name]}
    paths = {
        path.stem: path
        for folder in reversed(options.photos)
        for path in sorted(pathlib.Path(folder).iterdir())
        if path.stem in looked_at
    }
    photos = measure(paths, light_second_opinion(options.detector))
    rows, weights = action_rows(photos, seen, options)
    write(output / "actions", rows, weights)


def read_seen(path):
    """What was seen: dict from a relation to a dict from a photo to the cell."""
    seen = collections.defaultdict(dict)
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            seen[row["relation"]][row["photo"]] = row["seen"]
    return seen


def measure(paths, second):
    """Finds and classifies the objects of photos.

    Args:
        paths: dict from the name of a photo to its path.
        second: `SecondOpinion`.

    Returns:
        dict from the name of a photo to its objects and their classes.
    """
    photos = {}
    for name in progress(paths, unit="photos"):
        found = second(second.to_pixels([read_photo(paths[name])]))
        photos[name] = second.objects_of(found, 0), found["box_classes"][0]
    return photos


def action_rows(photos, seen, options):
    """The rows of actions, and the weights of each.

    Args:
        photos: As `measure` returns it.
        seen: As `read_seen` returns it.
        options: What `main` parses.
    """
    rows, kept = [], {}
    for name, of in OF.items():
        examples = examples_of(name, photos, seen[name])
        values = np.concatenate([own for own, _ in examples])
        right = np.array([label for _, label in examples])
        of_photo = np.repeat(np.arange(len(right)), [len(own) for own, _ in examples])
        labels = right[of_photo]
        usable = ~np.isnan(labels)
        fitted = values, labels, DECAY, of_photo, usable
        probabilities = held_out_probabilities(*fitted, foldings=FOLDINGS)
        least = [probabilities[of_photo == i].min() for i in range(len(right))]
        pairs = list(zip(least, right == 1, strict=True))
        if row := row_of(ACTION, name, of, pairs, [], options):
            rows.append(row)
            kept[name] = fit(values[usable], labels[usable], DECAY).astype("float16")
    return rows, kept


def examples_of(name, photos, seen):
    """Values of those who may do something, and a label, of each photo.

    Args:
        name: str, what they may do.
        photos: As `measure` returns it.
        seen: dict from a photo to what was seen of this.

    Returns:
        List of pairs of float `(rows, values)` and a label, NaN if some do it.
    """
    examples = []
    for photo, (objects, box_classes) in photos.items():
        if seen.get(photo) not in LABELS:
            continue
        found = [x for x in candidates(objects) if x.name == name]
        with_object = [x for x in found if x.object] or found
        places = sorted({pair for x in with_object for pair in x.places})
        if name == SITTING:  # once for each person
            places = [*dict(places).items()]
        rows = values_of(name, objects, box_classes, places)
        if len(rows):
            examples.append((rows, LABELS[seen[photo]]))
    return examples


if __name__ == "__main__":
    start(main)
