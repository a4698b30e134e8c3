r"""Trains a captioning model, scores it, shows its captions and exports it.

    python experiments/run.py --model ngsan

trains on built-in data. Everything lands in one folder, `--output_dir`; the same
command with `--resume` resumes an interrupted run. Every value of
the model, the training and the decoding can be set, for instance

    python experiments/run.py --model gsan --dataset coco_objects \
        --data_dir annotations --config.model.num_layers=3 \
        --config.training.batch_size=16
"""

import contextlib
import hashlib
import importlib
import math
import os
import pathlib
import re
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # no notes on start-up

import keras
import ml_collections
import tensorflow as tf
from absl import app, flags
from command import start
from ml_collections import config_flags
from recorded import is_finished, refuse_others, refuse_used
from report import finish
from settings import validate

import keras_caption as kc
from keras_caption.atomic import exclusive, write_json
from keras_caption.errors import hint
from keras_caption.formats.runs import read_begun

KEPT_IN_MEMORY = 2 * 2**30  # bytes of training data, at most
# What of --config a run depends on.
GROUPS = {
    "cross-entropy": ("model", "training", "decoding"),
    "self-critical": ("model", "training", "self_critical", "decoding"),
    "ensemble": ("decoding",),
}
PHASES = {"cross-entropy": "training", "self-critical": "self_critical"}
RECIPES = pathlib.Path(__file__).parent / "configs"
FLAGS = flags.FLAGS
flags.DEFINE_string("model", "ngsan", f"One of {', '.join(kc.models.presets())}.")
flags.DEFINE_string(
    "dataset",
    "scenes",
    "scenes (built in), coco_objects, or prepared: what prepare.py made of photos.",
)
flags.DEFINE_string(
    "data_dir",
    None,
    "For coco_objects: folder of captions_*.json, instances_*.json and Karpathy's "
    "split JSON; if omitted, TFDS downloads coco_captions. For prepared: the "
    "folder that prepare.py filled.",
)
flags.DEFINE_enum(
    "recipe",
    None,
    sorted(path.stem for path in RECIPES.glob("*.py") if path.stem != "defaults"),
    "Values of --config to begin with; if omitted, those made for the dataset. "
    "Those whose names end in _coco are the papers'.",
)
flags.DEFINE_integer(
    "epochs",
    None,
    "Epochs of cross-entropy; defaults to the config's.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "scst_epochs",
    None,
    "Epochs of self-critical training after it, or the config's.",
    lower_bound=0,
)
flags.DEFINE_string(
    "start_from",
    None,
    "Saved captioner, or a run's folder, that self-critical training starts from, in "
    "place of cross-entropy.",
)
flags.DEFINE_integer(
    "seed",
    0,
    "Of the weights, the order of the data and dropout.",
    lower_bound=0,
    upper_bound=2**31 - 1,
)
flags.DEFINE_string(
    "output_dir",
    None,
    "Where the run's files go. Defaults to saved_models/MODEL_DATASET, or "
    "saved_models/ensemble_DATASET.",
)
flags.DEFINE_list(
    "ensemble",
    None,
    "Saved captioners, or folders of runs, separated by commas: nothing is trained, "
    "they are scored and exported as one.",
)
flags.DEFINE_enum(
    "strategy",
    "one_device",
    ["one_device", "mirrored", "multi_worker", "tpu"],
    "What to train on: one device, all GPUs of this machine, the workers of TF_CONFIG "
    "or a TPU. They share each batch.",
)
flags.DEFINE_enum(
    "mixed_precision",
    None,
    ["bfloat16", "float16"],
    "Compute in half precision, keep weights in float32.",
)
flags.DEFINE_bool(
    "deterministic", False, "Only operations that repeat to the bit, also on GPUs."
)
flags.DEFINE_bool(
    "spice", False, "Compute SPICE too; its first use downloads several hundred MB."
)
flags.DEFINE_bool("resume", False, "Resume the run in output_dir, if there is one.")


