r"""Trains one model with several seeds at once, on JAX.

    python experiments/seeds.py --seeds 0,1,2,3,4 --model nsan \
        --output_dir saved_models/nsan

takes the arguments of experiments/run.py. Writes a run for each seed, such as
`saved_models/nsan_0`, which experiments/tables.py reads. A training step is one
computation for all seeds: weights, batches and random states have one more axis, over
which the step is mapped (`jax.vmap`). Each seed has the initial weights, batches and
learning rates of run.py on JAX. Training is by cross-entropy.

The weights after the last epoch are scored, once. No epoch is chosen: train to a
plateau. Captions are scored by CIDEr-D and by the log-probability of references only,
since METEOR and a figure take longer than the training of a small model. Finished runs
are skipped; interrupted runs start again.
"""

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
from keras_caption.atomic import write_json
from keras_caption.commands.command_line import Parser, import_library, names, start
from keras_caption.commands.configuration import make_config
from keras_caption.commands.run_arguments import parse
from keras_caption.errors import InputError
from keras_caption.formats.runs import SCALE
from keras_caption.settings.run import RUN
from keras_caption.tasks.captioning import Captioning
from keras_caption.tasks.reports.captioning import score_items
from keras_caption.training import phases
from keras_caption.training.callbacks import EpochSeeds
from keras_caption.training.run_directory import RunDirectory, describe

CHUNK = 25  # steps in one compiled function
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
    options, others = parser.parse_known_args(arguments)
    import_library()
    options_of_run, settings = parse(others, __doc__)
    runs = []
    for seed in options.seeds:
        task, config = make_config(options_of_run.config, {**settings, "seed": seed})
        run = Run(task(config), pathlib.Path(f"{options.output_dir}_{seed}"))
        if run.directory.is_finished():
            print(f"{run.directory.folder} is finished: nothing to do")
        else:
            runs.append(run)
    if runs:
        check(runs[0].task.config)
        share_data(runs)
        train(runs)


def check(config):
    """Raises `InputError` for settings that `train` does not implement."""
    values, reasons = config["training"], []
    for name, usual in (
        *(("scheduled_sampling", 0), ("accumulation", 1), ("average", 1)),
        *(("patience", 0), ("max_steps", None)),
    ):
        if values.get(name, usual) != usual:
            reasons.append(f"training.{name}={values[name]}")
    for name in ("strategy", "precision"):
        if config[name] != RUN[name]:
            reasons.append(f"{name}={config[name]}")
    if config.get("self_critical", {}).get("epochs"):
        reasons.append("self_critical.epochs")
    if reasons:
        raise InputError(
            f"Several seeds are not trained at once with {', '.join(reasons)}: use "
            "experiments/run.py."
        )


class Run:
    """The run of one seed: its task, its model and its folder."""

    def __init__(self, task, folder):
        self.task = task
        self.seed = task.config["seed"]
        description = describe(task.config, "cross-entropy")
        self.directory = RunDirectory(folder, description, monitor=task.monitor)
        self.history = []

    def make_model(self):
        """Makes a model with the initial weights of run.py."""
        task = self.task
        self.steps = task.steps_per_epoch("training")
        keras.utils.set_random_seed(self.seed)
        model = task.create_model(self.vocabularies)
        optimizer = task.make_optimizer("training", self.steps)
        model.compile(optimizer, task.make_loss())
        model.optimizer.build(model.trainable_variables)
        phases.set_decoding(task, model)
        return model

    def batches(self, model):
        """Yields batches of the model's inputs in NumPy, without end."""
        for batch in self.task.train_batches(model, "training", 0):
            yield in_numpy(model, batch)


def share_data(runs):
    """Shares the vocabularies and sizes of the first run with all runs.

    Captioners have no extractor: loading its network takes longer than training a small
    model.
    """
    first = runs[0].task
    vocabularies = first.build_vocabularies()
    if isinstance(first, Captioning):
        name, dataset = first.config["model"]["name"], first.data["dataset"]
        arguments = kc.datasets.model_sizes(name, dataset, first.builder)
    else:
        arguments = first.data_arguments()
    for run in runs:
        run.vocabularies = vocabularies
        run.task.data_arguments = lambda: arguments


