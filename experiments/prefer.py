r"""Tests which of two captions of an image a captioner finds more probable.

    python experiments/prefer.py saved_models/coco_objects_* \
        --pairs sugarcrepe_val2017.json

reads pairs of a person's caption and a hard negative (SugarCrepe) for images of the
test split. Prints the share of pairs in which the model of a finished run gives the
person's caption the higher log-probability per token, in %, by kind. Runs that differ
in their seed only share a row of means ± standard deviations. Chance is 50.
"""

import keras_caption as kc
from experiments.papers.finished import distinctions, find_runs, label_of
from experiments.papers.sections import text_of
from keras_caption.commands.command_line import Parser, start
from keras_caption.formats.caption_pairs import read_caption_pairs
from keras_caption.tasks import Captioning, of_run

BATCH_SIZE = 50  # images


def main(arguments):
    parser = Parser("experiments/prefer.py", __doc__, imports=True)
    parser.add_argument("runs", nargs="+", help="folders that have finished runs")
    parser.add_argument("--pairs", required=True, help="JSON file of the pairs")
    parser.add_argument("--data_dir", help="folder of the dataset, if it has moved")
    options = parser.parse_intermixed_args(arguments)
    pairs = read_caption_pairs(options.pairs)
    runs = find_runs(options.runs).values()
    runs = [run for run in runs if of_run(run) is Captioning]
    if not runs:
        raise kc.InputError("There is no finished run of a captioner.")
    rows = {}
    for run, changed in distinctions(runs):
        scores = score(run, pairs, options.data_dir)
        rows.setdefault(label_of(run, changed), []).append(scores)
    show(rows)


def score(run, pairs, data_dir=None):
    """Share and number of pairs of each kind, see `kc.evaluation.preference`."""
    data = run["config"]["data"]
    data = {**data, "data_dir": data_dir or data["data_dir"]}
    task = Captioning({**run["config"], "data": data})
    model = task.load_model(run["folder"])
    batches = kc.batches.image_batches(task.read("test"), BATCH_SIZE, model.input_specs)
    return kc.evaluation.preference(model, batches, pairs)


def show(rows):
    """Prints a table as Markdown, kinds as columns with their numbers of pairs."""
    first = next(iter(rows.values()))[0]
    columns = ["", *(f"{kind} ({count:,})" for kind, (_, count) in first.items())]
    cells = [
        [label, *(text_of([100 * run[kind][0] for run in scores]) for kind in first)]
        for label, scores in rows.items()
    ]
    print(kc.evaluation.markdown_table(columns, cells))


if __name__ == "__main__":
    start(main)