def default_config():
    """What --config is where nothing of it is given, by --model and --recipe."""
    arguments = kc.models.arguments(FLAGS.model)
    recipe = importlib.import_module(f"configs.{FLAGS.recipe or FLAGS.dataset}")
    values = recipe.get_config()
    arguments |= {k: v for k, v in values.model.items() if k in arguments}
    return ml_collections.ConfigDict(
        {
            "model": {
                name: ml_collections.config_dict.placeholder(str)
                if value is None
                else value
                for name, value in arguments.items()
            },
            "training": values.training,
            "self_critical": values.self_critical,
            "decoding": values.decoding,
        }
    )


def parse_flags(argv):
    """Defines --config, whose values depend on the model and the dataset."""
    try:
        FLAGS([arg for arg in argv if not arg.startswith("--help")], known_only=True)
        kc.data.check_name(FLAGS.dataset)
        config = default_config()
    except (kc.InputError, flags.Error) as error:
        sys.exit(f"error: {error}")
    listed = "\n".join(
        f"--config.{group}.{name}={value}"
        for group, of_group in config.items()
        for name, value in of_group.items()
    )
    try:  # it looks at the command line at once
        config_flags.DEFINE_config_dict(
            "config", config, f"Values of --model and --recipe:\n{listed}"
        )
    except AttributeError as error:
        name = re.search(r"\w+", str(error)).group()
        names = [name for group in config.values() for name in group]
        sys.exit(f"error: --config has no {name!r}. {hint(name, names)}")
    return app.parse_flags_with_usage(argv)


def main(argv):
    if len(argv) > 1:
        sys.exit(f"error: unexpected argument {argv[1]!r}; see --help.")
    run(FLAGS.config)


def run(config):
    config = settings_of(config)
    if FLAGS.mixed_precision:
        keras.config.set_dtype_policy(f"mixed_{FLAGS.mixed_precision}")
    if FLAGS.deterministic:
        tf.config.experimental.enable_op_determinism()
    strategy = make_strategy(FLAGS.strategy)
    builder = kc.data.load(FLAGS.dataset, FLAGS.data_dir)
    name = "ensemble" if FLAGS.ensemble else FLAGS.model
    top = pathlib.Path(FLAGS.output_dir or f"saved_models/{name}_{FLAGS.dataset}")
    phases = phases_of(config, top)
    check_data(config, builder, phases, strategy)
    with contextlib.ExitStack() as stack:
        if is_chief(strategy):
            for folder in dict.fromkeys([top, *phases.values()]):
                stack.enter_context(exclusive(folder))
                if not FLAGS.resume:
                    refuse_used(folder)
        start = FLAGS.start_from
        for objective, folder in phases.items():
            run_phase(objective, folder, start, config, builder, strategy)
            start = folder / "best.keras"


def settings_of(config):
    """The values of --config for a run, with those of other flags, validated."""
    if FLAGS.ensemble is not None and not all(FLAGS.ensemble or [""]):
        raise kc.InputError("--ensemble needs names of saved captioners.")
    if FLAGS.epochs:
        config.training.epochs = FLAGS.epochs
    if FLAGS.scst_epochs is not None:
        config.self_critical.epochs = FLAGS.scst_epochs
    if FLAGS.start_from is not None and not config.self_critical.epochs:
        raise kc.InputError("--start_from is for self-critical training only.")
    values = config.to_dict()
    for name, value in values["model"].items():
        if value == "None":  # as --help writes it
            values["model"][name] = None
    return ml_collections.ConfigDict(validate(values))


def phases_of(config, folder):
    """The phases of a run, a dict from objective to folder."""
    if FLAGS.ensemble:
        return {"ensemble": folder}
    phases = {} if FLAGS.start_from is not None else {"cross-entropy": folder}
    if config.self_critical.epochs:
        phases["self-critical"] = folder / "scst"
    return phases


