r"""Trains a model, scores it, shows its predictions and exports it.

    keras-caption run --model ngsan

trains on built-in data. All files are written to one folder, `--output_dir`; the same
command with `--resume` resumes an interrupted run. `--config FILE` runs the experiment
of a file, or a built-in one by its name, such as `ngsan_coco`; `--import FILE` runs a
file that registers mechanisms, models or datasets of your own. Every value of the
experiment can be set, for instance

    keras-caption run --model gsan --dataset coco_objects --data_dir annotations \
        --config.model.num_layers=3 --config.training.batch_size=16

Datasets that are generated, read from annotations or downloaded are prepared once. They
are kept in the folder that the environment variable TFDS_DATA_DIR names, or in
~/tensorflow_datasets.
"""

import os
import pathlib
import shutil
import sys
from collections.abc import Sequence

import keras_caption as kc
from keras_caption.base.atomic import check_folder
from keras_caption.base.errors import need_backend, need_packages, need_tensorflow
from keras_caption.commands.command_line import Parser, continuing
from keras_caption.commands.finished_runs import FINISHED, record_finished
from keras_caption.commands.malloc import keep_freed_memory
from keras_caption.commands.run_arguments import make_parser as make_parser_of
from keras_caption.commands.run_arguments import parse


def make_parser() -> Parser:
    return make_parser_of(__doc__)


def main(arguments: Sequence[str]) -> None:
    options, settings = parse(arguments, __doc__)
    # Imported here, since the help needs no Keras. The report is written at the end of
    # a run: importing it now names missing packages before the training.
    import keras_caption.apps.report.run_report  # noqa: F401
    from keras_caption.base.compilation import has_accelerator
    from keras_caption.commands.configuration import make_config
    from keras_caption.training import phases
    from keras_caption.training.run_directory import (
        RunDirectory,
        check_start_stays,
        describe,
        locked,
    )
    from keras_caption.training.strategies import is_chief, make_strategy

    kind, config = make_config(options.config, settings)
    # All checks come before the folder is locked and anything is computed or written.
    folders = folders_of(options, config)
    check_backend(config, folders)
    set_up(config)
    strategy = make_strategy(config["strategy"])
    task = kind(config)
    check_needs(task, folders)
    phases.check_data(task, folders, strategy, is_shortened(settings))
    if has_accelerator():
        print(describe_devices())
    resume = "the same command" if options.resume else "the command with --resume"
    with (
        continuing(f"{resume} continues"),
        locked(folders.values() if is_chief(strategy) else (), options.resume),
    ):
        if options.resume:
            check_start_stays(folders, config)
        start = options.start_from
        for objective, folder in folders.items():
            description = describe(config, objective, start, options.ensemble or ())
            directory = RunDirectory(
                folder,
                description,
                options.resume,
                is_chief(strategy),
                task.monitor,
            )
            run_phase(task, directory, strategy, start, options.ensemble)
            start = folder / "best.keras"  # self-critical training continues from it
    if is_chief(strategy):
        record_finished(options, settings, folders.values())


def is_shortened(settings):
    """Whether the command line sets the number of epochs, but no warm-up.

    If such a run ends within its warm-up, a note replaces the error.
    """
    return "training.epochs" in settings and not any("warmup" in x for x in settings)


def folders_of(options, config):
    """The phases of a run, a dict from objective to folder."""
    self_critical = config.get("self_critical", {}).get("epochs")
    name = "ensemble" if options.ensemble else config["model"]["name"]
    default = f"saved_models/{name}_{config['data']['dataset']}"
    folder = pathlib.Path(options.output_dir or default)
    if options.ensemble:
        return {"ensemble": folder}
    if options.start_from is not None:
        kc.models.file_of(options.start_from)  # raises before the folder is made
        if self_critical:
            return {"self-critical": folder / "scst"}
    folders = {"cross-entropy": folder}
    if self_critical:
        folders["self-critical"] = folder / "scst"
    return folders


def check_backend(config, objectives):
    """Raises `InputError` for settings that the backend does not have."""
    if config["strategy"] != "one_device":
        need_tensorflow(f"The strategy {config['strategy']!r}")
    if config["deterministic"]:
        need_tensorflow("--deterministic")
    if "self-critical" in objectives:
        need_backend("Self-critical training", "TensorFlow", "JAX")


