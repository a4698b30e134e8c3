r"""Measures how far detections can be trusted when a question asks for an object.

    python experiments/presence.py saved_models/mcan_photos.keras \
        --detector yolox_nano.keras --photos coco_mini/val2017 \
        --captions captions_val2017.json --instances instances_val2017.json \
        --save measured.keras

The recall of a category is the share of the photos with an annotated object of the
category in which the detector finds one. That of a category with few photos is drawn to
the recall of all, which counts as --few photos of its own. The calibration is the share
of photos with such an object, by the greatest score of the detections of the category,
in --steps parts. Prints both, and writes the model with them, see
`keras_caption.models.Classifier`. If the model was measured before, on other photos,
its answers to the question whether there is an object, of each category and photo, are
printed first.
"""

import collections

import numpy as np
from keras_caption.compilation import compile_function

import keras_caption as kc
from experiments.detected import annotated, read_photos
from experiments.unsure import calibrate
from keras_caption.apps.objects.object_answers import SURE, presence_of
from keras_caption.base.progress import progress
from keras_caption.commands.command_line import Parser, names, new_file, start


def main(arguments):
    parser = Parser("experiments/presence.py", __doc__)
    parser.add_argument("model", help="saved model that answers questions")
    parser.add_argument(
        "--detector", required=True, help="as of `keras-caption answer`"
    )
    parser.add_argument("--photos", required=True, help="folder of photos")
    parser.add_argument("--captions", type=names, required=True)
    parser.add_argument("--instances", type=names, required=True)
    parser.add_argument("--split", type=names, help="splits of the captions")
    parser.add_argument("--few", type=float, default=4.0)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--save", type=new_file, help="new file for the model")
    options = parser.parse_args(arguments)
    model = kc.models.load(options.model)
    if not isinstance(model, kc.models.Classifier):
        raise kc.InputError(f"{options.model} is no model that answers questions.")
    # The detector as the model reads it, with its least score of an object.
    detector = kc.serving.Predictor(model, options.detector).extractor
    records, photos = read_photos(options)
    shown = [
        {kc.objects.CATEGORIES[x.argmax()] for x in regions if x.any()}
        for regions, _ in annotated(records, options.instances)
    ]
    detected = greatest_scores(detector, photos)
    if model.recall is not None:
        print_answers(model, shown, detected)
    model.recall = recall_of(shown, detected, options.few)
    model.calibration = calibrate(*outcomes(shown, detected), options.steps)
    counts = collections.Counter(x for categories in shown for x in categories)
    rows = [(x, counts[x], f"{share:.2f}") for x, share in model.recall.items()]
    print(kc.evaluation.markdown_table(["category", "photos", "recall"], rows))
    points = np.array(model.calibration).round(3)
    print(f"\n{kc.evaluation.markdown_table(['greatest score', 'shown'], points)}")
    if options.save:
        model.extractor = None
        model.save(options.save)
        print(f"\nWrote {options.save}")


def greatest_scores(detector, photos):
    """The greatest score of each detected category, a dict for each photo."""
    detect, scores = compile_function(detector, detector.variables), []
    for photo in progress(photos, unit="photos"):
        found = detect(detector.to_pixels([photo]))
        of_photo = collections.defaultdict(float)
        for one in detector.objects_of({n: np.array(x) for n, x in found.items()}, 0):
            category = one["category"]
            of_photo[category] = max(of_photo[category], one["score"])
        scores.append(of_photo)
    return scores


def print_answers(model, shown, detected):
    """Prints how often a category is there, by the answers and whether they are sure.

    Photos without detections have no answer.
    """
    counts = collections.Counter()
    for categories, scores in zip(shown, detected, strict=True):
        objects = [{"category": x, "score": s} for x, s in scores.items()]
        for x in kc.objects.CATEGORIES if objects else ():
            question = f"Is there a {x}?"
            if found := presence_of(question, objects, model.recall, model.calibration):
                answer, share = found
                counts[answer, share >= SURE, x in categories] += 1
    rows = [
        (answer if is_sure else f"{answer} (unsure)", *(counts[key] for key in keys))
        for answer in ("yes", "no")
        for is_sure in (True, False)
        for keys in [[(answer, is_sure, there) for there in (True, False)]]
    ]
    print(kc.evaluation.markdown_table(["answer", "there", "not there"], rows), "\n")


def recall_of(shown, detected, few):
    """The recall of each category, drawn to that of all.

    Args:
        shown: List of sets of annotated categories, one for each photo.
        detected: List of dicts from detected category to score.
        few: float, number of photos that the recall of all counts as.

    Returns:
        dict from category to float, the least first.
    """
    there, found = collections.Counter(), collections.Counter()
    for categories, scores in zip(shown, detected, strict=True):
        there.update(categories)
        found.update(categories & scores.keys())
    mean = found.total() / there.total()
    recall = {
        category: (found[category] + few * mean) / (there[category] + few)
        for category in kc.objects.CATEGORIES
    }
    return {x: round(recall[x], 4) for x in sorted(recall, key=recall.get)}


def outcomes(shown, detected):
    """The scores of all detected categories, and whether the photos show them."""
    pairs = [
        (score, category in categories)
        for categories, scores in zip(shown, detected, strict=True)
        for category, score in scores.items()
    ]
    return map(np.array, zip(*pairs, strict=True))


if __name__ == "__main__":
    start(main)