def check_data(config, builder, phases, strategy):
    """Raises `InputError` if a phase could not read its data."""
    trained = [PHASES[objective] for objective in phases if objective in PHASES]
    for split in ("train", "val", "test") if trained else ("test",):
        kc.data.read(builder, split)
    for group in trained:
        examples = kc.data.read(builder, "train")
        count_steps(examples, config[group].batch_size, strategy)


def run_phase(objective, folder, start, config, builder, strategy):
    """Trains, scores and exports, or resumes where an interrupted run stopped.

    Args:
        objective: One of `GROUPS`.
        folder: Folder of the phase's files.
        start: Saved captioner that self-critical training starts from.
        config: Values of --config.
        builder: TFDS builder.
        strategy: Distribution strategy.
    """
    about = describe(config, objective, start)
    if FLAGS.resume and is_finished(folder, about):
        print(f"{folder} is finished: nothing to do")
        return
    if objective == "ensemble":
        model = kc.models.Ensemble(FLAGS.ensemble)
        check_reads(model, builder)
        finish(model, config.decoding, builder, folder, about, FLAGS.spice)
        return
    if FLAGS.resume:
        refuse_others(folder, about)
    if objective == "cross-entropy":
        train(config, builder, folder, about, strategy)
    else:
        train_self_critically(config, start, builder, folder, about, strategy)
    if is_chief(strategy):
        model = kc.models.load(folder)
        about["parameters"] = count_parameters(model)
        finish(model, config.decoding, builder, folder, about, FLAGS.spice)


def describe(config, objective, start):
    """What a run is, for its `config.json`, before there is anything of it."""
    defaults, groups = default_config(), GROUPS[objective]
    return {
        "dataset": FLAGS.dataset,
        "data_dir": FLAGS.data_dir,
        "seed": FLAGS.seed,
        "precision": FLAGS.mixed_precision or "float32",
        "strategy": FLAGS.strategy,
        "objective": objective,
        "members": digests(FLAGS.ensemble or []),
        **({"member_objectives": objectives()} if objective == "ensemble" else {}),
        "start": digests([str(start)] if objective == "self-critical" else []),
        "config": {group: config[group].to_dict() for group in groups},
        "overrides": {
            f"{group}.{name}": value
            for group in groups
            for name, value in config[group].items()
            if value != defaults[group][name]
        }
        | ({"recipe": FLAGS.recipe} if FLAGS.recipe else {})
        | ({"precision": FLAGS.mixed_precision} if FLAGS.mixed_precision else {}),
    }


def digests(paths):
    """What tells saved captioners from others at the same paths, a dict."""
    found = {}
    for path in paths:
        with open(kc.models.file_of(path), "rb") as file:
            found[path] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def objectives():
    """What the members of --ensemble were last trained with, `None` if not known."""
    folders = [kc.models.file_of(path).parent for path in FLAGS.ensemble]
    return [(read_begun(folder) or {}).get("objective") for folder in folders]


def check_reads(model, builder):
    """Refuses a saved captioner of other features than the dataset's."""
    examples = kc.data.read(builder, "test").take(1)
    for batch in kc.data.image_batches(examples, 1, model.image_specs):
        with input_errors():
            model.image_inputs(batch)


def count_parameters(model):
    return sum(math.prod(v.shape) for v in model.trainable_variables)


def make_strategy(name):
    """The distribution strategy of a value of `--strategy`."""
    if name == "mirrored":
        return tf.distribute.MirroredStrategy()
    if name == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    return tf.distribute.get_strategy()


def is_chief(strategy):
    """Whether this is the process that writes the files, of several workers."""
    resolver = strategy.cluster_resolver
    return resolver is None or not resolver.task_id


