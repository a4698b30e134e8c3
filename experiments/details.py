r"""Fits the words that measurements of a photo admit: colours, places, persons' names.

    python experiments/details.py --detector yolox_nano.keras \
        --photos flickr8k_1000/images,coco_mini/val2017 \
        --captions dataset_flickr8k.json,karpathy_split.json \
        --questions coco_questions_photos --seen experiments/photos_seen.csv \
        --coloured experiments/colours_seen.csv --output keras_caption/apps/objects

A colour of a photo's only detected dog is right if a person who looked at it says so,
or else if a caption gives it to a dog, or it is the answer to a question for the color
of a dog: of VQA by three of ten people or more, of COCO-QA. Dogs whose colour nobody
says are left out. A place is right if one of five captions names it, and "outdoors" or
"indoors" if two captions or more have words for such places; photos of which captions
have words for both, or none, are left out.
The file --seen, CSV with the column `photo` and columns named as places, has what a
person saw who looked at photos, of --questions too: yes, no, or unclear, which counts
for nothing; empty cells, and other photos, are judged by captions, if they have some.
Its column `child` has whether all detected persons are children; here, some is no too.
The file --coloured, CSV with the columns `photo`, `category` and `colour`, has the same
of the only object of a category in a photo: of things, a colour, several or unclear; of
dogs, one or two colours, or unclear.
A person's name is right if one caption gives it, and as many do as give another; of
several detected persons, who all have the name, if more do than give another.
Logistic regressions over the logarithms of ImageNet's probabilities, of places and dogs
over colours of pixels, of some places over the scores of detected objects, and of
things over colours and their category, learn from what was seen, or two captions say,
of dogs half of those that give a colour and, of persons, from photos of which no
caption gives another name.

For each word, the least probability is the smallest of --steps from 0.5 at which --few
or more are said on photos of the split train, and 90 % of such are right with a
confidence of 80 %, by Wilson's interval: 8 of 8, 38 of 40. A word without one is left
out. Prints, and writes as `details.csv`, these words, beside the shares on photos of
the other splits; `details.npz` has the weights of the regressions.
"""

import collections
import csv
import pathlib
import re

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

import keras_caption as kc
from keras_caption.apps.objects.details import COLOUR, NAME, PLACE, Detail
from keras_caption.apps.objects.dog_colours import DOG, DOG_COLOURS, is_called
from keras_caption.apps.objects.dog_colours import values_of as values_of_dog
from keras_caption.apps.objects.named_colours import WORDS as SPELLED
from keras_caption.apps.objects.named_colours import named_colours
from keras_caption.apps.objects.object_colours import pixel_shares
from keras_caption.apps.objects.object_words import PATTERN, category_of
from keras_caption.apps.objects.person_names import PERSON, PERSON_NAMES
from keras_caption.apps.objects.person_names import values_of as values_of_person
from keras_caption.apps.objects.places import PLACES, is_at
from keras_caption.apps.objects.places import values_of as values_of_place
from keras_caption.apps.objects.thing_colours import (
    SAID,
    THING,
    has_colour,
    is_foremost,
    shares_of_shades,
)
from keras_caption.apps.objects.thing_colours import values_of as values_of_thing
from keras_caption.base.atomic import replacing
from keras_caption.base.progress import progress
from keras_caption.commands.command_line import Parser, names, start
from keras_caption.export.engine_cache import classifier_of, detector_of
from keras_caption.formats.coco_qa import read_coco_qa
from keras_caption.formats.engine_files import CLASSIFIER
from keras_caption.formats.vqa import find_vqa, read_vqa

FOLDS, FOLDINGS = 5, 3
# Penalties of the regressions.
COLOUR_DECAY, PLACE_DECAY, PERSON_DECAY, THING_DECAY = 100.0, 200.0, 600.0, 10.0
RIGHT = 0.9
DEVIATIONS = 0.84  # of the normal distribution, below which are 80 % of it
CONFIDENCE = 0.3  # least score of an object
UNCLEAR = "unclear"  # in files of what was seen
ANSWERED = 3  # people of ten who give an answer
ASKED = re.compile(
    rf"what (?:colou?r (?:is|are)|is the colou?r of) the (?P<noun>{PATTERN.pattern})\??"
)


