r"""Trains one model with several seeds at once, on JAX.

    python experiments/seeds.py --seeds 0,1,2,3,4 --model nsan \
        --output_dir saved_models/nsan

takes the arguments of experiments/run.py. Writes the run of each seed, such as
`saved_models/nsan_0`, with self-critical training in `scst` below it, as run.py does. A
training step is one computation for all seeds: weights, batches and random states have
one more axis, over which the step is mapped (`jax.vmap`). Each seed has the initial
weights, batches, samples and learning rates of run.py on JAX, and its best epoch is
kept.

With `--drift`, the history has how the queries of the encoder's first layer moved in
each epoch of cross-entropy, see experiments/papers/drift.py.

Captions are scored by CIDEr-D and by the log-probability of references only, since
METEOR and a figure take longer than the training of a small model. The same command
resumes an interrupted training after its last epoch, and skips finished runs. Seeds of
which some are an epoch ahead, or that are added later, wait for the others.
"""

import itertools
import os
import pathlib
import sys
import time

# Keras reads the variable when it is imported. Afterwards it would only affect child
# processes.
if "keras" not in sys.modules:
    os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np

import keras_caption as kc
from experiments.papers.drift import Drift, images_of
from keras_caption.apps.report.tasks.captioning import score_items
from keras_caption.base.errors import InputError
from keras_caption.commands.command_line import Parser, import_library, names, start
from keras_caption.commands.configuration import make_config
from keras_caption.commands.run_arguments import parse
from keras_caption.rewards import reads_of
from keras_caption.settings.run import RUN
from keras_caption.tasks.captioning import Captioning
from keras_caption.training import phases
from keras_caption.training.callbacks import EpochSeeds, model_of
from keras_caption.training.early_stopping import has_stalled
from keras_caption.training.run_directory import RunDirectory, describe

ROWS = 50  # images in a batch of the evaluation
LONGEST = 100  # greatest number of words of a scored reference


def main(arguments):
    parser = Parser("experiments/seeds.py", __doc__, add_help="--help" in arguments[:1])
    parser.add_argument("--seeds", type=names, required=True, help="of the runs")
    parser.add_argument(
        "--output_dir",
        required=True,
        help="folder of a run without its seed; all other arguments are run.py's",
    )
    parser.add_argument(
        "--drift", action="store_true", help="measure how queries move in training"
    )
    options, others = parser.parse_known_args(arguments)
    import_library()
    options_of_run, settings = parse(others, __doc__)
    tasks = {}
    for seed in options.seeds:
        task, config = make_config(options_of_run.config, {**settings, "seed": seed})
        check(config)
        tasks[pathlib.Path(f"{options.output_dir}_{seed}")] = task(config)
    share_data([*tasks.values()])
    run_phase([Run(task, folder) for folder, task in tasks.items()], options.drift)
    if config.get("self_critical", {}).get("epochs"):
        run_phase(
            [
                Run(task, folder / "scst", start=folder / "best.keras")
                for folder, task in tasks.items()
            ]
        )


def check(config):
    """Raises `InputError` for settings that `train` does not implement."""
    values, reasons = config["training"], []
    for name, usual in (
        *(("scheduled_sampling", 0), ("accumulation", 1), ("average", 1)),
        ("max_steps", None),
    ):
        if values.get(name, usual) != usual:
            reasons.append(f"training.{name}={values[name]}")
    for name in ("strategy", "precision"):
        if config[name] != RUN[name]:
            reasons.append(f"{name}={config[name]}")
    halved = config.get("self_critical", {}).get("halved_after")
    if halved:
        reasons.append(f"self_critical.halved_after={halved}")
    if reasons:
        raise InputError(
            f"Several seeds are not trained at once with {', '.join(reasons)}: use "
            "experiments/run.py."
        )


def share_data(tasks):
    """Shares the sizes of the first task's data with all tasks.

    Captioners have no extractor: loading its network takes longer than training a small
    model.
    """
    first = tasks[0]
    vocabularies = first.build_vocabularies()
    if isinstance(first, Captioning):
        name, dataset = first.config["model"]["name"], first.data["dataset"]
        arguments = kc.datasets.model_sizes(name, dataset, first.builder)
    else:
        arguments = first.data_arguments()
    for task in tasks:
        task.build_vocabularies = lambda: vocabularies
        task.data_arguments = lambda: arguments


