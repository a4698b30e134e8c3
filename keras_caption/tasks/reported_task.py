import pathlib
from typing import Any, ClassVar

from keras_caption.training.task import REPORTS, Task


class ReportedTask(Task):
    """A task whose runs an app scores, draws and shows.

    Attributes:
        report: str, name of a value of `REPORTS` whose `evaluate` scores a test split;
            `outcome` and `examples` of the value with `_examples` behind this name are
            for the report of a run. These functions take the task, then what the
            methods take.
    """

    report: ClassVar[str]

    def evaluate(self, model: Any, folder: pathlib.Path) -> dict[str, Any]:
        return REPORTS[self.report].evaluate(self, model, folder)

    def outcome(self, model: Any, folder: pathlib.Path) -> Any:
        return REPORTS[f"{self.report}_examples"].outcome(self, model, folder)

    def examples(
        self, model: Any, folder: pathlib.Path, scores: dict[Any, float], keys: Any
    ) -> dict[Any, Any]:
        of_report = REPORTS[f"{self.report}_examples"]
        return of_report.examples(self, model, folder, scores, keys)