def questions_of(folder):
    """Questions of VQA and COCO-QA: dict from image id to a list."""
    questions = collections.defaultdict(list)
    for files in find_vqa(folder).values():
        for question in read_vqa(*files):
            questions[question.image_id].append(question)
    for question in read_coco_qa(pathlib.Path(folder) / "cocoqa.json"):
        questions[question.image_id].append(question)
    return questions


def colours_asked(questions):
    """Colours of dogs, by the answers to questions about a photo: a list of sets."""
    colours = []
    for question in questions:
        match = ASKED.fullmatch(question.text.lower().strip())
        if match is None or category_of(match["noun"]) != DOG:
            continue
        counts = collections.Counter(question.answers)
        least = min(ANSWERED, len(question.answers))
        colours += [
            frozenset({SPELLED[answer]})
            for answer, count in counts.items()
            if answer in SPELLED and count >= least
        ]
    return colours


def colours_said(captions):
    """Colours of dogs, of captions that say one: a list of sets."""
    of_captions = [
        frozenset(colour for category, colour in named_colours(x) if category == DOG)
        for x in captions
    ]
    return [x for x in of_captions if x]


def colours_of(seen):
    """Colours of a dog that a person saw: a list of a set, empty if it is unclear.

    `None`, if nobody looked.
    """
    if seen is None:
        return None
    return [] if seen == UNCLEAR else [frozenset(seen.split(" and "))]


def said_of(name, seen, captions):
    """How many people give the persons of a photo a name, and another one.

    Args:
        name: str, one of `PERSON_NAMES`.
        seen: dict from a name to the cell of the file --seen, which counts as two.
        captions: list of str.

    Returns:
        A pair of int, or `None`: nobody says what they are.
    """
    if cell := seen.get(name):
        return {"yes": (2, 0), "no": (0, 2), "some": (1, 1), UNCLEAR: None}[cell]

    def count(words):
        return sum(bool(re.search(rf"\b(?:{words})\b", x.lower())) for x in captions)

    own = PERSON_NAMES[name]
    return (count(own.words), count(own.others)) if captions else None


def light_second_opinion(detector):
    """A second opinion on what a detector finds, both by LiteRT."""
    detector = kc.objects.LiteDetector(detector_of(detector), CONFIDENCE)
    classifier = kc.objects.LiteClassifier(classifier_of(pathlib.Path(CLASSIFIER)))
    return kc.objects.SecondOpinion(detector, classifier)


def stem_of(record):
    """The name of a record's photo without its suffix."""
    return pathlib.Path(record.name).stem


def measure(records, colours, is_read, coloured, second):
    """Measures photos.

    Args:
        records: Sequence of `PhotoRecord`.
        colours: Function of a record that returns the colours of dogs, a list of sets.
        is_read: Function of a record that returns whether its place is measured; of
            others, only dogs are to which people give a colour.
        coloured: dict from the name of a photo to a dict from category to colour.
        second: `SecondOpinion`.

    Returns:
        List of a tuple of colours and what tells them, of a photo's only dog; list of a
        tuple of a photo's name, its captions and what tells the places, see `values_of`
        of `keras_caption.apps.objects.places`; list of a tuple of these two, number of
        persons, and values of those that were classified; and list of a tuple of a
        thing's colour, its category and shares of colours.
    """
    dogs, photos, persons, things = [], [], [], []
    for record in progress(records, unit="photos"):
        seen = dict(coloured.get(stem_of(record), {}))
        said, has_place = colours_of(seen.pop(DOG, None)), is_read(record)
        if said is None:
            said = colours(record)
        if not has_place and not said and not seen:
            continue
        try:
            photo = record.read()
        except kc.InputError:
            continue
        pixels = second.to_pixels([photo])
        place = pixels["images"][0], pixels["extents"][0]
        found = second(pixels)
        objects = second.objects_of(found, 0)
        boxes = {DOG: [], PERSON: []}
        for i, x in enumerate(objects):
            boxes.get(x["category"], []).append((x["box"], found["box_classes"][0, i]))
        if said and len(boxes[DOG]) == 1:
            [(box, own)] = boxes[DOG]
            dogs.append((said, values_of_dog(own, pixel_shares(*place, box))))
        for category, colour in seen.items():
            own_boxes = [x["box"] for x in objects if x["category"] == category]
            if len(own_boxes) == 1 and has_colour(category, own_boxes[0]):
                shares = shares_of_shades(*place, own_boxes[0])
                things.append((colour, category, shares))
        if not has_place:
            continue
        classes, lower = found["classes"][0], found["lower_classes"][0]
        values = values_of_place(*place, classes, lower, objects)
        photos.append((stem_of(record), record.captions, values))
        values = [values_of_person(x, classes) for _, x in boxes[PERSON] if x.any()]
        if values:
            photo = stem_of(record), record.captions, len(boxes[PERSON])
            persons.append((*photo, np.array(values)))
    return dogs, photos, persons, things