class Run:
    """The run of one seed in one phase.

    Args:
        task: The task.
        folder: `pathlib.Path` of the phase.
        start: Path of the model that self-critical training starts from.
    """

    def __init__(self, task, folder, start=None):
        self.task, self.start = task, start
        self.seed = task.config["seed"]
        self.group = "training" if start is None else "self_critical"
        self.values = task.config[self.group]
        self.steps = task.steps_per_epoch(self.group)
        self.directory = RunDirectory(folder, {}, resume=True, monitor=task.monitor)
        self.checkpoint = self.directory.checkpoint

    def is_finished(self):
        """Whether it is trained and scored; describes it first."""
        objective = "cross-entropy" if self.start is None else "self-critical"
        self.directory.description = describe(self.task.config, objective, self.start)
        self.directory.check_resumable()
        return self.directory.is_finished()

    def load(self):
        """Makes the trainer, as run.py does, or loads it to resume."""
        model, self.epoch = self.directory.load()
        resumed = model is not None
        if not resumed and self.start is None:
            keras.utils.set_random_seed(self.seed)
            model = self.task.create_model(self.task.build_vocabularies())
        elif not resumed:
            model = self.task.load_model(self.start)
        if resumed:
            optimizer = model.optimizer
        else:
            optimizer = self.task.make_optimizer(self.group, self.steps)
        phases.set_decoding(self.task, model)
        self.directory.folder.mkdir(parents=True, exist_ok=True)
        if self.start is None:
            self.trainer = model
            model.compile(optimizer, self.task.make_loss())
        else:
            reward = self.task.make_reward(model, self.directory, resumed)
            self.trainer = phases.self_critical_trainer(self.task, model, reward)
            self.trainer.compile(optimizer)
        if not optimizer.built:
            optimizer.build(model.trainable_variables)
        if not self.is_trained:
            self.directory.begin()
        self.checkpoint.set_model(self.trainer)

    @property
    def is_trained(self):
        stop = self.values.get("stop_on", self.task.monitor)
        stalled = has_stalled(
            self.checkpoint.history, stop, self.values.get("patience", 0)
        )
        return self.epoch >= self.values["epochs"] or stalled

    def batches(self):
        """Yields batches in NumPy, without end."""
        model = model_of(self.trainer)
        for batch in self.task.train_batches(model, self.group, self.epoch):
            yield in_numpy(self.trainer, batch)


def run_phase(runs, with_drift=False):
    """Trains the runs of a phase that are not finished, and scores them."""
    todo = [run for run in runs if not run.is_finished()]
    for run in runs:
        if run not in todo:
            print(f"{run.directory.folder} is finished: nothing to do")
    for run in todo:
        run.load()
    while active := [run for run in todo if not run.is_trained]:
        epoch = min(run.epoch for run in active)
        behind = [run for run in active if run.epoch == epoch]
        train(
            behind,
            min((run.epoch for run in active if run.epoch > epoch), default=None),
            with_drift,
        )
    if todo:
        score(todo)


def train(runs, until=None, with_drift=False):
    """Trains runs at once that have done the same epochs.

    Args:
        runs: List of `Run`.
        until: int, number of epochs after which to stop. Defaults to the last.
        with_drift: bool, whether histories have how queries moved.
    """
    trainer, steps, first = runs[0].trainer, runs[0].steps, runs[0].epoch
    model = model_of(trainer)
    step, state = compiled_step(trainer), stacked(runs)
    seeds = np.array([run.seed for run in runs], "int32")
    streams = [run.batches() for run in runs]
    validation = runs[0].task.validation(model)
    validation.set_model(model)
    validation_loss, validation.loss = ValidationLosses(trainer, validation), None
    images = images_of(runs[0].task, model) if with_drift else None
    drifts = {run: Drift(run.trainer, images) for run in runs if with_drift}
    for epoch in range(first, until or runs[0].values["epochs"]):
        began = time.monotonic()
        state = begin_epoch(runs, state, epoch)
        for _ in range(steps):
            logs, state = step(state, seeds, padded([next(x) for x in streams]))
        trained = time.monotonic() - began
        logs = {name: np.asarray(x) for name, x in logs.items()}
        if not np.isfinite(logs["loss"]).all():
            raise InputError(f"The losses of epoch {epoch + 1} are {logs['loss']}.")
        logs["val_loss"] = validation_loss(state)
        # The first run is the last: its trainer, which generates for all, ends with
        # its own state.
        for number, run in reversed([*enumerate(runs)]):
            if run.is_trained:  # before the others
                continue
            for restored in {run.trainer, trainer}:
                restore(restored, state, number)
            row = {name: float(x[number]) for name, x in logs.items()}
            if run in drifts:
                row |= drifts[run].of_epoch()
            validation.on_epoch_end(epoch, row)
            run.checkpoint.on_epoch_end(epoch, row)
            run.epoch = epoch + 1
        means = ", ".join(f"{name} {x.mean():.4f}" for name, x in logs.items())
        print(
            f"Epoch {epoch + 1}/{runs[0].values['epochs']}: {trained:.0f} s and "
            f"{time.monotonic() - began - trained:.0f} s of validation, {len(runs)} "
            f"seeds, {means}",
            flush=True,
        )
        if all(run.is_trained for run in runs):
            return


