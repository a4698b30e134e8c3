r"""Fits the words that measurements of a photo admit: colours, places, persons' names.

    python experiments/details.py --detector yolox_nano.keras \
        --photos flickr8k_1000/images,coco_mini/val2017 \
        --captions dataset_flickr8k.json,karpathy_split.json \
        --questions coco_questions_photos --output keras_caption/objects

A colour of a detected object is right if a caption of the photo gives it to the same
category, or it is the answer to a question for the color of that category: of VQA by
three of ten people or more, of COCO-QA. Objects whose colour nobody says are left out.
A place is right if one of five captions names it, and a person's name if one does, and
as many do as give another; of several detected persons, who all have the name, if more
do than give another.
Logistic regressions over the logarithms of ImageNet's probabilities, and of places over
colours, learn from what two captions say and, of persons, from photos of which no
caption gives another name.

For each word, and of colours for each group of categories, the least probability is the
smallest of --steps from 0.5 at which 90 % are right and --few or more are said, on
photos of the split train; of regressions, with one more that is wrong. A word without
one is left out. Prints, and writes as `details.csv`, these words, beside the shares on
photos of the other splits; `details.npz` has the weights of the regressions.
"""

import collections
import csv
import pathlib
import re

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

import keras_caption as kc
from keras_caption.atomic import replacing
from keras_caption.commands.command_line import Parser, names, start
from keras_caption.formats.coco_qa import read_coco_qa
from keras_caption.formats.engine_files import CLASSIFIER
from keras_caption.formats.vqa import find_vqa, read_vqa
from keras_caption.objects.details import COLOUR, NAME, PLACE, Detail, group_of
from keras_caption.objects.named_colours import WORDS as SPELLED
from keras_caption.objects.named_colours import named_colours
from keras_caption.objects.object_colours import likely_colour
from keras_caption.objects.object_words import PATTERN, category_of
from keras_caption.objects.person_names import PERSON, PERSON_NAMES
from keras_caption.objects.person_names import values_of as values_of_person
from keras_caption.objects.places import PLACES, says
from keras_caption.objects.places import values_of as values_of_place
from keras_caption.progress import progress
from keras_caption.serving.engine_cache import classifier_of, detector_of

FOLDS = 5
# Penalties of the regressions: of places by pixels alone, of others, and of persons.
PIXELS_DECAY, PLACE_DECAY, PERSON_DECAY = 20.0, 200.0, 600.0
RIGHT = 0.9
CONFIDENCE = 0.3  # least score of an object
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
    """Pairs of category and colour, by the answers to questions about a photo."""
    colours = set()
    for question in questions:
        match = ASKED.fullmatch(question.text.lower().strip())
        if match is None:
            continue
        counts = collections.Counter(question.answers)
        least = min(ANSWERED, len(question.answers))
        colours |= {
            (category_of(match["noun"]), SPELLED[answer])
            for answer, count in counts.items()
            if answer in SPELLED and count >= least
        }
    return colours


def colours_said(captions):
    """Pairs of category and colour of captions."""
    return set().union(*map(named_colours, captions))


def said_of(captions):
    """How many captions give persons each name, and another one: dict of pairs."""

    def count(words):
        return sum(bool(re.search(rf"\b(?:{words})\b", x.lower())) for x in captions)

    return {
        name: (count(own.words), count(own.others))
        for name, own in PERSON_NAMES.items()
    }


def light_second_opinion(detector):
    """A second opinion on what a detector finds, both by LiteRT."""
    detector = kc.objects.LiteDetector(detector_of(detector), CONFIDENCE)
    classifier = kc.objects.LiteClassifier(classifier_of(pathlib.Path(CLASSIFIER)))
    return kc.objects.SecondOpinion(detector, classifier)


