"""Tasks: their data, models, training, evaluation and reports.

A task is a subclass of `keras_caption.training.Task` and an entry of `TASKS`. No task
imports another.
"""

from typing import Any

from keras_caption.base.errors import need_model
from keras_caption.tasks.captioning import Captioning
from keras_caption.tasks.question_answering import QuestionAnswering
from keras_caption.tasks.translation import Translation
from keras_caption.training.task import Task

TASKS: dict[str, type[Task]] = {
    "captioning": Captioning,
    "question_answering": QuestionAnswering,
    "translation": Translation,
}


def of_model(name: str) -> type[Task]:
    """The task of a model. If several tasks have the model, the last one counts.

    Args:
        name: str, name of a preset.

    Raises:
        InputError: If no task has a preset of that name. The message names similar
            presets.
    """
    task_of = {preset: task for task in TASKS.values() for preset in task.presets()}
    need_model(name, task_of)
    return task_of[name]


def of_run(run: dict[str, Any]) -> type[Task]:
    """The task of a run: not of its model's name, which a user may have chosen.

    Args:
        run: dict, as `keras_caption.formats.runs.read_config` returns it.

    Raises:
        InputError: As `of_model`.
    """
    model = run["config"].get("model", {})  # of an ensemble none is recorded
    preset = model.get("name") or run.get("preset")
    return of_model(preset or run["model"].split(" + ")[0])  # ensembles of 0.2.0
