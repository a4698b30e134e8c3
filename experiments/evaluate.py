r"""Scores a finished captioner on a dataset that it was not trained on.

    python experiments/evaluate.py saved_models/area_prepared --dataset prepared \
        --data_dir prepared/flickr30k

captions the test split by the search of the run. Writes captions, references, scores
and a figure, as run.py does, to a folder within that of the run. The model must read
the features of the dataset: photos must be prepared with the same network.
experiments/tables.py shows the scores in a separate table.
"""

import pathlib

import keras_caption as kc
from keras_caption.base.atomic import exclusive, write_json
from keras_caption.commands.command_line import Parser, start
from keras_caption.formats.runs import read_begun, read_config
from keras_caption.models.members import are_same
from keras_caption.tasks import Captioning, of_run


def main(arguments):
    parser = Parser("experiments/evaluate.py", __doc__, imports=True)
    parser.add_argument("run", help="folder of a finished run")
    parser.add_argument("--dataset", default="prepared", help="as of run.py")
    parser.add_argument("--data_dir", help="folder of the dataset, as of run.py")
    parser.add_argument(
        "--output_dir", help="where the files go; defaults to RUN/on_DATA_DIR"
    )
    options = parser.parse_intermixed_args(arguments)
    data = {"dataset": options.dataset, "data_dir": options.data_dir}
    score(pathlib.Path(options.run), data, options.output_dir)


def score(folder, data, output_dir=None):
    """Scores the model of a run's folder, by the search that the run used.

    Args:
        folder: `pathlib.Path` of the run.
        data: dict, `dataset` and `data_dir` to score on.
        output_dir: Folder for the files. Defaults to one within the run's.
    """
    if not (folder / "test_scores.json").exists():
        raise kc.InputError(f"{folder} holds no finished run.")
    run = read_config(folder)
    if of_run(run) is not Captioning:
        raise kc.InputError(
            f"{folder} holds no captioner: only captioners are scored on other data."
        )
    trained_on = {name: run["config"]["data"].get(name) for name in data}
    config = {**run["config"], "data": {**run["config"]["data"], **data}}
    config["evaluation"] = {**config.get("evaluation", {}), "spice": False}
    task = Captioning(config)
    model = task.load_model(folder)
    check_extractor(model, data)
    name = pathlib.Path(data["data_dir"] or data["dataset"]).name
    output = pathlib.Path(output_dir or folder / f"on_{name}")
    description = {**run, "config": config, "trained_on": trained_on}
    with exclusive(output):
        refuse_others(output, description)
        (output / "test_scores.json").unlink(missing_ok=True)
        scores = task.evaluate(model, output)
        write_json(output / "config.json", description)
        write_json(output / "test_scores.json", scores)  # last: now all is there
    print(f"\nWrote captions, references, scores and a figure to {output}")


def refuse_others(folder, description):
    """Raises `InputError` if a folder holds a run, or scores on another dataset."""
    recorded = read_begun(folder)
    if recorded and data_of(recorded) != data_of(description):
        raise kc.InputError(
            f"{folder} holds a run, or scores on another dataset: name another "
            "--output_dir."
        )


def data_of(description):
    """The data that a model was scored on, and the data that it was trained on."""
    scored_on = [
        description["config"]["data"].get(name) for name in ("dataset", "data_dir")
    ]
    return scored_on, description.get("trained_on")


def check_extractor(model, data):
    """Raises `InputError` if another network extracted the features of the dataset."""
    if data["dataset"] != "prepared" or model.extractor is None:
        return
    extractor = kc.prepare.load_extractor(data["data_dir"])
    if extractor is not None and not are_same(extractor, model.extractor):
        raise kc.InputError(
            f"The features in {data['data_dir']} are of another network than those "
            f"that the model '{model.name}' was trained on."
        )


if __name__ == "__main__":
    start(main)
