r"""Scores a finished run on another dataset than the one that it was trained on.

    python experiments/evaluate.py saved_models/area_prepared --dataset prepared \
        --data_dir prepared/flickr30k

captions the test split, by the search of the run, and writes captions, references,
scores and a figure as experiments/run.py does, into a folder within the run's. The
model must read the features of the dataset: photos are prepared with the same network.
experiments/tables.py shows the scores in a table of their own.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import ml_collections
from absl import flags
from command import start
from report import evaluate

import keras_caption as kc
from keras_caption.atomic import exclusive, write_json
from keras_caption.formats.runs import read_begun, read_config
from keras_caption.models.ensemble import are_same

FLAGS = flags.FLAGS
flags.DEFINE_string("dataset", "prepared", "scenes, coco_objects or prepared.")
flags.DEFINE_string("data_dir", None, "Folder of the dataset, as for run.py.")
flags.DEFINE_string(
    "output_dir", None, "Where the files go. RUN/on_DATA_DIR if omitted."
)


def main(argv):
    if len(argv) != 2:
        sys.exit("error: name the folder of one finished run; see --help.")
    score(pathlib.Path(argv[1]))


def score(folder):
    """Scores the model of a run's folder, by the search that the run used."""
    if not (folder / "test_scores.json").exists():
        raise kc.InputError(f"{folder} holds no finished run.")
    run = read_config(folder)
    model = kc.models.load(folder)
    builder = kc.data.load(FLAGS.dataset, FLAGS.data_dir)
    check_extractor(model)
    name = pathlib.Path(FLAGS.data_dir or FLAGS.dataset).name
    output = pathlib.Path(FLAGS.output_dir or folder / f"on_{name}")
    about = {
        **run,
        "dataset": FLAGS.dataset,
        "data_dir": FLAGS.data_dir,
        "trained_on": {name: run.get(name) for name in ("dataset", "data_dir")},
    }
    decoding = ml_collections.ConfigDict(run["config"]["decoding"])
    with exclusive(output):
        refuse_others(output, about)
        (output / "test_scores.json").unlink(missing_ok=True)
        scores = evaluate(model, decoding, builder, output)
        write_json(output / "config.json", about)
        write_json(output / "test_scores.json", scores)  # last: now all is there
    print(f"\nWrote captions, references, scores and a figure to {output}")


def refuse_others(folder, about):
    """Refuses a folder that holds a run, or scores on another dataset."""
    recorded = read_begun(folder)
    names = ("dataset", "data_dir", "trained_on")
    if recorded and any(recorded.get(name) != about[name] for name in names):
        raise kc.InputError(
            f"{folder} holds a run, or scores on another dataset: name another "
            "--output_dir."
        )


def check_extractor(model):
    """Refuses photos whose features were made by another network than the model's."""
    if FLAGS.dataset != "prepared" or model.extractor is None:
        return
    extractor = kc.data.load_extractor(FLAGS.data_dir)
    if extractor is not None and not are_same(extractor, model.extractor):
        raise kc.InputError(
            f"The features in {FLAGS.data_dir} were made by another network than those "
            f"that the model '{model.name}' was trained on."
        )


if __name__ == "__main__":
    start(main)