def train(config, builder, folder, about, strategy):
    """Trains with cross-entropy, or resumes it."""
    values = config.training
    examples = kc.data.read(builder, "train")
    steps_per_epoch = count_steps(examples, values.batch_size, strategy)
    vocabulary = kc.data.build_vocabulary(
        builder, values.min_count, values.vocabulary_split
    )
    checkpoint = kc.training.Checkpoint(folder)
    with strategy.scope():
        model, epoch = resume(checkpoint)
        if model is None:
            keras.utils.set_random_seed(FLAGS.seed)
            with input_errors():
                model = kc.models.create(
                    FLAGS.model,
                    vocabulary=vocabulary,
                    extractor=extractor_of(builder),
                    **sizes_of_data(builder),
                    **config.model,
                )
            schedule = schedule_of(values, steps_per_epoch)
            model.compile(
                optimizer=make_optimizer(schedule, values),
                loss=kc.training.CaptionCrossEntropy(values.label_smoothing),
                jit_compile=False,  # XLA would compile anew for each shape of a batch
            )
        elif model.vocabulary != vocabulary:
            raise kc.InputError(
                f"{folder / 'last.keras'} has another vocabulary "
                f"({len(model.vocabulary)} words) than the training captions "
                f"({len(vocabulary)} words)."
            )
        trainer = model
        if values.scheduled_sampling:
            trainer = kc.training.ScheduledSamplingTrainer(
                model,
                kc.training.ScheduledSampling(
                    steps_per_epoch, values.scheduled_sampling
                ),
            )
    print(
        f"{model.name}: {count_parameters(model):,} parameters, "
        f"{len(vocabulary):,} words, {len(examples):,} training images"
    )
    fit(trainer, config, about, epoch, builder, checkpoint, strategy)


def train_self_critically(config, start, builder, folder, about, strategy):
    """Trains a saved captioner self-critically, or resumes it."""
    values = config.self_critical
    examples = kc.data.read(builder, "train")
    checkpoint = kc.training.Checkpoint(folder)
    counted = folder / "document_frequencies.npz"
    with strategy.scope():
        model, epoch = resume(checkpoint)
        if model is None:
            model = kc.models.load(start)
            check_reads(model, builder)
            rate = values.learning_rate
            if rate is None:
                steps = count_steps(examples, values.batch_size, strategy)
                rate = schedule_of(config.training, steps, config.training.epochs)
            optimizer = make_optimizer(rate, values)
            references = kc.data.reference_tokens(
                examples, model.vocabulary, config.training.max_words
            )
            frequencies = kc.rewards.DocumentFrequencies.count(references)
            if is_chief(strategy):
                frequencies.save(counted, model.vocabulary)
        else:
            optimizer = model.optimizer
            frequencies = kc.rewards.DocumentFrequencies.load(counted, model.vocabulary)
        with input_errors():
            trainer = kc.training.SelfCritical(
                model,
                kc.rewards.CiderD(frequencies),
                values.baseline,
                values.samples,
                values.temperature,
                values.cross_entropy,
                max_length=config.decoding.max_length,
                seed=FLAGS.seed,
            )
        trainer.compile(optimizer, jit_compile=False)
    print(f"\n{model.name}: self-critical training, {len(examples):,} training images")
    fit(trainer, config, about, epoch, builder, checkpoint, strategy)


def sizes_of_data(builder):
    """Arguments of the model that the dataset decides, those that the model has."""
    features = builder.info.features
    sizes = {"region_dim": features["regions"].shape[-1]}
    if "grid" in features:
        names = ("grid_height", "grid_width", "grid_dim")
        sizes |= dict(zip(names, features["grid"].shape, strict=True))
    needed = kc.models.data_arguments(FLAGS.model)
    if not set(needed) <= set(sizes):
        raise kc.InputError(
            f"The model '{FLAGS.model}' reads grids of features, and {FLAGS.dataset} "
            "has none: experiments/prepare.py makes them of photos."
        )
    return {name: sizes[name] for name in needed}


def extractor_of(builder):
    """What made the features, where the dataset is one of photos."""
    if FLAGS.dataset != "prepared":
        return None
    return kc.data.load_extractor(FLAGS.data_dir)


def schedule_of(values, steps_per_epoch, first_epoch=0):
    """The learning rate of cross-entropy, and of what follows after so many epochs."""
    return kc.training.WarmupStepDecay(
        steps_per_epoch,
        values.learning_rate,
        values.warmup_epochs,
        values.decay_after,
        values.decay_every,
        values.decay_rate,
        first_epoch,
    )