def fit(values, labels, decay):
    """Logistic regression, of standardized values, with a penalty on the weights.

    Returns:
        Weights and, last, the bias, of the values as they are.
    """
    mean, scale = values.mean(axis=0), values.std(axis=0) + 1e-6
    x, signs = (values - mean) / scale, 2 * labels - 1

    def loss(weights):
        margins = signs * (x @ weights[:-1] + weights[-1])
        slopes = -signs * expit(-margins)
        value = np.logaddexp(0, -margins).sum() + decay / 2 * np.sum(weights[:-1] ** 2)
        return value, np.append(x.T @ slopes + decay * weights[:-1], slopes.sum())

    start = np.zeros(x.shape[1] + 1)
    best = minimize(loss, start, jac=True, method="L-BFGS-B").x
    weights = best[:-1] / scale
    return np.append(weights, best[-1] - mean @ weights)


def held_out_probabilities(values, labels, decay, photos, usable, foldings=FOLDINGS):
    """Probabilities of each row by regressions over the folds without its photo.

    Args:
        values, labels, decay: As in `fit`.
        photos: int `(rows,)`, the photo of each row, counted from 0.
        usable: bool `(rows,)`, whether a row is learnt from.
        foldings: int.

    Returns:
        float `(rows,)`, by the mean logit of so many foldings.
    """
    logits = np.zeros(len(values))
    for folding in range(foldings):
        order = np.random.default_rng(folding).permutation(photos.max() + 1)
        folds = order[photos] % FOLDS
        for fold in range(FOLDS):
            others = folds != fold
            learnt = others & usable
            weights = fit(values[learnt], labels[learnt], decay)
            logits[~others] += values[~others] @ weights[:-1] + weights[-1]
    return expit(logits / foldings)


def least_share(right):
    """The lower end of Wilson's interval of the share of those that are right."""
    count, share, variance = len(right), np.mean(right), DEVIATIONS**2
    centre = share + variance / (2 * count)
    width = np.sqrt(share * (1 - share) / count + variance / (4 * count**2))
    return (centre - DEVIATIONS * width) / (1 + variance / count)


def least_of(pairs, steps, few):
    """The least probability of which enough are right, and whether each of such is.

    Args:
        pairs: Sequence of pairs of a probability and whether a word is right.
        steps: Probabilities to try, in ascending order.
        few: int, number of pairs with fewer of which there is none.

    Returns:
        A pair of float and a list of bool, or `None`.
    """
    for least in steps:
        right = [is_right for p, is_right in pairs if p >= least]
        if len(right) < few:
            return None
        if least_share(right) >= RIGHT:
            return float(least), right
    return None


def row_of(kind, word, of, train, held_out, options):
    """The row of a word, or `None` if too few of those said are right.

    Args:
        train, held_out: Sequences of pairs of a probability and whether the word is
            right.
    """
    steps = np.linspace(0.5, 1, options.steps, endpoint=False)
    found = least_of(train, steps, options.few)
    if found is None:
        return None
    least, right = found
    others = [is_right for p, is_right in held_out if p >= least]
    shares = [float(np.mean(x)) if x else 0.0 for x in (right, others)]
    first, second = (round(x, 3) for x in shares)
    return [kind, word, of, round(least, 3), len(right), first, len(others), second]


def fitted_on(values, labels, decay, photos=None):
    """Fits a regression, and gives the probabilities of other photos.

    Args:
        values, labels: dict from bool, whether they are of the split train, to float
            `(rows, values)` and `(rows,)`; a label is NaN if nothing is learnt from it.
        decay: As in `fit`.
        photos: int `(rows,)`, the photo of each row of train; `None`, if each row is
            of another one.

    Returns:
        float16 weights, and a pair of probabilities: of the rows of train, each by the
        folds without it, and of the others.
    """
    usable = ~np.isnan(labels[True])
    if photos is None:
        photos = np.arange(len(usable))
    weights = fit(values[True][usable], labels[True][usable], decay).astype("float16")
    crossed = held_out_probabilities(values[True], labels[True], decay, photos, usable)
    others = expit(values[False] @ weights[:-1].astype(float) + weights[-1])
    return weights, (crossed, others)