def measure(records, colours, described, second):
    """Measures photos.

    Args:
        records: Sequence of `PhotoRecord`.
        colours: Function of a record that returns pairs of category and colour.
        described: bool, whether records have captions; of others, only those are
            measured in which people give something a colour.
        second: `SecondOpinion`.

    Returns:
        List of a tuple of group, word, probability and bool, whether a colour is right;
        list of a tuple of captions and what tells the places, see
        `keras_caption.objects.places.values_of`; and list of a tuple of what is said of
        persons, see `said_of`, number of persons and values of those that were
        classified.
    """
    coloured, photos, persons = [], [], []
    for record in progress(records, unit="photos"):
        said = colours(record)
        if not described and not said:
            continue
        try:
            photo = record.read()
        except kc.InputError:
            continue
        pixels = second.to_pixels([photo])
        place = pixels["images"][0], pixels["extents"][0]
        found = second(pixels)
        objects = second.objects_of(found, 0)
        for category in {category for category, _ in said}:
            own = [x["box"] for x in objects if x["category"] == category]
            measured = [likely_colour(*place, box, category) for box in own]
            if len({word for word, _ in measured}) == 1:  # as for captions
                word, least = measured[0][0], min(x for _, x in measured)
                is_right = (category, word) in said
                coloured.append((group_of(category), word, least, is_right))
        if not described:
            continue
        classes = found["classes"][0]
        photos.append((record.captions, values_of_place(*place, classes)))
        boxes = [
            found["box_classes"][0, i]
            for i, x in enumerate(objects)
            if x["category"] == PERSON
        ]
        values = [values_of_person(x, classes) for x in boxes if x.any()]
        if values:
            said = said_of(record.captions)
            persons.append((said, len(boxes), np.array(values)))
    return coloured, photos, persons


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


def held_out_probabilities(values, labels, decay, folds, usable):
    """Probabilities of each row by the regression over the folds without it.

    Args:
        values, labels, decay: As in `fit`.
        folds: int `(rows,)`, the fold of each row.
        usable: bool `(rows,)`, whether a row is learnt from.
    """
    logits = np.zeros(len(values))
    for fold in range(FOLDS):
        others = folds != fold
        learnt = others & usable
        weights = fit(values[learnt], labels[learnt], decay)
        logits[~others] = values[~others] @ weights[:-1] + weights[-1]
    return expit(logits)


def row_of(kind, word, of, train, held_out, options, doubt=0):
    """The row of a word, or `None` if too few of those said are right.

    Args:
        train, held_out: Sequences of pairs of a probability and whether the word is
            right.
        doubt: int, wrong ones that are counted beside those of `train`.
    """
    for least in np.linspace(0.5, 1, options.steps, endpoint=False):
        right = [is_right for p, is_right in train if p >= least]
        if len(right) < options.few:
            return None
        if sum(right) >= RIGHT * (len(right) + doubt):
            others = [is_right for p, is_right in held_out if p >= least]
            share = round(float(np.mean(others)), 3) if others else 0.0
            mean = round(float(np.mean(right)), 3)
            return [
                kind,
                word,
                of,
                round(least, 3),
                len(right),
                mean,
                len(others),
                share,
            ]
    return None


