r"""Scores captions of annotated objects, and of objects that are detected in photos.

    python experiments/detected.py saved_models/detected_* --detector yolox_nano.keras \
        --photos train2017 --captions captions_train2017.json \
        --instances instances_train2017.json --confidence 0.2,0.3,0.4

The runs must be on `coco_objects`. Runs that differ in their seed only share a row of
means ± standard deviations, in %. Objects in captions are scored by
`keras_caption.evaluation.object_scores`; CHAIR needs annotated objects.
"log-probability" is that of a token of people's captions, in the mean. "several" is
the share of captions with a plural for a category of which there is one object, and
"rightly" the share of these in which a person has a plural too. Photos that are missing
or cannot be read are counted and skipped. Without --detector, captions of annotated
objects are scored, and no photos are read:

    python experiments/detected.py saved_models/detected_* --split val \
        --captions karpathy_split.json --instances instances_val2017.json
"""

import numpy as np

import keras_caption as kc
from experiments.papers.finished import distinctions, find_runs, label_of
from experiments.papers.sections import text_of
from keras_caption.apps.objects.object_words import said_several, several_of_one
from keras_caption.apps.prepare.listing import list_images
from keras_caption.base.errors import NoTextError
from keras_caption.base.progress import progress
from keras_caption.commands.command_line import (
    Parser,
    add_decoding,
    decoding_of,
    names,
    start,
)
from keras_caption.datasets.coco_objects import object_example
from keras_caption.decoding import compile_function
from keras_caption.formats.coco import read_instances
from keras_caption.tasks import Captioning, of_run

BATCH_SIZE = 50
SHOWN = ("BLEU-4", "METEOR", "CIDEr-D", "precision", "recall", "repeated")
LIKELIHOOD = "log-probability"  # of a token of people's captions
SEVERAL = ("several", "rightly")
CHAIR = ("CHAIR-i", "CHAIR-s")
# Factors and digits of columns that are no percentages.
PRINTED = {LIKELIHOOD: (1, 3)}


def main(arguments):
    parser = Parser("experiments/detected.py", __doc__, imports=True)
    parser.add_argument("runs", nargs="+", help="folders that have finished runs")
    parser.add_argument("--photos", help="folder of photos")
    parser.add_argument(
        "--captions", type=names, required=True, help="files of their captions"
    )
    parser.add_argument(
        "--split", type=names, help="only photos of these splits of the captions"
    )
    parser.add_argument(
        "--instances", type=names, default=[], help="COCO's files of their objects"
    )
    parser.add_argument("--detector", help="preset of KerasHub, or a YOLOX network")
    parser.add_argument(
        "--confidence", type=names, default=["0.3"], help="least scores of an object"
    )
    add_decoding(parser)
    options = parser.parse_intermixed_args(arguments)
    if (options.photos is None) != (options.detector is None):
        parser.error("--photos and --detector need each other")
    if options.detector is None and not options.instances:
        parser.error("name --detector, --instances, or both")
    runs = [x for x in find_runs(options.runs).values() if of_run(x) is Captioning]
    runs = list(distinctions(runs))
    if not runs:
        raise kc.InputError("There is no finished run of a captioner.")
    records, photos = read_photos(options)
    inputs, objects = {}, None
    if options.instances:
        inputs["annotated"] = annotated(records, options.instances)
        objects = {
            record.image_id: {kc.objects.CATEGORIES[i] for i in regions.argmax(axis=1)}
            for record, (regions, _) in zip(records, inputs["annotated"], strict=True)
            if regions.any()
        }
    for confidence in options.confidence if options.detector else ():
        detector = kc.objects.load_detector(options.detector, float(confidence))
        source = f"detected, {confidence}"
        inputs[source] = detected(detector, photos)
    rows = {}
    for run, changed in runs:
        task = Captioning(run["config"])
        model = task.load_model(run["folder"])
        for source, of_photos in inputs.items():
            texts = captions_of(of_photos, model, **decoding_of(options))
            label = f"{label_of(run, changed)}, {source}"
            scores = score(records, texts, objects, of_photos)
            scores[LIKELIHOOD] = log_probability(records, model, of_photos)
            rows.setdefault(label, []).append(scores)
    print(f"\n{len(records):,} photos\n")
    shown = SHOWN + (LIKELIHOOD, *SEVERAL) + (CHAIR if objects else ())
    cells = [
        [label, *(cell(name, [run[name] for run in of_runs]) for name in shown)]
        for label, of_runs in rows.items()
    ]
    print(kc.evaluation.markdown_table(["", *shown], cells))


