r"""Counts what captions say of photos, and how often people say so too.

    keras-caption caption photos --detector yolox_nano.keras --output now.jsonl
    keras-caption caption photos --detector yolox_nano.keras --no-details \
        --output before.jsonl
    python experiments/said.py before.jsonl now.jsonl --captions dataset_flickr8k.json

Shares of captions that are linked to a colour, a finer name, a thing, a place of the
whole photo, or a relation of objects but for "with" and "next to"; and to any of these,
or to a place that objects imply, "detail". "Outdoors" and "indoors" are "general", and
neither places nor details. Shares of photos without a caption, and of
those with the three most frequent captions; mean numbers of words, and of linked words,
"content". "right" is the share of colours that one of the people gives to the same
category, among categories that somebody gives one; of places that one of them says; and
of persons' names that one of them gives, see `experiments/details.py`.
"""

import collections
import json
import pathlib
import re

import numpy as np

import keras_caption as kc
from keras_caption.apps.objects.description import NAME, OBJECT, PLACE
from keras_caption.apps.objects.person_names import PERSON_NAMES
from keras_caption.apps.objects.places import PLACES, is_at
from keras_caption.apps.prepare.listing import list_images
from keras_caption.commands.command_line import Parser, names, start

KINDS = ("colour", "name", "thing", "place", "relation")
GENERAL = {name for name, place in PLACES.items() if place.is_general}
VAGUE = {"with", "next", "near", "beside"} | GENERAL  # also relations of a list


def main(arguments):
    parser = Parser("experiments/said.py", __doc__)
    parser.add_argument("files", nargs="+", help="captions, in .jsonl")
    parser.add_argument("--captions", type=names, required=True)
    parser.add_argument("--split", type=names, help="only photos of these splits")
    options = parser.parse_args(arguments)
    references = {
        pathlib.Path(record.file_name).stem: record.captions
        for split, records in list_images(options.captions).items()
        for record in records
        if options.split is None or split in options.split
    }
    rows = [[path, *scores(path, references)] for path in options.files]
    columns = [*KINDS, "detail", "general", "none", "three", "words", "content"]
    columns += [f"{x} right" for x in ("colours", "places", "persons")]
    print(kc.evaluation.markdown_table(["", *columns], rows))


def scores(path, references):
    """The values of a row, in %, but for the mean numbers of words."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = [row for row in rows if pathlib.Path(row["photo"]).stem in references]
    kinds = [
        {
            x["kind"]
            for x in row["links"]
            if (x["kind"] != PLACE or not x["boxes"]) and x["word"] not in VAGUE
        }
        for row in rows
    ]
    shares = [np.mean([kind in own for own in kinds]) for kind in KINDS]
    detailed = [
        any(x["kind"] != OBJECT and x["word"] not in VAGUE for x in row["links"])
        for row in rows
    ]
    shares.append(np.mean(detailed))
    shares.append(
        np.mean([any(x["word"] in GENERAL for x in r["links"]) for r in rows])
    )
    captions = [row["caption"] for row in rows]
    counts = collections.Counter(filter(None, captions))
    shares.append(np.mean([not caption for caption in captions]))
    shares.append(sum(n for _, n in counts.most_common(3)) / len(captions))
    by_photo = {pathlib.Path(row["photo"]).stem: row for row in rows}
    texts = {photo: row["caption"] for photo, row in by_photo.items()}
    _, colours, _ = kc.evaluation.colour_agreement(texts, references)
    places = [
        is_at(name, references[photo])
        for photo, row in by_photo.items()
        for name, place in PLACES.items()
        if row["caption"].endswith(f" {place.phrase}")
        and any(x["kind"] == PLACE and not x["boxes"] for x in row["links"])
    ]
    places = [x for x in places if x is not None]
    persons = [
        any(re.search(rf"\b(?:{own.words})\b", x.lower()) for x in references[photo])
        for photo, row in by_photo.items()
        for link in row["links"]
        for name, own in PERSON_NAMES.items()
        if link["kind"] == NAME and link["word"] in (name, own.plural)
    ]
    words = np.mean([len(caption.split()) for caption in captions if caption])
    content = np.mean([len(row["links"]) for row in rows if row["caption"]])
    right = [colours, *(np.mean(x) if x else 0.0 for x in (places, persons))]
    cells = [*shares, words / 100, content / 100, *right]
    return [round(100 * float(x), 1) for x in cells]


if __name__ == "__main__":
    start(main)