# === States of all seeds ===
# The values of `ReplicaTraining.step_variables`. The first axis of a value is that of
# the seeds; tables of a reward, the same for all, have none.


def axes_of(trainer):
    """The axis of seeds of each value: 0, or `None` without one."""
    tables = {id(v) for v in getattr(getattr(trainer, "reward", None), "variables", ())}
    return tuple(
        [None if id(v) in tables else 0 for v in group]
        for group in trainer.step_variables
    )


def stacked(runs):
    """The states of runs as one."""
    states = [[[v.value for v in x] for x in r.trainer.step_variables] for r in runs]
    return tuple(
        [
            values[0] if axis is None else jax.numpy.stack(values)
            for axis, *values in zip(axes, *groups, strict=True)
        ]
        for axes, *groups in zip(axes_of(runs[0].trainer), *states, strict=True)
    )


def restore(trainer, state, number):
    """Assigns the state of one seed to the variables of a trainer."""
    groups = trainer.step_variables, axes_of(trainer), state
    for variables, axes, values in zip(*groups, strict=True):
        for variable, axis, value in zip(variables, axes, values, strict=True):
            if axis is not None:
                variable.assign(value[number])


def begin_epoch(runs, state, epoch):
    """The state with the random states of an epoch, and logs of no step."""
    for run in runs:
        callback = EpochSeeds(run.seed)
        callback.set_model(run.trainer)
        callback.on_epoch_begin(epoch)
        run.trainer.reset_metrics()
    weights, others, optimizer, _ = state
    _, fresh, _, metrics = stacked(runs)
    variables = runs[0].trainer.non_trainable_variables
    others = [
        new if "seed_generator_state" in variable.path else old
        for variable, old, new in zip(variables, others, fresh, strict=True)
    ]
    return weights, others, optimizer, metrics


def compiled_step(trainer):
    """A compiled function of the states, seeds and batches to logs and states."""
    axes = axes_of(trainer)

    def step(state, seed, batch):
        if hasattr(trainer, "reward"):
            trainer.seed = seed  # of the samples
        return trainer.train_step(state, batch)

    mapped = jax.vmap(step, in_axes=(axes, 0, 0), out_axes=(0, axes))
    return jax.jit(mapped, donate_argnums=0)


# === Batches ===


def in_numpy(trainer, batch):
    """What a step reads of a batch, as NumPy arrays."""
    inputs, *others = batch
    read = model_of(trainer).call_specs
    if hasattr(trainer, "reward"):
        needed = "references", *reads_of(trainer.reward)
        read, others = {*trainer.model.input_specs, *needed}, []
    inputs = {name: inputs[name] for name in read if name in inputs}
    return keras.tree.map_structure(np.asarray, (inputs, *others))


def padded(batches):
    """Stacks batches of one structure, with zeros as padding.

    Zeros are padding in every kind of input, and False in masks and weights. Batches
    have few shapes already, see `Task.few_shapes`, and so has the largest of several.
    """
    tensors = []
    for arrays in zip(*map(keras.tree.flatten, batches), strict=True):
        shape = np.max([x.shape for x in arrays], axis=0)
        whole = np.zeros((len(arrays), *shape), arrays[0].dtype)
        for row, x in zip(whole, arrays, strict=True):
            row[tuple(map(slice, x.shape))] = x
        tensors.append(whole)
    return keras.tree.pack_sequence_as(batches[0], tensors)