def main(arguments):
    parser = Parser("experiments/details.py", __doc__)
    parser.add_argument("--detector", required=True)
    parser.add_argument("--photos", type=names, required=True, help="folders")
    parser.add_argument("--captions", type=names, required=True, help="a file of each")
    parser.add_argument(
        "--questions", required=True, help="folder of images, VQA and cocoqa.json"
    )
    parser.add_argument("--few", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--output", required=True, help="folder")
    options = parser.parse_args(arguments)
    output = pathlib.Path(options.output)
    second = light_second_opinion(options.detector)
    folder = pathlib.Path(options.questions)
    asked = questions_of(folder)
    sources = [
        (
            kc.prepare.records_of_questions(
                folder / "images", [folder, folder / "cocoqa.json"]
            ),
            lambda record: colours_asked(asked[record.image_id]),
            False,
        )
    ]
    for path, captions in zip(options.photos, options.captions, strict=True):
        records = kc.prepare.records_of_photos(path, [captions])
        sources.append((records, lambda x: colours_said(x.captions), True))
    measured = {True: ([], [], []), False: ([], [], [])}  # by is train
    for records, colours, described in sources:
        for split, of_split in records.items():
            found = measure(of_split, colours, described, second)
            for all_, own in zip(measured[split == "train"], found, strict=True):
                all_ += own
    coloured, photos, persons = (
        {is_train: own[i] for is_train, own in measured.items()} for i in range(3)
    )
    rows, weights = colour_rows(coloured, options), {}
    for fitted in (name_rows(persons, options), place_rows(photos, options)):
        rows += fitted[0]
        weights |= fitted[1]
    print(kc.evaluation.markdown_table(list(Detail._fields), rows))
    with replacing(output / "details.csv") as partial, open(partial, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([Detail._fields, *rows])
    with replacing(output / "details.npz") as partial, open(partial, "wb") as file:
        np.savez_compressed(file, **weights)


def colour_rows(coloured, options):
    """The rows of colours, by group of categories, of which counts allow one."""
    pairs = sorted({(group, word) for group, word, _, _ in coloured[True]})
    rows = []
    for of, word in pairs:
        own = {
            is_train: [(p, right) for *pair, p, right in all_ if pair == [of, word]]
            for is_train, all_ in coloured.items()
        }
        rows.append(row_of(COLOUR, word, of, own[True], own[False], options))
    return [row for row in rows if row]


def name_rows(persons, options):
    """The rows of persons' names, and the weights of each."""
    rows, kept = [], {}
    for name, own_names in PERSON_NAMES.items():
        samples = {}
        for is_train, photos in persons.items():
            values, labels, photo = [], [], []
            for i, (said, _, of_persons) in enumerate(photos):
                own, others = said[name]
                label = np.nan  # of persons that may have several names
                if own >= 2 and not others:
                    label = 1.0
                elif others >= 2 and not own:
                    label = 0.0
                values.append(of_persons)
                labels += [label] * len(of_persons)
                photo += [i] * len(of_persons)
            samples[is_train] = [
                np.concatenate(values),
                *map(np.array, (labels, photo)),
            ]
        values, labels, photo = samples[True]
        usable = ~np.isnan(labels)
        weights = fit(values[usable], labels[usable], PERSON_DECAY).astype("float16")
        crossed = held_out_probabilities(
            values, labels, PERSON_DECAY, photo % FOLDS, usable
        )
        other = samples[False][0] @ weights[:-1].astype(float) + weights[-1]
        pairs = {name: [[], []], own_names.plural: [[], []]}
        for i_split, probabilities in enumerate((crossed, expit(other))):
            is_train = i_split == 0
            for i, (said, count, of_persons) in enumerate(persons[is_train]):
                if len(of_persons) < count:
                    continue  # as for captions, in which all have the name
                own, others = said[name]
                is_right = own >= max(1, others + (count > 1))
                least = probabilities[samples[is_train][2] == i].min()
                word = own_names.plural if count > 1 else name
                pairs[word][i_split].append((least, is_right))
        for word, of_word in pairs.items():
            if row := row_of(NAME, word, PERSON, *of_word, options, doubt=1):
                rows.append(row)
                kept[name] = weights
    return rows, kept


def place_rows(photos, options):
    """The rows of places, and the weights of each."""
    rows, kept = [], {}
    for name, place in PLACES.items():
        values, said = {}, {}
        for is_train, all_ in photos.items():
            said[is_train] = np.array(
                [sum(says(name, caption) for caption in texts) for texts, _ in all_]
            )
            values[is_train] = np.array([own[place.by_pixels] for _, own in all_])
        decay = PIXELS_DECAY if place.by_pixels else PLACE_DECAY
        labels = (said[True] >= 2).astype(float)
        weights = fit(values[True], labels, decay).astype("float16")
        folds = np.arange(len(labels)) % FOLDS
        crossed = held_out_probabilities(
            values[True], labels, decay, folds, np.ones(len(labels), bool)
        )
        other = expit(values[False] @ weights[:-1].astype(float) + weights[-1])
        pairs = [
            list(zip(p, said[is_train] >= 1, strict=True))
            for is_train, p in ((True, crossed), (False, other))
        ]
        doubt = 0 if place.by_pixels else 1
        if row := row_of(PLACE, name, "", *pairs, options, doubt):
            rows.append(row)
            kept[name] = weights
    return rows, kept


if __name__ == "__main__":
    start(main)