def make_optimizer(learning_rate, values):
    return keras.optimizers.Adam(learning_rate, clipvalue=values.clip_value or None)


@contextlib.contextmanager
def input_errors():
    """What a value of --config made impossible, as a mistake of the user."""
    try:
        yield
    except ValueError as error:
        raise kc.InputError(str(error)) from error


def count_steps(examples, batch_size, strategy):
    """Number of steps of an epoch."""
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise kc.InputError(
            f"A batch of {batch_size} images cannot be shared evenly by {replicas} "
            "replicas."
        )
    if len(examples) < batch_size:
        raise kc.InputError(
            f"A batch of {batch_size} images is more than the {len(examples)} there "
            "are to train on."
        )
    return len(examples) // batch_size


def resume(checkpoint):
    """With --resume the last epoch's model, and the number of epochs it has done."""
    last = checkpoint.folder / "last.keras"
    if not (FLAGS.resume and last.exists()):
        return None, 0
    model = kc.models.load(last)
    epoch = checkpoint.resume(model)
    print(f"Resuming after epoch {epoch} of {last}")
    return model, epoch


def begin(folder, about):
    """Records in a folder what is trained there, before anything else."""
    (folder / "test_scores.json").unlink(missing_ok=True)
    write_json(folder / "config.json", about)


def fit(trainer, config, about, epoch, builder, checkpoint, strategy):
    """Trains from `epoch` to the last one, captioning after each.

    Args:
        trainer: A captioner, or what trains one.
        config: Of `--config`.
        about: What `describe` returned.
        epoch: Number of epochs that have been done.
        builder: TFDS builder.
        checkpoint: `keras_caption.training.Checkpoint`.
        strategy: Distribution strategy.
    """
    data = config.training  # what an epoch shows
    values = config[PHASES[about["objective"]]]
    if epoch > values.epochs:
        raise kc.InputError(
            f"The run in {checkpoint.folder} has done {epoch} epochs already, of the "
            f"{values.epochs} it shall."
        )
    if epoch < values.epochs and is_chief(strategy):
        begin(checkpoint.folder, about)
    examples, validation = (kc.data.read(builder, split) for split in ("train", "val"))
    inputs = kc.training.captioner_of(trainer).image_specs
    callbacks = [
        kc.training.StopIfNotFinite(),
        kc.training.EpochSeeds(FLAGS.seed),
        kc.training.CaptionValidation(
            kc.data.image_batches(validation, 50, inputs),
            kc.data.references(validation),
            data.validation_beam_size,
            config.decoding.max_length,
        ),
    ]
    if values.get("halved_after"):
        callbacks.append(
            kc.training.HalveOnPlateau(
                values.learning_rate, values.halved_after, checkpoint.history
            )
        )
    if is_chief(strategy):
        callbacks += [
            kc.training.TensorBoardLogs(checkpoint.folder / "logs"),
            checkpoint,
        ]
    trainer.fit(
        kc.data.train_batches(
            examples,
            kc.training.captioner_of(trainer).vocabulary,
            values.batch_size,
            captions_per_image=data.captions_per_image,
            max_words=data.max_words,
            seed=FLAGS.seed,
            first_epoch=epoch,
            inputs=inputs,
            cache=builder.info.splits["train"].num_bytes < KEPT_IN_MEMORY,
        ),
        initial_epoch=epoch,
        epochs=values.epochs,
        steps_per_epoch=count_steps(examples, values.batch_size, strategy),
        shuffle=False,  # the batches are
        verbose=1 if sys.stdout.isatty() else 2,
        callbacks=callbacks,
    )

    # No worker reads a file before the first one has written it.
    def meet():
        return kc.training.sum_over_replicas(tf.constant(1.0))

    tf.function(strategy.run, autograph=False)(meet)


if __name__ == "__main__":
    start(main, parse_flags)
