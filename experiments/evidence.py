r"""Counts unsupported statements of captions: places, numbers and company.

    python experiments/evidence.py saved_models/ngsan_coco.keras --split test \
        --captions karpathy_split.json --instances instances_val2017.json
    python experiments/evidence.py saved_models/ngsan_coco.keras \
        --detector yolox_nano.keras --photos train2017 \
        --captions captions_train2017.json --instances instances_train2017.json

A statement is unsupported in these cases:

- place: the caption names a place, such as a street, and no person who captioned the
  image has a word for it;
- number: the caption has a plural or a number, such as "two", which differs from the
  number of annotated objects, and no person says the same;
- company: the caption names a category that is neither annotated nor named by a
  person, or says "each other" about a single object.

Prints the shares of such captions in %, with the option `evidence` of decoding and
without, for annotated boxes or, with --detector, for detected ones. Also prints the
share of named categories that are annotated.

With --shares, prints for each alternative of `keras_caption.features.object_evidence`
the number of images that have it, and the share of these in which people say the words.
"""

import collections
import re

import numpy as np

import keras_caption as kc
from experiments.detected import annotated, captions_of, detected, read_photos
from keras_caption.commands.command_line import Parser, names, start
from keras_caption.features import CATEGORIES
from keras_caption.features.object_evidence import DONE, IMPLIED
from keras_caption.features.object_words import (
    PATTERN,
    category_of,
    mentions,
    said_several,
)
from keras_caption.features.place_words import PLACES, names_of

NUMBERS = {"two": 2, "couple": 2, "three": 3, "four": 4, "group": 3, "herd": 3}
SHOWN = ("places", "numbers", "company", "any")


def main(arguments):
    parser = Parser("experiments/evidence.py", __doc__)
    parser.add_argument("model", help="saved captioner, or the folder of a run")
    parser.add_argument("--photos", help="folder of photos, for --detector")
    parser.add_argument("--detector", help="as of `keras-caption caption`")
    parser.add_argument("--captions", type=names, required=True)
    parser.add_argument("--instances", type=names, required=True)
    parser.add_argument("--split", type=names, help="splits of the captions")
    parser.add_argument("--shares", action="store_true")
    options = parser.parse_args(arguments)
    records, photos = read_photos(options)
    there = annotated(records, options.instances)
    objects = [[CATEGORIES[x.argmax()] for x in r if x.any()] for r, _ in there]
    model = kc.models.load(options.model)
    if options.shares:
        print_shares(model, records, there)
        return
    inputs = there
    if options.detector:
        detector = kc.features.load_detector(options.detector, 0.3)
        inputs = detected(detector, photos)
    kept = [i for i, (regions, _) in enumerate(inputs) if regions.any()]
    records, objects, inputs = (
        [x[i] for i in kept] for x in (records, objects, inputs)
    )
    without = captions_of(inputs, model, evidence=False, length_penalty=0.0)
    saved = captions_of(inputs, model)
    kept = [i for i, texts in enumerate(zip(without, saved, strict=True)) if all(texts)]
    print(f"\n{len(saved) - len(kept):,} images have no caption")
    records, objects, without, saved = (
        [x[i] for i in kept] for x in (records, objects, without, saved)
    )
    references = {r.image_id: r.captions for r in records}
    rows = []
    for name, texts in ("without evidence", without), ("as saved", saved):
        faults = [
            unsupported(text, record.captions, annotated)
            for text, record, annotated in zip(texts, records, objects, strict=True)
        ]
        shares = [np.mean([kind in kinds for kinds in faults]) for kind in SHOWN[:-1]]
        shares.append(np.mean([bool(kinds) for kinds in faults]))
        captions = {r.image_id: x for r, x in zip(records, texts, strict=True)}
        cider_d = kc.evaluation.cider(captions, references)
        named = [
            category in annotated
            for text, annotated in zip(texts, objects, strict=True)
            for category in {x for _, x in mentions(text)}
        ]
        words = np.mean([len(text.split()) for text in texts])
        shares += [np.mean(named), cider_d]
        rows.append([name, *(f"{100 * x:.1f}" for x in shares), f"{words:.1f}"])
    print(f"{len(records):,} images\n")
    header = ["", *SHOWN, "annotated of named", "CIDEr-D", "words"]
    print(kc.evaluation.markdown_table(header, rows))


def unsupported(text, references, objects):
    """The kinds of unsupported statements of a caption, a set of str.

    Args:
        text: str, the caption.
        references: List of str, people's captions.
        objects: List of the category of each annotated object.
    """
    kinds, words = set(), {*text.split()}
    counts = collections.Counter(objects)
    # A table is an object and also a place.
    said = words_of([*references, *("table" for x in counts if x == "dining table")])
    if any(words & names_of(place) and not said & {*place} for place in PLACES):
        kinds.add("places")
    several = set().union(*map(said_several, references))
    if any(counts[x] < 2 and x not in several for x in said_several(text)):
        kinds.add("numbers")
    for match in re.finditer(
        rf"\b({'|'.join(NUMBERS)})(?: of)? ({PATTERN.pattern})", text
    ):
        least, category = NUMBERS[match[1]], category_of(match[2])
        exact = match[1] in ("two", "couple", "three", "four")
        is_right = counts[category] == least if exact else counts[category] >= least
        if not is_right and match[1] not in said:
            kinds.add("numbers")
    named = {category for _, category in mentions(text)}
    by_people = {c for reference in references for _, c in mentions(reference)}
    if named - {*objects} - by_people:
        kinds.add("company")
    if "each other" in text and not any(counts[x] > 1 or x in several for x in named):
        kinds.add("company")
    return kinds


def words_of(captions):
    return {*re.findall(r"[a-z]+", " ".join(captions).lower())}


def print_shares(model, records, inputs):
    """Prints how often people say the words that an alternative of evidence implies."""
    evidence = kc.decoding.ObjectEvidence(model.vocabulary)
    said = [words_of(record.captions) for record in records]
    rows = []
    read = [evidence.read(r[None], b[None], r.any(axis=1)[None]) for r, b in inputs]
    complete = [evidence.alternatives(x["counts"], x["related"]) for x in read]
    alternatives = [(x, y) for x, of in {**IMPLIED, **DONE}.items() for y in of]
    columns = np.concatenate(complete).T
    for (words, text), column in zip(alternatives, columns, strict=True):
        having = np.flatnonzero(column)
        group = {*words.split()}
        for place in PLACES:
            if group & {*place[:3]}:
                group |= {*place}
        share = np.mean([bool(said[i] & group) for i in having]) if len(having) else 0
        rows.append([words, text, f"{100 * share:.0f}", len(having)])
    header = ["words", "evidence", "said, %", "images"]
    print(kc.evaluation.markdown_table(header, rows))


if __name__ == "__main__":
    start(main)
