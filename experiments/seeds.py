r"""Trains one model with several seeds at once, on JAX.

    python experiments/seeds.py --seeds 0,1,2,3,4 --model nsan \
        --output_dir saved_models/nsan

takes the arguments of experiments/run.py, and writes a run for each seed,
`saved_models/nsan_0` and so on, that experiments/tables.py reads. All seeds of a step
are one computation: their weights, batches and random states have an axis more, over
which the step is mapped (`jax.vmap`). Each seed has the weights, the batches and the
learning rates that run.py on JAX gives it, trained by cross-entropy.

The weights after the last epoch are scored, once: no epoch is chosen, so train to a
plateau. Captions are scored by CIDEr-D and by the log-probability of references only:
METEOR and a figure take longer than the training of a small model. A seed whose run is
finished is skipped; interrupted ones begin anew.
"""

import os
import pathlib
import sys
import time

if "keras" not in sys.modules:  # where it is, the variable would change others' only
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

CHUNK = 25  # steps that are compiled as one
ROWS = 50  # images that are captioned at once
LONGEST = 100  # words of a reference that is scored


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
    """Raises `InputError` for what is trained otherwise than `train` does."""
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
    """One seed: its task, its model, and the folder that it is written to."""

    def __init__(self, task, folder):
        self.task = task
        self.seed = task.config["seed"]
        description = describe(task.config, "cross-entropy")
        self.directory = RunDirectory(folder, description, monitor=task.monitor)
        self.history = []

    def make_model(self):
        """A new model, with the weights that run.py gives it."""
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
        """Endless batches in NumPy, of what the model reads."""
        for batch in self.task.train_batches(model, "training", 0):
            yield in_numpy(model, batch)


def share_data(runs):
    """Makes all runs use what the first one read of the data.

    Captioners get no network that makes features of photos: loading it takes longer
    than a small model's training.
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
    shapes = None  # of the largest tensors seen
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
        of_validation = validation_loss(state)
        for number, run in enumerate(runs):
            logs = {"loss": losses[number], "val_loss": of_validation[number]}
            restore(model, state, number)
            validation.on_epoch_end(epoch, logs)
            logs = {name: float(x) for name, x in logs.items()}
            done = {"epoch": epoch + 1, "iterations": (epoch + 1) * steps}
            run.history.append({**done, "scale": SCALE, **logs})
        print(
            f"Epoch {epoch + 1}/{epochs}: {time.monotonic() - began:.0f} s, "
            f"{len(runs)} seeds, mean loss {losses.mean():.4f}, of validation "
            f"{of_validation.mean():.4f}",
            flush=True,
        )
    likelihoods = [None] * len(runs)
    if isinstance(runs[0].task, Captioning):
        likelihoods = reference_scores(runs[0].task, model, state)
    for number, run in enumerate(runs):
        restore(model, state, number)
        finish(run, model, likelihoods[number])


def state_of(model):
    """Weights, other states and those of the optimizer, three lists of arrays."""
    return [
        [variable.value for variable in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
        )
    ]


def in_numpy(model, batch):
    """A batch without what the model does not read, in NumPy."""
    inputs, *others = batch
    read = {name: inputs[name] for name in model.call_specs if name in inputs}
    return keras.tree.map_structure(np.asarray, (read, *others))


def stacked(states):
    return jax.tree.map(lambda *x: jax.numpy.stack(x), *states)


def restore(model, state, number):
    """Assigns the weights of one seed to the model that is scored."""
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
    """Function of the state and of batches, both stacked, to the state and losses."""

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
    """The losses over the validation split, of all seeds at once.

    Args:
        model: The compiled model.
        validation: Callback of its task, whose `loss` has the batches of the split.
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
    """Batches as one, with an axis of steps in front."""
    _, whole = padded([[in_numpy(model, batch)] for batch in batches])
    return jax.tree.map(lambda x: x[:, 0], whole)


def padded(batches, shapes=None):
    """Batches of steps and seeds as one, zeros where a tensor is smaller.

    Zeros are padding in every kind of input, and False in masks and weights.

    Args:
        batches: List of lists, of a step each, of batches, of a seed each.
        shapes: Shapes that the tensors of a batch have at least.

    Returns:
        The shapes, and one batch whose tensors have axes of steps and seeds in front.
    """
    flat = [[keras.tree.flatten(batch) for batch in row] for row in batches]
    found = [[x.shape for x in tensors] for row in flat for tensors in row]
    found += [shapes] if shapes else []
    shapes = [tuple(np.max(of_one, axis=0)) for of_one in zip(*found, strict=True)]
    tensors = []
    for number, shape in enumerate(shapes):
        dtype = flat[0][0][number].dtype
        whole = np.zeros((len(flat), len(flat[0]), *shape), dtype)
        for i, row in enumerate(flat):
            for k, of_seed in enumerate(row):
                x = of_seed[number]
                whole[(i, k, *(slice(size) for size in x.shape))] = x
        tensors.append(whole)
    return shapes, keras.tree.pack_sequence_as(batches[0][0], tensors)


def finish(run, model, likelihoods):
    """Scores and records a run.

    Args:
        run: `Run`.
        model: The model, with its weights.
        likelihoods: Of a captioner, as `reference_scores` returns them.
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
            of_tokens = jax.numpy.take_along_axis(logits, targets[..., None], axis=-1)
            sums = jax.numpy.sum(of_tokens[..., 0] * weights, axis=-1)
            return sums / jax.numpy.maximum(weights.sum(axis=-1), 1)

        return jax.lax.map(of_batch, batches)

    found = np.asarray(jax.jit(jax.vmap(scores, in_axes=(0, None)))(state, batches))
    found = found.reshape(len(found), -1, found.shape[-1])  # images in one row
    return [
        {
            i: values[: len(texts)].tolist()
            for (i, texts), values in zip(references.items(), of_seed, strict=False)
        }
        for of_seed in found
    ]


if __name__ == "__main__":
    start(main)
