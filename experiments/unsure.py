r"""Calibrates the confidence of a captioner of detected objects on photos.

    python experiments/unsure.py saved_models/ngsan_coco.keras \
        --detector yolox_nano.keras --photos flickr8k/images,coco_mini/val2017 \
        --captions dataset_flickr8k.json,karpathy_split.json --split train \
        --held_out val,test --true 0.8 --second_opinion --save calibrated.keras

A caption is true if each object that it names is named by a person or, with
--instances, annotated. The confidence is the share of true captions among those with a
similar least score of a named object: an isotonic regression over photos of --split, in
--steps parts. Prints confidences and shares of true captions over the photos of
--held_out, also for captions above the threshold --true. Writes the model with its
calibration and threshold.
"""

import argparse

import numpy as np

import keras_caption as kc
from experiments.details import light_second_opinion
from experiments.detected import annotated, captions_of, read_photos
from keras_caption.apps.objects.object_words import least_score
from keras_caption.base.progress import progress
from keras_caption.commands.command_line import Parser, names, new_file, share, start
from keras_caption.decoding import compile_function


def main(arguments):
    parser = Parser("experiments/unsure.py", __doc__)
    parser.add_argument("model", help="saved captioner, or the folder of a run")
    parser.add_argument(
        "--detector", required=True, help="as of `keras-caption caption`"
    )
    parser.add_argument(
        "--second_opinion", action="store_true", help="classify objects once more"
    )
    parser.add_argument("--photos", type=names, required=True, help="folders")
    parser.add_argument("--captions", type=names, required=True, help="a file of each")
    parser.add_argument("--instances", type=names, help="a file of each")
    parser.add_argument("--split", type=names, help="splits for the calibration")
    parser.add_argument("--held_out", type=names, help="splits for its evaluation")
    parser.add_argument(
        "--true",
        type=share,
        default=0.8,
        help="confidence below which captions are unsure",
    )
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--save", type=new_file, help="new file for the model")
    options = parser.parse_args(arguments)
    model = kc.models.load(options.model)
    if options.second_opinion:
        model.extractor = light_second_opinion(options.detector)
    else:
        model.extractor = kc.objects.load_detector(options.detector, 0.3)
    model.threshold = options.true
    least, true = outcomes(model, options, options.split)
    model.calibration = calibrate(least, true, options.steps)
    points = np.array(model.calibration)
    print(kc.evaluation.markdown_table(["least score", "true"], points.round(3)))
    if options.held_out:
        print_reliability(model, *outcomes(model, options, options.held_out))
    if options.save:
        model.extractor = None
        model.save(options.save)
        print(f"\nWrote {options.save}")


def outcomes(model, options, split):
    """Each caption's least score of the objects that it names, and its truth."""
    found = []
    instances = options.instances or [None] * len(options.photos)
    for photos, captions, of_photos in zip(
        options.photos, options.captions, instances, strict=True
    ):
        source = argparse.Namespace(
            detector=options.detector,
            photos=photos,
            captions=[captions],
            instances=[of_photos] if of_photos else [],
            split=split,
        )
        found.append(outcomes_of(model, source))
    return [np.concatenate(values) for values in zip(*found, strict=True)]


def outcomes_of(model, source):
    """The same, of the photos of one folder."""
    records, photos = read_photos(source)
    there = annotated(records, source.instances) if source.instances else None
    detect = model.extractor
    if detect.in_graphs:
        detect = compile_function(model.extractor, model.extractor.variables)
    detections = []
    for photo in progress(photos, unit="photos"):
        features = detect(model.extractor.to_pixels([photo]))
        detections.append({name: np.array(x) for name, x in features.items()})
    texts = captions_of([(x["regions"][0], x["boxes"][0]) for x in detections], model)
    least, true = [], []
    for i, (text, detected) in enumerate(zip(texts, detections, strict=True)):
        objects = model.extractor.objects_of(detected, 0)
        if not objects:
            continue  # such a photo has no caption
        regions = there[i][0] if there else np.zeros((0, 1))
        annotated_here = {kc.objects.CATEGORIES[x.argmax()] for x in regions if x.any()}
        wrong = kc.evaluation.hallucinations(text, records[i].captions, annotated_here)
        least.append(least_score(text, objects))
        true.append(not wrong)
    return np.array(least), np.array(true)


def calibrate(least, true, steps):
    """Points of a rising function from scores to shares of true captions.

    Args:
        least: float `(captions,)`, least scores.
        true: bool `(captions,)`.
        steps: int, number of parts with the same number of captions.

    Returns:
        List of pairs of floats. Neighbouring parts with falling shares are merged.
    """
    order = np.argsort(least, kind="stable")
    parts = [
        [least[part].mean(), true[part].mean(), len(part)]
        for part in np.array_split(order, min(steps, len(order)))
    ]
    rising = []
    for part in parts:
        rising.append(part)
        while len(rising) > 1 and rising[-2][1] >= rising[-1][1]:
            (x, y, n), (u, v, m) = rising[-2:]
            rising[-2:] = [
                [(n * x + m * u) / (n + m), (n * y + m * v) / (n + m), n + m]
            ]
    return [[round(float(x), 4), round(float(y), 4)] for x, y, _ in rising]


def print_reliability(model, least, true):
    """Prints confidences beside the shares of true captions."""
    sure = np.interp(least, *np.transpose(model.calibration))
    rows = []
    for low, high in ((0, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, 1.01)):
        between = (sure >= low) & (sure < high)
        if between.any():
            cells = 100 * sure[between].mean(), 100 * true[between].mean()
            label = f"{low:.1f} to {min(high, 1):.1f}"
            rows.append([label, between.sum(), *(f"{x:.1f}" for x in cells)])
    kept = sure >= model.threshold
    cells = 100 * sure[kept].mean(), 100 * true[kept].mean()
    rows.append([f"at least {model.threshold}", kept.sum()])
    rows[-1] += [f"{x:.1f}" for x in cells]
    rows.append(["all", len(sure), *(f"{100 * x.mean():.1f}" for x in (sure, true))])
    print(f"\n{len(true):,} held-out photos with a caption\n")
    header = ["confidence", "captions", "mean confidence", "true"]
    print(kc.evaluation.markdown_table(header, rows))


if __name__ == "__main__":
    start(main)
