r"""Compares captioners by the number of distinct objects in an image.

    python experiments/distinct.py saved_models/nsan_* --against saved_models/san_* \
        --data_dir coco

prints paired differences of CIDEr-D and of the log-probability of references between
finished runs on `coco_objects`, with 95 % intervals over images and seeds: for images
with one category, with two, with three or four, and with more. Regions are one-hot
categories, so that instance normalization has no more distinct queries than categories
in the first layer.
"""

import numpy as np

import keras_caption as kc
from experiments.papers.finished import find_runs
from experiments.papers.sections import difference_cells, items_of
from keras_caption.commands.command_line import Parser, start

GROUPS = {"none or one": (0, 1), "two": (2, 2), "three, four": (3, 4), "more": (5, 80)}


def main(arguments):
    parser = Parser("experiments/distinct.py", __doc__, imports=True)
    parser.add_argument("folders", nargs="+", help="folders of runs of one model")
    parser.add_argument(
        "--against", nargs="+", required=True, help="folders of runs of another model"
    )
    parser.add_argument("--data_dir", help="folder of COCO's annotations")
    options = parser.parse_args(arguments)
    runs, others = (
        items_of([*find_runs(folders).values()])
        for folders in (options.folders, options.against)
    )
    builder = kc.datasets.load("coco_objects", options.data_dir)
    counts = {
        int(example["image_id"]): int(np.sum(example["regions"].any(axis=0)))
        for example in kc.datasets.read(builder, "test").as_numpy_iterator()
    }
    rows = []
    for group, (least, most) in GROUPS.items():
        for name in (name for name in runs if name in others):
            chosen = [
                [
                    {i: x for i, x in run.items() if least <= counts[i] <= most}
                    for run in y
                ]
                for y in (runs[name], others[name])
            ]
            compared = kc.evaluation.paired_difference(*chosen)
            rows.append([group, name, *difference_cells(compared, name)])
    heads = ["categories", "of", "difference", "interval", "verdict", "over"]
    print(kc.evaluation.markdown_table(heads, rows, labels=2))


if __name__ == "__main__":
    start(main)
