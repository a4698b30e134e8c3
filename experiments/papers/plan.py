r"""What is trained for the tables in docs/results, the most wanted first.

    python experiments/tables.py --run --all --data DATA --budget 60

works through `PLAN`. All seeds of a cell are trained at once (experiments/seeds.py).
`{data}` in arguments stands for the folder `--data`, which has `coco_val2017`, the
annotations of COCO's validation images, `coco_questions`, of COCO-QA, and `multi30k`;
`{prepared}` for a folder that a script of `PREPARED` writes.
"""

import dataclasses
import importlib
import pathlib

from keras_caption.papers import CROSS_ENTROPY, SELF_CRITICAL

from experiments.papers.rows import TABLES, cells_of, name_of_cell

CONFIGS, PAPERS = "experiments/configs", "experiments/papers"
SEEDS = 5
# A small model, trained briefly.
SMALL = (
    *("--config.model.model_dim=64", "--config.model.feedforward_dim=256"),
    *("--config.model.num_heads=4", "--config.model.decoder_layers=1"),
    *("--config.training.batch_size=8", "--config.training.warmup_epochs=1"),
    *("--config.training.learning_rate=2e-3", "--config.training.decay_every=1"),
)
COCO_OBJECTS = (
    f"--config={CONFIGS}/captioning/coco_objects.py",
    "--data_dir={data}/coco_val2017",
)
TRANSLATION = f"--config={CONFIGS}/translation/multi30k.py"
MULTI30K = (TRANSLATION, "--data_dir={data}/multi30k")
CHARACTERS = (
    *("--epochs=5", "--config.data.max_tokens=256"),
    "--config.decoding.max_length=256",
)
# Scripts that write what is trained on, by set-up.
PREPARED = {"multi30k_codes": "papers/coded_text.py"}
# Arguments of experiments/run.py, by what is trained on, and at which scale.
SETUPS = {
    "coco_objects": COCO_OBJECTS,
    # At the width of NG-SAN's paper.
    "coco_objects_wide": (
        *(*COCO_OBJECTS, "--config.model.model_dim=512"),
        *("--config.model.feedforward_dim=2048", "--config.model.num_heads=8"),
    ),
    "scenes": (),
    **{
        # At 2e-3, four blocks learn worse than one. Trained to a plateau.
        f"proposals{suffix}": (
            f"--import={PAPERS}/proposals.py",
            f"--import={PAPERS}/noise.py",
            *("--dataset=proposals", *SMALL, "--epochs=60"),
            "--config.training.learning_rate=8e-4",
            *("--config.training.decay_after=8", "--config.training.decay_every=4"),
            *("--config.training.patience=3", "--config.training.stop_on=val_loss"),
            *more,
        )
        for suffix, more in (
            ("", ()),
            ("_pre", ("--config.model.norm_position=pre",)),
        )
    },
    **{
        data: (
            f"--import={PAPERS}/placed_scenes.py",
            *(f"--dataset={data}", *SMALL, "--epochs=4"),
            *("--config.training.decay_after=2", "--config.model.num_layers=1"),
        )
        for data in ("unplaced_scenes", "half_placed_scenes")
    },
    **{
        f"asked_scenes_{absent}": (
            f"--import={PAPERS}/gates.py",
            f"--import={PAPERS}/asked_scenes.py",
            f"--dataset=asked_scenes_{absent}",
            *("--config.model.model_dim=64", "--config.model.embedding_dim=64"),
            *("--config.model.dropout=0", "--config.data.captions_per_image=2"),
            *("--epochs=6", "--config.training.learning_rate=2e-3"),
            *("--config.training.decay_after=4", "--config.training.decay_every=1"),
        )
        for absent in (0, 30)
    },
    "multi30k": (*MULTI30K, "--epochs=5"),
    "multi30k_characters": (*MULTI30K, *CHARACTERS),
    "multi30k_codes": (TRANSLATION, "--data_dir={prepared}", "--epochs=5"),
    "coco_qa": (
        f"--config={CONFIGS}/question_answering/coco_qa.py",
        "--data_dir={data}/coco_questions/cocoqa_val2017.json",
        "--config.data.images_dir={data}/coco_val2017",
    ),
    **{
        f"grid_scenes_{cells}": (
            f"--import={PAPERS}/grid_scenes.py",
            *(f"--dataset=grid_scenes_{cells}", *SMALL),
            *("--epochs=5", "--config.training.decay_after=3"),
        )
        for cells in (4, 9, 14)
    },
    "moving_scenes": (
        *("--config.model.model_dim=128", "--epochs=8"),
        *("--config.training.decay_after=5", "--config.training.learning_rate=1e-3"),
    ),
}


def register(setup):
    """Registers what a set-up imports, as its runs did."""
    for argument in SETUPS[setup]:
        name, _, path = argument.partition("=")
        if name == "--import":
            importlib.import_module(f"experiments.papers.{pathlib.Path(path).stem}")