def cell(name, values):
    """Text of the mean ± standard deviation of a column."""
    factor, digits = PRINTED.get(name, (100, 1))
    return text_of([factor * x for x in values], digits)


def read_photos(options):
    """Records of the photos that can be read, and their pixels if they are detected."""
    if options.detector:
        records = kc.prepare.records_of_photos(options.photos, options.captions)
    else:
        records = list_images(options.captions)
    splits = options.split or list(records)
    for split in splits:
        if split not in records:
            raise kc.InputError(
                f"There is no split {split!r}, but {', '.join(records)}."
            )
    records = [record for split in splits for record in records[split]]
    if options.detector is None:
        return records, []
    available, photos, skipped = [], [], 0
    for record in records:
        try:
            photos.append(record.read())
            available.append(record)
        except kc.InputError:
            skipped += 1
    if not available:
        raise kc.InputError(f"No photo of {', '.join(splits)} is in {options.photos}.")
    print(f"{len(available):,} photos, {skipped:,} are missing or cannot be read")
    return available, photos


def annotated(records, instances):
    """Regions and boxes of annotated objects, one pair for each record."""
    numbers, objects = {}, {}
    for path in instances:
        categories, of_images = read_instances(path)
        numbers |= {category: i for i, category in enumerate(categories)}
        objects |= of_images
    inputs = []
    for record in records:
        boxes = [(numbers[c], box) for c, box in objects.get(record.image_id, [])]
        example = object_example(record.image_id, record.captions, boxes)
        inputs.append((example["regions"], example["boxes"]))
    return inputs


def detected(detector, photos):
    """Regions and boxes of detected objects, one pair for each photo."""
    detect, inputs = compile_function(detector, detector.variables), []
    for photo in progress(photos, unit="photos"):
        detected = detect(detector.to_pixels([photo]))
        inputs.append(
            (np.array(detected["regions"][0]), np.array(detected["boxes"][0]))
        )
    return inputs


def captions_of(inputs, model, **options):
    """Captions of pairs of regions and boxes, `""` where the options leave none."""
    texts = []
    for batch in batches_of(inputs):
        try:
            texts += model.generate(batch, batch_size=BATCH_SIZE, **options)
        except NoTextError:  # of one image
            texts += [caption_of(x, model, **options) for x in images_of(batch)]
    return texts


def caption_of(image, model, **options):
    try:
        [text] = model.generate(image, **options)
    except NoTextError:
        return ""
    return text


def images_of(batch):
    """Batches of one image each."""
    for i in range(len(batch["regions"])):
        yield {name: x[i : i + 1] for name, x in batch.items()}


def log_probability(records, model, inputs):
    """The mean log-probability of a token of people's captions."""
    batches, first = [], 0
    for batch in batches_of(inputs):
        size = len(batch["regions"])
        batches.append({**batch, "image_id": np.arange(first, first + size)})
        first += size
    captions = {i: record.captions for i, record in enumerate(records)}
    scores = kc.evaluation.caption_log_probabilities(model, batches, captions)
    return np.mean([np.mean(of_image) for of_image in scores.values()])


def batches_of(inputs):
    """Yields batches of pairs of regions and boxes."""
    for begin in range(0, len(inputs), BATCH_SIZE):
        batch = inputs[begin : begin + BATCH_SIZE]
        longest = max(len(boxes) for _, boxes in batch)
        padded = [
            np.stack([np.pad(x, [(0, longest - len(x)), (0, 0)]) for x in arrays])
            for arrays in zip(*batch, strict=True)
        ]
        yield dict(zip(("regions", "boxes"), padded, strict=True))


def several_of(records, texts, inputs):
    """Shares of captions that say several of one object, and of these rightly."""
    several = rightly = 0
    for record, text, (regions, _) in zip(records, texts, inputs, strict=True):
        objects = [kc.objects.CATEGORIES[x.argmax()] for x in regions if x.any()]
        if wrong := several_of_one(text, objects):
            several += 1
            rightly += wrong <= set().union(*map(said_several, record.captions))
    return several / len(texts), rightly / max(several, 1)


def score(records, texts, objects, inputs):
    """Scores of captions of photos, by name."""
    captions = {r.image_id: text for r, text in zip(records, texts, strict=True)}
    references = {r.image_id: r.captions for r in records}
    scores, _ = kc.evaluation.score(captions, references)
    there = {image_id: (objects or {}).get(image_id, ()) for image_id in captions}
    return {
        **scores,
        **kc.evaluation.object_scores(captions, references, there),
        **dict(zip(SEVERAL, several_of(records, texts, inputs), strict=True)),
    }


if __name__ == "__main__":
    start(main)