def train(runs):
    """Trains the runs at once, and scores each."""
    models = [run.make_model() for run in runs]
    model, steps = models[0], runs[0].steps
    epochs = runs[0].task.config["training"]["epochs"]
    for run in runs:
        run.directory.begin()
    state = stacked([state_of(x) for x in models])
    step = compiled_steps(model)
    streams = [run.batches(model) for run in runs]
    shapes = None  # the largest so far, so that few functions are compiled
    validation = runs[0].task.validation(model)
    validation.set_model(model)
    validation_loss, validation.loss = ValidationLosses(model, validation), None
    for epoch in range(epochs):
        began, losses = time.monotonic(), []
        state = with_epoch_seeds(model, state, [run.seed for run in runs], epoch)
        for first in range(0, steps, CHUNK):
            count = min(CHUNK, steps - first)
            shapes, batches = padded(
                [[next(x) for x in streams] for _ in range(count)], shapes
            )
            state, loss = step(state, batches)
            losses.append(np.asarray(loss))
        losses = np.concatenate(losses).mean(axis=0)
        if not np.isfinite(losses).all():
            raise InputError(f"The losses of epoch {epoch + 1} are {losses}.")
        validation_losses = validation_loss(state)
        for number, run in enumerate(runs):
            logs = {"loss": losses[number], "val_loss": validation_losses[number]}
            restore(model, state, number)
            validation.on_epoch_end(epoch, logs)
            logs = {name: float(x) for name, x in logs.items()}
            done = {"epoch": epoch + 1, "iterations": (epoch + 1) * steps}
            run.history.append({**done, "scale": SCALE, **logs})
        print(
            f"Epoch {epoch + 1}/{epochs}: {time.monotonic() - began:.0f} s, "
            f"{len(runs)} seeds, mean loss {losses.mean():.4f}, of validation "
            f"{validation_losses.mean():.4f}",
            flush=True,
        )
    likelihoods = [None] * len(runs)
    if isinstance(runs[0].task, Captioning):
        likelihoods = reference_scores(runs[0].task, model, state)
    for number, run in enumerate(runs):
        restore(model, state, number)
        finish(run, model, likelihoods[number])


def state_of(model):
    """Three lists: trainable variables, other variables, and the optimizer's."""
    return [
        [variable.value for variable in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
        )
    ]


def in_numpy(model, batch):
    """The inputs of a model in a batch, as NumPy arrays."""
    inputs, *others = batch
    read = {name: inputs[name] for name in model.call_specs if name in inputs}
    return keras.tree.map_structure(np.asarray, (read, *others))


def stacked(states):
    return jax.tree.map(lambda *x: jax.numpy.stack(x), *states)


def restore(model, state, number):
    """Assigns the variables of one seed to the model, for scoring."""
    for variables, values in zip(
        (model.trainable_variables, model.non_trainable_variables), state, strict=False
    ):
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value[number])


def with_epoch_seeds(model, state, seeds, epoch):
    """The state with the random states of an epoch, as `EpochSeeds` sets them."""
    per_seed = []
    for seed in seeds:
        callback = EpochSeeds(seed)
        callback.set_model(model)
        callback.on_epoch_begin(epoch)
        per_seed.append([v.value for v in model.non_trainable_variables])
    others = [
        new if "seed_generator_state" in variable.path else old
        for variable, old, new in zip(
            model.non_trainable_variables, state[1], stacked(per_seed), strict=True
        )
    ]
    return [state[0], others, state[2]]


def compiled_steps(model):
    """A compiled function from stacked states and batches to states and losses."""

    def loss_of(weights, others, batch):
        inputs, targets, sample_weights = batch
        outputs, others = model.stateless_call(weights, others, inputs, training=True)
        return model.loss(targets, outputs, sample_weights), others

    def step(state, batch):
        weights, others, optimizer = state
        differentiated = jax.value_and_grad(loss_of, has_aux=True)
        (loss, others), gradients = differentiated(weights, others, batch)
        weights, optimizer = model.optimizer.stateless_apply(
            optimizer, gradients, weights
        )
        return [weights, others, optimizer], loss

    def steps(state, batches):
        return jax.lax.scan(jax.vmap(step), state, batches)

    return jax.jit(steps, donate_argnums=0)


