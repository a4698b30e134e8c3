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

With --shares FILE, writes the table of evidence, `evidence.csv` of
`keras_caption/apps/objects`, with the number of annotated images that have what each
row needs, and the share of these in which a person says the row's word, or another
word with the same meaning.
Words for places and people are in the table if that share is 0.8, postures if it is 0.7
of the captions with any posture.
"""

import collections
import csv
import re

import numpy as np
from keras_caption.objects import CATEGORIES

import keras_caption as kc
from experiments.detected import (
    annotated,
    batches_of,
    captions_of,
    detected,
    read_photos,
)
from keras_caption.apps.objects.evidence_rules import BOXES, EvidenceRules, is_implied
from keras_caption.apps.objects.evidence_table import COLUMNS, NOUNS, read_table
from keras_caption.apps.objects.object_words import (
    PATTERN,
    category_of,
    mentions,
    said_several,
)
from keras_caption.apps.objects.place_words import PLACE_WORDS, names_of
from keras_caption.commands.command_line import Parser, names, start

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
    parser.add_argument("--shares", help="file for the table of evidence")
    options = parser.parse_args(arguments)
    records, photos = read_photos(options)
    there = annotated(records, options.instances)
    objects = [[CATEGORIES[x.argmax()] for x in r if x.any()] for r, _ in there]
    if options.shares:
        write_shares(options.shares, records, there)
        return
    model = kc.models.load(options.model)
    inputs = there
    if options.detector:
        detector = kc.objects.load_detector(options.detector, 0.3)
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
    if any(words & names_of(place) and not said & {*place} for place in PLACE_WORDS):
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


def write_shares(path, records, inputs):
    """Writes the table of evidence with shares of photos, see the top."""
    rows = read_table()
    words = {x for row in rows for x in row.word.strip("(").replace(")", "").split()}
    vocabulary = kc.text.Vocabulary(sorted(words))
    evidence = kc.objects.ObjectEvidence(vocabulary)
    rules = EvidenceRules(vocabulary, CATEGORIES)
    said = [" | ".join(record.captions).lower() for record in records]
    said = [f" {' '.join(re.findall('[a-z]+|[|]', text))} " for text in said]
    read = []
    for batch in batches_of(inputs):
        batch["region_mask"] = batch["regions"].any(axis=-1)
        of_batch = {name: np.array(x) for name, x in evidence.read(batch).items()}
        size = len(batch["boxes"])
        read += [{name: x[i] for name, x in of_batch.items()} for i in range(size)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            having = [i for i, x in enumerate(read) if holds(row, rules, x)]
            group = synonyms(row, rows)
            right = [any(f" {x} " in said[i] for x in group) for i in having]
            share = f"{np.mean(right):.2f}" if having else ""
            writer.writerow([*row[:5], share, len(having) or ""])


def synonyms(row, rows):
    """Words by which people may say what a row says, a set of str."""
    words = {row.word}
    if row.kind in NOUNS or row.names not in CATEGORIES:  # a player is no other person
        words |= {x.word for x in rows if row.names and x.names == row.names}
    for place in PLACE_WORDS:
        if words & {*place[:3]}:
            words |= {*place}
    return words


def holds(row, rules, read):
    """Whether an image has the objects that a row needs, whatever is said of it.

    Args:
        row: `Row` of the table.
        rules: `EvidenceRules`.
        read: dict, what `ObjectEvidence.read` returns, of one image.
    """
    related, relations = read["related"], [*rules.relations]
    if row.kind in NOUNS and row.condition != "never":
        objects = read["boxes"][CATEGORIES.index(row.names)]
        return objects > (row.kind == "several")
    if row.word in rules.numbers:
        least, most = rules.numbers[row.word]
        return np.any((read["several"] >= least) & (read["boxes"] <= most))
    if match := BOXES.fullmatch(row.condition):
        first, second = (rules.members(x, row) for x in match.groups()[1:])
        pairs = related[1:, 1 + relations.index(row.names)]
        return pairs[np.ix_(first, second)].any()
    if not is_implied(row):
        return False

    def has(atom):
        if isinstance(atom, int):
            return related[0, 0, atom]
        first, relation, second = atom
        return related[1 + first, 1 + relations.index(relation), second]

    return any(atoms and all(map(has, atoms)) for atoms in rules.alternatives(row))


if __name__ == "__main__":
    start(main)
