r"""Fits the words that measurements of a photo admit: colours, and places.

    python experiments/details.py --detector yolox_nano.keras \
        --photos flickr8k_1000/images,coco_mini/val2017 \
        --captions dataset_flickr8k.json,karpathy_split.json \
        --questions coco_questions_photos --output keras_caption/features

A colour of a detected object is right if a caption of the photo gives it to the same
category, or it is the answer to a question for the color of that category: of VQA by
three of ten people or more, of COCO-QA. Objects whose colour nobody says are left out.
A place is right if one of five captions names it; the classifier of places, a logistic
regression over the logarithms of ImageNet's probabilities, learns from those that two
name.

For each word, and of colours for each group of categories, the least probability is the
smallest of --steps from 0.5 at which 90 % are right and --few or more are said, on
photos of the split train. A word without one is left out. Prints, and writes as
`details.csv`, these words, beside the shares on photos of the other splits;
`places.npz` has the weights of the classifier.
"""

import collections
import csv
import pathlib
import re

import numpy as np
from PIL import Image
from scipy.optimize import minimize
from scipy.special import expit

import keras_caption as kc
from keras_caption.atomic import replacing
from keras_caption.commands.command_line import Parser, names, start
from keras_caption.compilation import compile_function
from keras_caption.evaluation.named_colours import WORDS as SPELLED
from keras_caption.evaluation.named_colours import named_colours
from keras_caption.features.efficientnet_lite import (
    IMAGE_SIZE,
    load_efficientnet_lite,
    weights_path,
)
from keras_caption.formats.coco_qa import read_coco_qa
from keras_caption.formats.torch_files import read_torch
from keras_caption.formats.vqa import find_vqa, read_vqa
from keras_caption.objects.details import COLOUR, PLACE, Detail, group_of
from keras_caption.objects.object_colours import likely_colour
from keras_caption.objects.object_words import PATTERN, category_of
from keras_caption.objects.places import PLACES, class_logits, colours_of_bands, says
from keras_caption.progress import progress

FOLDS = 5
# Penalties of the regressions over classes, and over pixels.
DECAY = {False: 100.0, True: 20.0}
RIGHT = 0.9
ANSWERED = 3  # people of ten who give an answer
ASKED = re.compile(
    rf"what (?:colou?r (?:is|are)|is the colou?r of) the (?P<noun>{PATTERN.pattern})\??"
)


def colours_asked(folder):
    """Colours of categories by answers: dict from image id to a set of pairs."""
    colours = collections.defaultdict(set)
    questions = [
        question for files in find_vqa(folder).values() for question in read_vqa(*files)
    ]
    questions += read_coco_qa(pathlib.Path(folder) / "cocoqa.json")
    for question in questions:
        match = ASKED.fullmatch(question.text.lower().strip())
        if match is None:
            continue
        counts = collections.Counter(question.answers)
        least = min(ANSWERED, len(question.answers))
        colours[question.image_id] |= {
            (category_of(match["noun"]), SPELLED[answer])
            for answer, count in counts.items()
            if answer in SPELLED and count >= least
        }
    return colours


def colours_said(captions):
    """Pairs of category and colour of captions."""
    return set().union(*map(named_colours, captions))


def measure(records, colours, detector, classify):
    """Measures photos.

    Args:
        records: Sequence of `PhotoRecord`.
        colours: Function of a record that returns pairs of category and colour.
        detector: `ObjectDetector`.
        classify: Function of pixels to ImageNet's probabilities, or `None`.

    Returns:
        List of a tuple of group, word, probability and bool, whether a colour is right;
        and a list of a tuple of captions, probabilities of classes and colours of
        bands.
    """
    detect = compile_function(detector, detector.variables)
    coloured, photos = [], []
    for record in progress(records, unit="photos"):
        try:
            photo = record.read()
        except kc.InputError:
            continue
        pixels = {x: np.array(y) for x, y in detector.to_pixels([photo]).items()}
        place = pixels["images"][0], pixels["extents"][0]
        said = colours(record)
        objects = []
        if said:
            found = {name: np.array(x) for name, x in detect(pixels).items()}
            objects = detector.objects_of(found, 0)
        for category in {category for category, _ in said}:
            own = [x["box"] for x in objects if x["category"] == category]
            measured = [likely_colour(*place, box, category) for box in own]
            if len({word for word, _ in measured}) == 1:  # as for captions
                word, least = measured[0][0], min(x for _, x in measured)
                is_right = (category, word) in said
                coloured.append((group_of(category), word, least, is_right))
        if classify is not None:
            photos.append((record.captions, classify(photo), colours_of_bands(*place)))
    return coloured, photos