def check_needs(task, folders):
    """Raises `InputError` if something is missing that the end of a run needs."""
    import keras

    task.check_evaluation()
    if keras.backend.backend() == "tensorflow":
        need_packages("tensorflow_serving")  # for the export
    for folder in folders.values():
        check_folder(folder / "config.json")


def describe_devices():
    """Describes the GPUs or TPUs of a run."""
    import tensorflow as tf

    devices = [d for d in tf.config.list_physical_devices() if d.device_type != "CPU"]
    details = map(tf.config.experimental.get_device_details, devices)
    names = [
        x.get("device_name", device.name)
        for x, device in zip(details, devices, strict=True)
    ]
    counted = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    return f"Devices: {', '.join(counted)}"


def set_up(config):
    """Sets memory, precision and determinism of the whole process."""
    import keras

    keep_freed_memory()
    if config["precision"] != "float32":
        keras.config.set_dtype_policy(f"mixed_{config['precision']}")
    if config["deterministic"]:
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()


def run_phase(task, directory, strategy, start, ensemble):
    """Trains, scores and exports a model, or resumes an interrupted phase.

    Args:
        task: The task.
        directory: `RunDirectory` of the phase.
        strategy: Distribution strategy.
        start: Saved model that the phase starts from, or `None`.
        ensemble: Saved models, a list, or `None`.
    """
    from keras_caption.training import phases

    objective = directory.description["objective"]
    if directory.resume:
        if directory.is_finished():
            print(FINISHED.format(directory.folder))
            return
        directory.check_resumable()
    if objective == "ensemble":
        model = task.load_ensemble(ensemble)
        phases.set_decoding(task, model)
        directory.begin()
        finish(task, directory, model)
        return
    if objective == "cross-entropy":
        phases.train_cross_entropy(task, directory, strategy, start)
    else:
        phases.train_self_critically(task, directory, strategy, start)
    if directory.is_chief:
        model = kc.models.load(directory.folder)
        if phases.set_decoding(task, model):  # options may change on resume
            model.save(directory.folder / "best.keras")
        parameters = phases.count_parameters(model)
        finish(task, directory, model, parameters=parameters)


def finish(task, directory, model, **more):
    """Scores and exports a model, writes its report, and lists the files of the run."""
    import keras

    from keras_caption.apps.report.run_report import FILE, FinishedRun, write_report
    from keras_caption.models.cards import write_card
    from keras_caption.models.task_model import TaskModel

    directory.reopen()
    scores = task.evaluate(model, directory.folder)
    if keras.backend.backend() == "tensorflow":
        kc.serving.export(model, directory.folder / "1")
    else:
        print(
            "\nThere is no SavedModel, since it needs TensorFlow: KERAS_BACKEND="
            f"tensorflow keras-caption export {directory.folder} "
            f"--output {directory.folder}"
        )
    if isinstance(model, TaskModel):
        run = {"training_size": task.training_size, "scores": scores}
        for folder in (directory.folder, *directory.folder.glob("1")):
            write_card(folder, model, directory.description | run)
    description = directory.finish(model.name, scores, **more)
    run = FinishedRun(directory.folder, description, scores, task, model)
    write_report([run], directory.folder / FILE)
    print(f"\nAll files are in {directory.folder}:")
    for name, content in task.files.items():
        if (directory.folder / name).exists():
            print(f"  {name:22}{content}")
    program = name_of_program()
    print(
        f"\nNext, open {directory.folder / FILE} in a browser, or run\n"
        f"  {program} caption PHOTO   to caption a photo by a model in this package\n"
        f"  {program} demo            to caption photos on a page in a browser\n"
        "README.md says how to train on data of your own, and how to serve a model."
    )


def name_of_program():
    """The name of `keras-caption` in a shell, or its path in a virtual environment."""
    path = pathlib.Path(sys.executable).with_name("keras-caption")
    if shutil.which("keras-caption") or not path.exists():
        return "keras-caption"
    return os.path.relpath(path)
