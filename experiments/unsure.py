r"""Chooses below which confidence a captioner of objects is unsure.

    python experiments/unsure.py saved_models/detected_objects --data_dir coco \
        --true 0.9 --save saved_models/ngsan_coco.keras

The threshold is the least confidence from which on at least the share --true of the
captions of the validation split name no object that is neither annotated nor named by a
person. Prints that share over the test split, from this threshold on and for the surest
captions, and writes the model with its threshold.
"""

import numpy as np

import keras_caption as kc
from experiments.declining import kept_and_right, threshold_for
from keras_caption.commands.command_line import Parser, new_file, share, start

BATCH_SIZE = 50


def main(arguments):
    parser = Parser("experiments/unsure.py", __doc__, imports=True)
    parser.add_argument("model", help="saved captioner, or the folder of a run")
    parser.add_argument("--data_dir", help="folder of COCO's annotations")
    parser.add_argument(
        "--true", type=share, default=0.9, help="least share of true captions"
    )
    parser.add_argument("--save", type=new_file, help="new file for the model")
    options = parser.parse_intermixed_args(arguments)
    model = kc.models.load(options.model)
    builder = kc.datasets.load("coco_objects", options.data_dir)
    model.threshold = threshold_for(*outcomes(model, builder, "val"), options.true)
    confidences, true = outcomes(model, builder, "test")
    print(f"\n{len(true):,} test images, threshold {model.threshold:.4f}\n")
    rows = kept_and_right(confidences, true, model.threshold)
    print(kc.evaluation.markdown_table(["confidence", "captions", "true"], rows))
    if options.save:
        model.save(options.save)
        print(f"\nWrote {options.save}")


def outcomes(model, builder, split):
    """The confidences of the captions of a split, and whether they are true."""
    examples, confidences, true = kc.datasets.read(builder, split), [], []
    categories, references = (
        np.array(kc.features.CATEGORIES),
        kc.datasets.references(examples),
    )
    objects = {
        int(example["image_id"]): categories[example["regions"].any(axis=0)]
        for example in examples.as_numpy_iterator()
    }
    for batch in kc.batches.image_batches(examples, BATCH_SIZE, model.input_specs):
        tokens, scores = map(np.array, model.generate_tokens(batch))
        confidences += model.confidences(tokens, scores).tolist()
        for i, image_id in enumerate(batch["image_id"].numpy().tolist()):
            caption = model.vocabulary.decode(tokens[i])
            there = references[image_id], objects[image_id]
            true.append(not kc.evaluation.hallucinations(caption, *there))
    return np.array(confidences), np.array(true)


if __name__ == "__main__":
    start(main)