def classifier():
    """A function from pixels to ImageNet's probabilities, of EfficientNet-Lite2."""
    backbone, _ = load_efficientnet_lite()
    tensors = read_torch(weights_path())
    weights, bias = np.array(tensors["_fc.weight"]), np.array(tensors["_fc.bias"])
    network = compile_function(backbone, backbone.variables)

    def classify(pixels):
        image = Image.fromarray(pixels).resize((IMAGE_SIZE, IMAGE_SIZE), Image.BICUBIC)
        x = (np.asarray(image, "float32")[None] - 127) / 128
        logits = np.array(network(x)).mean(axis=(1, 2))[0] @ weights.T + bias
        shares = np.exp(logits - logits.max())
        return shares / shares.sum()

    return classify


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


def held_out_probabilities(values, labels, decay):
    """Probabilities of each photo by the regression over four fifths without it."""
    folds = np.arange(len(values)) % FOLDS
    logits = np.zeros(len(values))
    for fold in range(FOLDS):
        others = folds != fold
        weights = fit(values[others], labels[others], decay)
        logits[~others] = values[~others] @ weights[:-1] + weights[-1]
    return expit(logits)


def row_of(kind, word, of, train, held_out, options):
    """The row of a word, or `None` if too few of those said are right.

    Args:
        train, held_out: Sequences of pairs of a probability and whether the word is
            right.
    """
    for least in np.linspace(0.5, 1, options.steps, endpoint=False):
        right = [is_right for p, is_right in train if p >= least]
        if len(right) < options.few:
            return None
        if np.mean(right) >= RIGHT:
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
    detector = kc.objects.load_detector(options.detector)
    classify = classifier()
    coloured, photos = {True: [], False: []}, {True: [], False: []}  # by is train
    folder = pathlib.Path(options.questions)
    asked = colours_asked(folder)
    sources = [
        (
            kc.prepare.records_of_questions(
                folder / "images", [folder, folder / "cocoqa.json"]
            ),
            lambda record: asked.get(record.image_id, ()),
            None,
        )
    ]
    for path, captions in zip(options.photos, options.captions, strict=True):
        records = kc.prepare.records_of_photos(path, [captions])
        sources.append((records, lambda x: colours_said(x.captions), classify))
    for records, colours, of_photo in sources:
        for split, of_split in records.items():
            of_split = [x for x in of_split if of_photo or colours(x)]
            measured = measure(of_split, colours, detector, of_photo)
            coloured[split == "train"] += measured[0]
            photos[split == "train"] += measured[1]
    rows = colour_rows(coloured, options)
    of_places, weights = place_rows(photos, options)
    rows += of_places
    print(kc.evaluation.markdown_table(list(Detail._fields), rows))
    output = pathlib.Path(options.output)
    with replacing(output / "details.csv") as partial, open(partial, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([Detail._fields, *rows])
    with replacing(output / "places.npz") as partial, open(partial, "wb") as file:
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


def place_rows(photos, options):
    """The rows of places, and the weights of each."""
    rows, kept = [], {}
    for name, place in PLACES.items():
        values, said = {}, {}
        for is_train, all_ in photos.items():
            said[is_train] = np.array(
                [
                    sum(says(name, caption) for caption in captions)
                    for captions, *_ in all_
                ]
            )
            values[is_train] = np.array(
                [bands if place.by_pixels else class_logits(x) for _, x, bands in all_]
            )
        decay = DECAY[place.by_pixels]
        labels = (said[True] >= 2).astype(float)
        weights = fit(values[True], labels, decay).astype("float16")
        held_out = expit(values[False] @ weights[:-1].astype(float) + weights[-1])
        pairs = [
            list(zip(p, said[is_train] >= 1, strict=True))
            for is_train, p in (
                (True, held_out_probabilities(values[True], labels, decay)),
                (False, held_out),
            )
        ]
        if row := row_of(PLACE, name, "", *pairs, options):
            rows.append(row)
            kept[name] = weights
    return rows, kept


if __name__ == "__main__":
    start(main)