@dataclasses.dataclass(frozen=True)
class Training:
    """The cells of a table of docs/results.

    Attributes:
        csv: Name of the CSV file in docs/results.
        table: Name of a table of `experiments.papers.rows.TABLES`.
        setup: One of `SETUPS`. Tables of one set-up share their cells.
        cells: Names of cells to train, of `name_of_cell`; all if empty.
        seeds: Number of seeds of a cell.
        scst_epochs: Epochs of self-critical training after cross-entropy.
        minutes: Processor minutes that a cell took in the mean, or was found to take by
            some of its epochs; `None` if that was not measured.
        at_once: bool, whether all seeds of a cell are trained together, on JAX; else
            one after another, on TensorFlow.
        has_ensembles: bool, whether the seeds of a cell are scored together, too.
        with_drift: bool, whether the drift of queries is measured, see
            experiments/papers/drift.py.
        shared: dict from cells of the table to cells of other tables of the set-up that
            are the same, such as those with the usual number of layers.
    """

    csv: str
    table: str
    setup: str
    cells: tuple[str, ...] = ()
    seeds: int = SEEDS
    scst_epochs: int = 0
    minutes: float | None = None
    at_once: bool = True
    has_ensembles: bool = False
    with_drift: bool = False
    shared: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def shown(self):
        """Names of the cells of the set-up that the table shows."""
        names = map(name_of_cell, cells_of(self.table))
        return {self.shared.get(name, name) for name in names}

    @property
    def rows(self):
        """The rows of the table that are trained, by the names of their cells."""
        rows = {name_of_cell(row): row for row in cells_of(self.table)}
        return {name: rows[name] for name in self.cells or rows}

    @property
    def phases(self):
        return [CROSS_ENTROPY, *[SELF_CRITICAL][: self.scst_epochs]]

    def runs_of(self, cell):
        """The names of the folders of a cell's runs."""
        names = [f"{cell}_{seed}" for seed in range(self.seeds)]
        return [*names, f"{cell}_ensemble"] if self.has_ensembles else names

    def arguments_of_setup(self, data, prepared="PREPARED"):
        """Arguments of experiments/run.py for all rows, a list of str."""
        folders = {"data": data, "prepared": prepared}
        return [x.format_map(folders) for x in SETUPS[self.setup]]

    def arguments(self, row, data, prepared="PREPARED"):
        """Arguments of experiments/run.py for a row, a list of str."""
        values = {**row.overrides, **TABLES[self.table].settings}
        if self.scst_epochs:
            values["self_critical.epochs"] = self.scst_epochs
        return [
            *self.arguments_of_setup(data, prepared),
            f"--model={row.model}",
            *(f"--config.{name}={value}" for name, value in values.items()),
        ]


def _layers(csv, setup, minutes, *layers):
    cells = [f"{model}_{number}" for number in layers for model in ("san", "nsan")]
    usual = {f"{model}_2": model for model in ("san", "nsan")}
    return Training(
        *(csv, "ngsan_1", setup, tuple(cells)), minutes=minutes, shared=usual
    )


def _norms(setup, layers, norms, seeds):
    cells = tuple(f"san_{layers}_{norm}" for norm in norms)
    return Training(
        *(f"effects_{setup}", "effects_norms", setup, cells, seeds), with_drift=True
    )


PLAN = (
    # README's.
    *(
        Training(data, "captioners", data, scst_epochs=epochs, has_ensembles=True)
        for data, epochs in (("scenes", 3), ("coco_objects", 5))
    ),
    # Table 1 of NG-SAN.
    _layers("ngsan_1_scenes", "scenes", 22, 1),
    _layers("ngsan_1_scenes", "scenes", None, 4, 6),
    _layers("ngsan_1", "coco_objects", None, 1, 4, 6),
    # NSA with the power to see the paper's effect, then its controls.
    _norms("proposals", 1, (None, "instance"), 40),
    _norms("proposals", 4, (None, "instance"), 40),
    _norms("proposals_pre", 1, (None, "instance"), 40),
    _norms("proposals_pre", 4, (None, "instance"), 40),
    _norms("proposals", 1, ("instance_centre", "instance_noisy", "noise"), 40),
    # Whether width decides.
    _norms("coco_objects_wide", 1, (None, "instance"), 3),
    # Normalizations and geometries.
    Training("ngsan_2", "ngsan_2", "coco_objects"),
    Training("ngsan_3", "ngsan_3", "coco_objects"),
    Training("ngsan_4", "ngsan_4", "coco_objects"),
    Training("ngsan_4_unplaced", "ngsan_4", "unplaced_scenes", minutes=5),
    Training("effects_half_placed", "effects_boxes", "half_placed_scenes", minutes=5),
    # AoANet.
    Training("aoanet_4", "aoanet_4", "coco_objects"),
    Training("aoanet_4_scenes", "aoanet_4", "scenes"),
    Training("effects_gates_0", "effects_gates", "asked_scenes_0", minutes=5),
    Training("effects_gates_30", "effects_gates", "asked_scenes_30", minutes=5),
    Training("effects_lstm", "effects_lstm", "asked_scenes_0", minutes=5),
    # Areas.
    Training("effects_areas", "effects_areas", "multi30k"),
    Training(
        *("effects_areas_characters", "effects_areas_characters"),
        "multi30k_characters",
    ),
    Training("effects_areas_codes", "effects_areas_codes", "multi30k_codes"),
    # The temperature.
    *(
        Training(f"effects_temperature_{x}", "effects_temperature", f"grid_scenes_{x}")
        for x in (4, 9, 14)
    ),
    Training("ngsan_7_moving", "ngsan_7", "moving_scenes"),
    # An LSTM takes longer on JAX.
    Training("effects_questions", "effects_questions", "coco_qa", at_once=False),
    # How far self-critical training goes.
    Training(
        *("effects_rewarded", "effects_rewarded", "coco_objects"),
        scst_epochs=15,
        has_ensembles=True,
    ),
)