# === Validation and scores ===


class ValidationLosses:
    """Losses over the validation split, of all seeds at once.

    Args:
        trainer: A trainer of the model, whose states are given.
        validation: Validation callback of the task. Its `loss` has the batches.
    """

    def __init__(self, trainer, validation):
        model = model_of(trainer)
        batches = [in_numpy(model, x) for x in validation.loss.batches]
        self.batches, self.trainer = padded(batches), trainer

        def losses(weights, others, batches):
            def sums(batch):
                inputs, targets, valid = batch
                outputs, _ = model.stateless_call(
                    weights, others, inputs, training=False
                )
                tokens = jax.numpy.sum(valid, dtype="float32")
                return model.loss(targets, outputs, valid) * tokens, tokens

            losses, tokens = jax.lax.map(sums, batches)
            return losses.sum() / tokens.sum()

        self.losses = jax.jit(jax.vmap(losses, in_axes=(0, 0, None)))

    def __call__(self, state):
        names = [id(v) for group in self.trainer.step_variables for v in group]
        values = dict(zip(names, itertools.chain(*state), strict=True))
        model = model_of(self.trainer)
        groups = model.trainable_variables, model.non_trainable_variables
        weights, others = ([values[id(v)] for v in group] for group in groups)
        return np.asarray(self.losses(weights, others, self.batches))


def score(runs):
    """Scores the best models of runs, and marks the runs as finished."""
    models = [kc.models.load(run.directory.folder) for run in runs]
    task, model = runs[0].task, models[0]
    phases.set_decoding(task, model)
    likelihoods = [None] * len(runs)
    if isinstance(task, Captioning):
        likelihoods = reference_scores(task, models)
    parameters = phases.count_parameters(model)
    weights = [other.get_weights() for other in models]
    for run, values, of_run in zip(runs, weights, likelihoods, strict=True):
        model.set_weights(values)
        folder = run.directory.folder
        if of_run is None:
            scores = run.task.evaluate(model, folder)
        else:
            examples = run.task.read("test")
            references = kc.datasets.references(examples)
            batches = kc.batches.image_batches(examples, ROWS, model.input_specs)
            captions = model.caption(batches)
            ids = kc.datasets.given_ids(run.task.builder)
            scores = score_items(captions, references, of_run, folder, ids)
        run.directory.finish(model.name, scores, parameters=parameters)
        print(f"{folder}: " + ", ".join(f"{k} {x:.4f}" for k, x in scores.items()))


def reference_scores(task, models):
    """Log-probabilities per token of the references of the test split.

    Returns:
        List of a dict for each model, from image id to a list of float.
    """
    model, examples = models[0], task.read("test")
    references = kc.datasets.references(examples)
    batches = kc.batches.reference_batches(
        examples, model.vocabulary, ROWS, LONGEST, model.input_specs
    )
    batches = padded([in_numpy(model, batch) for batch in batches])

    def scores(weights, others, batches):
        def of_batch(batch):
            inputs, targets, valid = batch
            logits, _ = model.stateless_call(weights, others, inputs, training=False)
            logits = jax.nn.log_softmax(logits)
            chosen = jax.numpy.take_along_axis(logits, targets[..., None], axis=-1)
            sums = jax.numpy.sum(chosen[..., 0] * valid, axis=-1)
            return sums / jax.numpy.maximum(valid.sum(axis=-1), 1)

        return jax.lax.map(of_batch, batches)

    groups = (
        [x.trainable_variables for x in models],
        [x.non_trainable_variables for x in models],
    )
    weights, others = (
        [jax.numpy.stack([v.value for v in x]) for x in zip(*group, strict=True)]
        for group in groups
    )
    likelihoods = jax.jit(jax.vmap(scores, in_axes=(0, 0, None)))(
        weights, others, batches
    )
    likelihoods = np.asarray(likelihoods)
    # (seeds, batches, images, references) to (seeds, images, references)
    likelihoods = likelihoods.reshape(len(likelihoods), -1, likelihoods.shape[-1])
    return [
        {
            i: values[: len(texts)].tolist()
            for (i, texts), values in zip(references.items(), seed_scores, strict=False)
        }
        for seed_scores in likelihoods
    ]


if __name__ == "__main__":
    start(main)