class ValidationLosses:
    """Losses over the validation split, of all seeds at once.

    Args:
        model: The compiled model.
        validation: Validation callback of the task. Its `loss` has the batches.
    """

    def __init__(self, model, validation):
        self.batches = of_one_shape(model, validation.loss.batches)

        def losses(state, batches):
            def sums(batch):
                inputs, targets, weights = batch
                outputs, _ = model.stateless_call(*state[:2], inputs, training=False)
                tokens = jax.numpy.sum(weights, dtype="float32")
                return model.loss(targets, outputs, weights) * tokens, tokens

            losses, tokens = jax.lax.map(sums, batches)
            return losses.sum() / tokens.sum()

        self.losses = jax.jit(jax.vmap(losses, in_axes=(0, None)))

    def __call__(self, state):
        return np.asarray(self.losses(state, self.batches))


def of_one_shape(model, batches):
    """Stacks batches along a new first axis."""
    _, whole = padded([[in_numpy(model, batch)] for batch in batches])
    return jax.tree.map(lambda x: x[:, 0], whole)


def padded(batches, shapes=None):
    """Stacks batches of steps and seeds, with zeros as padding.

    Zeros are padding in every kind of input, and False in masks and weights.

    Args:
        batches: List of steps, each a list of the batches of all seeds.
        shapes: Least shapes of the tensors of a batch.

    Returns:
        The shapes, and one batch whose tensors have axes of steps and seeds in front.
    """
    flat = [[keras.tree.flatten(batch) for batch in row] for row in batches]
    sizes = [[x.shape for x in tensors] for row in flat for tensors in row]
    sizes += [shapes] if shapes else []
    shapes = [tuple(np.max(tensor, axis=0)) for tensor in zip(*sizes, strict=True)]
    tensors = []
    for number, shape in enumerate(shapes):
        dtype = flat[0][0][number].dtype
        whole = np.zeros((len(flat), len(flat[0]), *shape), dtype)
        for i, row in enumerate(flat):
            for k, seed_tensors in enumerate(row):
                x = seed_tensors[number]
                whole[(i, k, *(slice(size) for size in x.shape))] = x
        tensors.append(whole)
    return shapes, keras.tree.pack_sequence_as(batches[0][0], tensors)


def finish(run, model, likelihoods):
    """Scores and records a run.

    Args:
        run: `Run`.
        model: The model, with its weights.
        likelihoods: For a captioner, an entry of `reference_scores`, else `None`.
    """
    folder, task = run.directory.folder, run.task
    write_json(folder / "history.json", run.history)
    model.save(folder / "best.keras")
    if likelihoods is None:
        scores = task.evaluate(model, folder)
    else:
        examples = task.read("test")
        references = kc.datasets.references(examples)
        batches = kc.batches.image_batches(examples, ROWS, model.input_specs)
        captions, ids = model.caption(batches), kc.datasets.given_ids(task.builder)
        scores = score_items(captions, references, likelihoods, folder, ids)
    parameters = phases.count_parameters(model)
    run.directory.finish(model.name, scores, parameters=parameters)
    print(f"{folder}: " + ", ".join(f"{k} {x:.4f}" for k, x in scores.items()))


def reference_scores(task, model, state):
    """Log-probabilities per token of the references of the test split.

    Returns:
        List of a dict for each seed, from image id to a list of float.
    """
    examples = task.read("test")
    references = kc.datasets.references(examples)
    batches = of_one_shape(
        model,
        kc.batches.reference_batches(
            examples, model.vocabulary, ROWS, LONGEST, model.input_specs
        ),
    )

    def scores(state, batches):
        def of_batch(batch):
            inputs, targets, weights = batch
            logits, _ = model.stateless_call(*state[:2], inputs, training=False)
            logits = jax.nn.log_softmax(logits)
            chosen = jax.numpy.take_along_axis(logits, targets[..., None], axis=-1)
            sums = jax.numpy.sum(chosen[..., 0] * weights, axis=-1)
            return sums / jax.numpy.maximum(weights.sum(axis=-1), 1)

        return jax.lax.map(of_batch, batches)

    likelihoods = jax.jit(jax.vmap(scores, in_axes=(0, None)))(state, batches)
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
