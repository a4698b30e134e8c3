"""The command line of `run`: flags, and values of the configuration."""

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from keras_caption.base.atomic import check_folder
from keras_caption.base.errors import InputError
from keras_caption.commands.command_line import Parser, import_library, names
from keras_caption.commands.finished_runs import FINISHED, finished_folders
from keras_caption.formats.built_in import experiments, find_file
from keras_caption.formats.model_files import model_file
from keras_caption.formats.python_files import check_python_file
from keras_caption.formats.runs import refuse_used
from keras_caption.settings.catalogue import check_known, read_catalogue
from keras_caption.settings.run import DEFAULT_MODEL, Run, documentation

OF_RUN = {name: documentation(kind) for name, kind in Run.__annotations__.items()}
# From a flag to a value of the configuration and its description.
SHORT = {
    "model": ("model.name", "a preset, such as ngsan or aoanet"),
    "dataset": (
        "data.dataset",
        "scenes or moving_scenes (built in), coco_objects or prepared; for questions: "
        "scene_questions (built in), coco_qa, vsr, vqa or vqa_coco_qa",
    ),
    "data_dir": (
        "data.data_dir",
        "folder of COCO's annotations (if omitted, TFDS downloads coco_captions), of a "
        "prepared dataset, or of questions; --config.data.images and "
        "--config.data.images_dir name the images of questions",
    ),
    "seed": ("seed", OF_RUN["seed"]),
    "epochs": ("training.epochs", "epochs of cross-entropy"),
    "scst_epochs": (
        "self_critical.epochs",
        "epochs of self-critical training after cross-entropy",
    ),
    "mixed_precision": ("precision", OF_RUN["precision"]),
    "strategy": ("strategy", OF_RUN["strategy"]),
}
SWITCHES = {
    "deterministic": ("deterministic", OF_RUN["deterministic"]),
    "spice": (
        "evaluation.spice",
        "compute SPICE too; its first use downloads several hundred MB",
    ),
}


def parse(
    arguments: Sequence[str], description: str
) -> tuple[argparse.Namespace, dict[str, Any]]:
    """Parses the command line of `run`.

    Args:
        arguments: List of str.
        description: str, the first part of the help. `--help` prints the help and ends
            the process. If the command line names a model or an experiment, the help
            lists the values of the configuration too; of an experiment, or with
            other values, this needs Keras.

    Returns:
        The options of the run; and a dict from the name of a value of the
        configuration, such as `model.num_layers`, to str, bool or `None`.
    """
    arguments, values = split(arguments)
    parser = make_parser(description)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    settings = {
        name: getattr(options, flag)
        for flag, (name, _) in {**SHORT, **SWITCHES}.items()
        if getattr(options, flag) is not None
    }
    settings |= values
    if options.help and not (settings or options.config):
        parser.epilog = (
            "With --model or --config, --help lists the values of the configuration "
            "too.\nBuilt-in experiments: " + ", ".join(experiments())
        )
        print(parser.format_help())
        parser.exit()
    if not options.help:
        check_files(options)
    own = options.config is not None and options.config not in experiments()
    is_known = not own and not is_imported()  # else names of a user's own code
    if is_known:
        model = DEFAULT_MODEL if options.config is None else None
        model = settings.get("model.name", model)
        check_known(model, [*settings])
    if options.help:
        if is_known and not options.config and settings.keys() == {"model.name"}:
            values = read_catalogue()[settings["model.name"]]
        else:
            import_library()
            from keras_caption.commands.configuration import describe, make_config

            values = describe(*make_config(options.config, settings))
        parser.epilog = "values of the configuration:\n" + "\n".join(listed(values))
        print(parser.format_help())
        parser.exit()
    if folders := finished_folders(options, settings):
        for folder in folders:
            print(FINISHED.format(folder))
        parser.exit()
    import_library()
    return options, settings


def is_imported() -> bool:
    """Whether the models are imported, to which files of `--import` may add."""
    return "keras_caption.models" in sys.modules


def check_files(options: argparse.Namespace) -> None:
    """Raises `InputError` for files that are missing, before Keras is imported."""
    if options.config is not None:
        check_python_file(find_file(options.config))
    for name in [options.start_from, *(options.ensemble or [])]:
        if name is not None and "://" not in name:
            model_file(name)
    if options.output_dir is not None:
        folder = pathlib.Path(options.output_dir)
        check_folder(folder / "config.json")
        if not options.start_from:
            refuse_used(folder, options.resume)


def split(arguments):
    """Takes `--config.NAME=VALUE` and `--config.NAME VALUE` out of a command line."""
    others, values, rest = [], {}, iter(arguments)
    for argument in rest:
        if not argument.startswith("--config."):
            others.append(argument)
            continue
        name, equals, value = argument.removeprefix("--config.").partition("=")
        value = value if equals else next(rest, None)
        if value is None:
            raise InputError(f"{argument} needs a value.")
        values[name] = value
    return others, values


def make_parser(description):
    parser = Parser("keras-caption run", description, imports=True, add_help=False)
    parser.add_argument("--help", "-h", action="store_true", help="show this help")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="Python file of an experiment, which is executed; or the name of a "
        "built-in experiment: ngsan_coco, scenes",
    )
    for flag, (name, text) in SHORT.items():
        parser.add_argument(
            f"--{flag}", metavar="VALUE", help=f"{text} (--config.{name})"
        )
    for flag, (name, text) in SWITCHES.items():
        parser.add_argument(
            f"--{flag}",
            action=argparse.BooleanOptionalAction,
            help=f"{text} (--config.{name})",
        )
    parser.add_argument(
        "--output_dir",
        metavar="FOLDER",
        help="folder for the run's files; defaults to saved_models/MODEL_DATASET, or "
        "saved_models/ensemble_DATASET",
    )
    parser.add_argument(
        "--resume", action="store_true", help="resume the run in --output_dir, if any"
    )
    parser.add_argument(
        "--start_from",
        metavar="MODEL",
        help="saved model, run, preset or export from which training starts; with "
        "--scst_epochs there is self-critical training only",
    )
    parser.add_argument(
        "--ensemble",
        type=names,
        metavar="MODELS",
        help="saved models, runs, presets or exports, separated by commas: they are "
        "scored and exported as one model, without training",
    )
    return parser


def listed(values):
    """Lists lines of the help, one for each value of a configuration."""
    settings = {f"  --config.{name}={x}": text for name, (x, text) in values.items()}
    width = max(map(len, settings)) + 3
    return [f"{setting:{width}}{text}" for setting, text in settings.items()]