def main(arguments):
    parser = Parser("experiments/details.py", __doc__)
    parser.add_argument("--detector", required=True)
    parser.add_argument("--photos", type=names, required=True, help="folders")
    parser.add_argument("--captions", type=names, required=True, help="a file of each")
    parser.add_argument(
        "--questions", required=True, help="folder of images, VQA and cocoqa.json"
    )
    parser.add_argument("--seen", help="file of what was seen in photos")
    parser.add_argument("--coloured", help="file of the colours of things")
    parser.add_argument("--few", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--output", required=True, help="folder")
    options = parser.parse_args(arguments)
    output = pathlib.Path(options.output)
    seen = {}
    if options.seen:
        with open(options.seen, newline="", encoding="utf-8") as file:
            seen = {row["photo"]: row for row in csv.DictReader(file)}
    coloured = collections.defaultdict(dict)
    if options.coloured:
        with open(options.coloured, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                coloured[row["photo"]][row["category"]] = row["colour"]
    second = light_second_opinion(options.detector)
    folder = pathlib.Path(options.questions)
    asked = questions_of(folder)
    described = [
        kc.prepare.records_of_photos(path, [captions])
        for path, captions in zip(options.photos, options.captions, strict=True)
    ]
    stems = {stem_of(x) for all_ in described for own in all_.values() for x in own}
    sources = [
        (
            kc.prepare.records_of_questions(
                folder / "images", [folder, folder / "cocoqa.json"]
            ),
            lambda record: colours_asked(asked[record.image_id]),
            lambda record: stem_of(record) in seen.keys() - stems,
        )
    ]
    for records in described:
        sources.append((records, lambda x: colours_said(x.captions), lambda _: True))
    measured = {True: ([], [], [], []), False: ([], [], [], [])}  # by is train
    for records, colours, is_read in sources:
        for split, of_split in records.items():
            found = measure(of_split, colours, is_read, coloured, second)
            for all_, own in zip(measured[split == "train"], found, strict=True):
                all_ += own
    dogs, photos, persons, things = (
        {is_train: own[i] for is_train, own in measured.items()} for i in range(4)
    )
    rows, weights = [], {}
    for of_words, own in (
        colour_rows(dogs, options),
        thing_rows(things, options),
        name_rows(persons, seen, options),
        place_rows(photos, seen, options),
    ):
        rows += of_words
        weights |= own
    write(output / "details", rows, weights)


def write(path, rows, weights):
    """Prints the table of words, and writes it and the weights of regressions."""
    print(kc.evaluation.markdown_table(list(Detail._fields), rows))
    table, arrays = path.with_suffix(".csv"), path.with_suffix(".npz")
    with replacing(table) as partial, open(partial, "w") as file:
        csv.writer(file, lineterminator="\n").writerows([Detail._fields, *rows])
    with replacing(arrays) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, **weights)


def colour_rows(dogs, options):
    """The rows of colours of dogs, and the weights of each."""
    rows, kept = [], {}
    values = {x: np.array([own for _, own in all_]) for x, all_ in dogs.items()}
    shares = {
        word: {
            is_train: np.array(
                [np.mean([is_called(word, x) for x in said]) for said, _ in all_]
            )
            for is_train, all_ in dogs.items()
        }
        for word in DOG_COLOURS
    }
    weights, probabilities = {}, {}
    for word in sorted(frozenset().union(*DOG_COLOURS.values())):
        labels = {x: (own >= 0.5).astype(float) for x, own in shares[word].items()}
        weights[word], probabilities[word] = fitted_on(values, labels, COLOUR_DECAY)
    for word, colours in DOG_COLOURS.items():
        pairs = []
        for i, right in enumerate(shares[word].values()):
            least = np.min([probabilities[x][i] for x in colours], axis=0)
            pairs.append(list(zip(least, right > 0, strict=True)))
        if row := row_of(COLOUR, word, DOG, *pairs, options):
            rows.append(row)
            kept |= {x: weights[x] for x in colours}
    return rows, kept


def thing_rows(things, options):
    """The rows of colours of things, and the weights of each."""
    rows, kept = [], {}
    for word in SAID:
        values = {
            is_train: np.array([values_of_thing(x, word, of) for _, of, x in all_])
            for is_train, all_ in things.items()
        }
        labels = {
            is_train: np.array(
                [np.nan if x == UNCLEAR else x == word for x, *_ in all_], float
            )
            for is_train, all_ in things.items()
        }
        weights, probabilities = fitted_on(values, labels, THING_DECAY)
        probabilities = [
            p * [is_foremost(x, word) for *_, x in things[is_train]]
            for is_train, p in zip((True, False), probabilities, strict=True)
        ]
        pairs = pairs_of(probabilities, labels)
        if row := row_of(COLOUR, word, THING, *pairs, options):
            rows.append(row)
            kept[f"{word} {THING}"] = weights
    return rows, kept


def pairs_of(probabilities, right):
    """The arguments of `row_of`, without those of which it is unknown who is right."""
    return [
        [x for x in zip(p, right[is_train], strict=True) if not np.isnan(x[1])]
        for is_train, p in zip((True, False), probabilities, strict=True)
    ]


def name_rows(persons, seen, options):
    """The rows of persons' names, and the weights of each."""
    rows, kept = [], {}
    for name, own_names in PERSON_NAMES.items():
        values, labels, photo, said = {}, {}, {}, {}
        for is_train, photos in persons.items():
            said[is_train] = [
                said_of(name, seen.get(stem, {}), captions)
                for stem, captions, *_ in photos
            ]
            of_split, photo[is_train] = [], []
            for i, (*_, of_persons) in enumerate(photos):
                own, others = said[is_train][i] or (0, 0)
                label = np.nan  # of persons that may have several names
                if own >= 2 and not others:
                    label = 1.0
                elif others >= 2 and not own:
                    label = 0.0
                of_split += [label] * len(of_persons)
                photo[is_train] += [i] * len(of_persons)
            values[is_train] = np.concatenate([x for *_, x in photos])
            labels[is_train] = np.array(of_split)
        photo = {is_train: np.array(x) for is_train, x in photo.items()}
        weights, (crossed, other) = fitted_on(values, labels, PERSON_DECAY, photo[True])
        pairs = {name: [[], []], own_names.plural: [[], []]}
        for i_split, probabilities in enumerate((crossed, other)):
            is_train = i_split == 0
            for i, (*_, count, of_persons) in enumerate(persons[is_train]):
                # In captions, all persons have the name.
                if said[is_train][i] is None or len(of_persons) < count:
                    continue
                own, others = said[is_train][i]
                is_right = own >= max(1, others + (count > 1))
                least = probabilities[photo[is_train] == i].min()
                word = own_names.plural if count > 1 else name
                pairs[word][i_split].append((least, is_right))
        for word, of_word in pairs.items():
            if row := row_of(NAME, word, PERSON, *of_word, options):
                rows.append(row)
                kept[name] = weights
    return rows, kept


def is_seen_at(place, seen, captions, least):
    """Whether a photo is at a place, or `None`: by what was seen, or else by captions.

    Args:
        place, captions, least: See `is_at`.
        seen: dict from place to the cell of the file --seen.
    """
    answers = {"yes": True, "no": False, UNCLEAR: None}
    if cell := seen.get(place):
        return answers[cell]
    return is_at(place, captions, least) if captions else None


def place_rows(photos, seen, options):
    """The rows of places, and the weights of each."""
    rows, kept = [], {}
    all_values = {x: np.array([own for *_, own in all_]) for x, all_ in photos.items()}
    for place, own_place in PLACES.items():
        values = {x: own[:, : own_place.inputs] for x, own in all_values.items()}
        right, labels = (
            {
                is_train: np.array(
                    [
                        is_seen_at(place, seen.get(name, {}), captions, least)
                        for name, captions, _ in all_
                    ],
                    float,
                )
                for is_train, all_ in photos.items()
            }
            for least in (1, 2)
        )
        weights, probabilities = fitted_on(values, labels, PLACE_DECAY)
        pairs = pairs_of(probabilities, right)
        if row := row_of(PLACE, place, "", *pairs, options):
            rows.append(row)
            kept[place] = weights
    return rows, kept


if __name__ == "__main__":
    start(main)
