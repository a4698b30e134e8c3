r"""Trains a captioning model, scores it, shows its captions and exports it.

    python experiments/run.py --model ngsan

trains on built-in data. Everything lands in one folder, `--output_dir`; the same
command with `--resume` goes on where an interrupted one stopped. Every value of
the model, the training and the decoding can be set, for instance

    python experiments/run.py --model gsan --dataset coco_objects \
        --data_dir annotations --config.model.num_layers=3 \
        --config.training.batch_size=16
"""

import importlib
import itertools
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # no notes on start-up

import keras
import ml_collections
from absl import app, flags, logging
from matplotlib.figure import Figure
from ml_collections import config_flags

import keras_caption as kc
from keras_caption.atomic import write_json
from keras_caption.data import scenes

FLAGS = flags.FLAGS
flags.DEFINE_string("model", "ngsan", f"One of {', '.join(kc.models.presets())}.")
flags.DEFINE_string("dataset", "scenes", "scenes (built in) or coco_objects.")
flags.DEFINE_string(
    "data_dir",
    None,
    "For coco_objects: folder of captions_*.json, instances_*.json and Karpathy's "
    "split JSON. Where left out, TFDS downloads coco_captions.",
)
flags.DEFINE_integer(
    "epochs", None, "Epochs of cross-entropy; the config's where left out."
)
flags.DEFINE_integer(
    "scst_epochs", None, "Epochs of self-critical training after it, or the config's."
)
flags.DEFINE_string(
    "start_from",
    None,
    "Saved captioner that self-critical training starts from, in place of "
    "cross-entropy.",
)
flags.DEFINE_integer("seed", 0, "Of the weights, the order of the data and dropout.")
flags.DEFINE_string(
    "output_dir",
    None,
    "Where the run's files go. saved_models/MODEL_DATASET where left out.",
)
flags.DEFINE_bool("resume", False, "Go on with the run in output_dir, if there is one.")

PICTURES = 4  # in the figure of attention
SAMPLES = 10  # captions printed


def parse_flags(argv):
    """Defines --config, whose values depend on the model and the dataset."""
    FLAGS([arg for arg in argv if not arg.startswith("--help")], known_only=True)
    try:
        kc.data.check_name(FLAGS.dataset)
        arguments = kc.models.arguments(FLAGS.model)
    except kc.InputError as error:
        sys.exit(f"error: {error}")
    of_dataset = importlib.import_module(f"configs.{FLAGS.dataset}").get_config()
    config = ml_collections.ConfigDict(
        {
            "model": {
                name: ml_collections.config_dict.placeholder(str)
                if value is None
                else value
                for name, value in {**arguments, **of_dataset.model}.items()
            },
            "training": of_dataset.training,
            "self_critical": of_dataset.self_critical,
            "decoding": of_dataset.decoding,
        }
    )
    values = "\n".join(
        f"--config.{group}.{name}={value}"
        for group, of_group in config.items()
        for name, value in of_group.items()
    )
    config_flags.DEFINE_config_dict(
        "config", config, f"Values of --model and --dataset:\n{values}"
    )
    return app.parse_flags_with_usage(argv)


def main(argv):
    if len(argv) > 1:
        sys.exit(f"error: unexpected argument {argv[1]!r}; see --help.")
    logging.set_verbosity(logging.WARNING)
    try:
        run(FLAGS.config)
    except (kc.InputError, OSError) as error:
        sys.exit(f"error: {error}")


def run(config):
    folder = FLAGS.output_dir or f"saved_models/{FLAGS.model}_{FLAGS.dataset}"
    folder = pathlib.Path(folder)
    builder = kc.data.load(FLAGS.dataset, FLAGS.data_dir)
    scst_epochs = config.self_critical.epochs
    if FLAGS.scst_epochs is not None:
        scst_epochs = FLAGS.scst_epochs
    if FLAGS.start_from:
        if not scst_epochs:
            raise kc.InputError("--start_from is for self-critical training only.")
        best = keras.models.load_model(FLAGS.start_from)
    else:
        best = train(config, builder, folder)
        finish(best, config, "cross-entropy", builder, folder)
    if scst_epochs:
        folder = folder / "scst"
        best = train_self_critically(config, best, scst_epochs, builder, folder)
        finish(best, config, "self-critical", builder, folder)


def finish(model, config, objective, builder, folder):
    """Scores and exports what was trained, and says where everything is."""
    evaluate(model, config.decoding, builder, folder)
    kc.serving.export(model, folder / "1", **config.decoding)
    about = {name: FLAGS[name].value for name in ("model", "dataset", "seed")}
    about |= {"objective": objective, "config": config.to_dict()}
    write_json(folder / "config.json", about)
    print(f"\nEverything is in {folder}:")
    for name, content in {
        "best.keras": "the model, for keras.models.load_model",
        "1": "the model as a SavedModel, for TensorFlow Serving",
        "last.keras": "the last epoch's model and optimizer, for --resume",
        "history.json": "loss and CIDEr-D of every epoch",
        "logs": "the same for TensorBoard",
        "test_results.json": "captions of the test split",
        "test_references.json": "what they are scored against",
        "test_scores.json": "their scores",
        "attention.png": "where the model looks, word by word",
        "config.json": "how the run was configured",
    }.items():
        print(f"  {name:22}{content}")


def train(config, builder, folder):
    """Trains with cross-entropy, or goes on with it; returns the best epoch's model."""
    values = config.training
    examples = kc.data.read(builder, "train")
    steps_per_epoch = count_steps(examples, values.batch_size)
    captions = itertools.chain(*kc.data.references(examples).values())
    vocabulary = kc.text.Vocabulary.build(captions, values.min_count)
    model, epoch, checkpoint = resume(folder, steps_per_epoch)
    if model is None:
        keras.utils.set_random_seed(FLAGS.seed)
        try:
            model = kc.models.create(
                FLAGS.model,
                vocabulary=vocabulary,
                region_dim=builder.info.features["regions"].shape[-1],
                **config.model,
            )
        except ValueError as error:  # a value of --config.model
            raise kc.InputError(str(error)) from error
        schedule = kc.training.WarmupStepDecay(
            steps_per_epoch,
            values.learning_rate,
            values.warmup_epochs,
            values.decay_after,
            values.decay_every,
            values.decay_rate,
        )
        model.compile(
            optimizer=keras.optimizers.Adam(schedule),
            loss=kc.training.CaptionCrossEntropy(values.label_smoothing),
        )
    elif model.vocabulary != vocabulary:
        raise kc.InputError(
            f"{folder / 'last.keras'} has another vocabulary "
            f"({len(model.vocabulary)} words) than the training captions "
            f"({len(vocabulary)} words)."
        )
    print(
        f"{model.name}: {model.count_params():,} parameters, "
        f"{len(vocabulary):,} words, {len(examples):,} training images"
    )
    epochs = FLAGS.epochs or values.epochs
    fit(
        model,
        vocabulary,
        config,
        builder,
        values.batch_size,
        (epoch, epochs),
        checkpoint,
    )
    return keras.models.load_model(folder / "best.keras")


def train_self_critically(config, captioner, epochs, builder, folder):
    """The same, with the CIDEr-D of captions that the model draws."""
    values = config.self_critical
    examples = kc.data.read(builder, "train")
    steps_per_epoch = count_steps(examples, values.batch_size)
    vocabulary = captioner.vocabulary
    model, epoch, checkpoint = resume(folder, steps_per_epoch)
    counted = folder / "document_frequencies.npz"
    if model is None:
        model, optimizer = captioner, keras.optimizers.Adam(values.learning_rate)
        references = kc.data.reference_tokens(
            examples, vocabulary, config.training.max_words
        )
        frequencies = kc.rewards.DocumentFrequencies.count(references)
        frequencies.save(counted, vocabulary)
    else:
        optimizer = model.optimizer
        frequencies = kc.rewards.DocumentFrequencies.load(counted, vocabulary)
    try:
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
    except ValueError as error:  # a value of --config.self_critical
        raise kc.InputError(str(error)) from error
    trainer.compile(optimizer)
    print(f"\n{model.name}: self-critical training, {len(examples):,} training images")
    fit(
        trainer,
        vocabulary,
        config,
        builder,
        values.batch_size,
        (epoch, epochs),
        checkpoint,
    )
    return keras.models.load_model(folder / "best.keras")


def count_steps(examples, batch_size):
    """Number of steps of an epoch."""
    if len(examples) < batch_size:
        raise kc.InputError(
            f"A batch of {batch_size} images is more than the {len(examples)} there "
            "are to train on."
        )
    return len(examples) // batch_size


def resume(folder, steps_per_epoch):
    """The last epoch's model, or `None`; the epochs it has done; the checkpoint."""
    last, epoch, model = folder / "last.keras", 0, None
    checkpoint = kc.training.Checkpoint(folder)
    if FLAGS.resume and last.exists():
        model = keras.models.load_model(last)
        epoch = checkpoint.resume(model, steps_per_epoch)
        print(f"Going on after epoch {epoch} of {last}")
    return model, epoch, checkpoint


def fit(trainer, vocabulary, config, builder, batch_size, epochs, checkpoint):
    """Trains from the first to the second of `epochs`, captioning after each."""
    values = config.training
    examples, validation = (kc.data.read(builder, split) for split in ("train", "val"))
    trainer.fit(
        kc.data.train_batches(
            examples,
            vocabulary,
            batch_size,
            captions_per_image=values.captions_per_image,
            max_words=values.max_words,
            seed=FLAGS.seed,
            first_epoch=epochs[0],
        ),
        initial_epoch=epochs[0],
        epochs=epochs[1],
        steps_per_epoch=count_steps(examples, batch_size),
        shuffle=False,  # the batches are
        verbose=1 if sys.stdout.isatty() else 2,
        callbacks=[
            kc.training.StopIfNotFinite(),
            kc.training.EpochSeeds(FLAGS.seed),
            kc.training.CaptionValidation(
                kc.data.image_batches(validation, 50),
                kc.data.references(validation),
                values.validation_beam_size,
            ),
            keras.callbacks.TensorBoard(checkpoint.folder / "logs", write_graph=False),
            checkpoint,
        ],
    )


def evaluate(model, decoding, builder, folder):
    """Captions and scores the test split; writes and prints the outcome."""
    examples = kc.data.read(builder, "test")
    references = kc.data.references(examples)
    captions = model.caption(kc.data.image_batches(examples, 50), **decoding)
    write_coco_files(captions, references, folder)
    scores, missing = kc.evaluation.score(captions, references)
    statements = {}
    if builder.name == "scenes":
        truth = scenes.statement_accuracy(captions, examples)
        statements = {category: share for category, (share, _) in truth.items()}
    write_json(folder / "test_scores.json", {**scores, "statements": statements})
    draw_attention(model, decoding, builder, folder / "attention.png")

    print(f"\nTest split, {len(captions):,} images, beam {decoding.beam_size}\n")
    print(kc.evaluation.table({model.name: scores}))
    for name, reason in missing.items():
        print(f"\n{name}: {reason}")
    if builder.name == "scenes":
        print("\nShare of statements that are true of the scene:")
        for category, (share, count) in truth.items():
            print(f"  {category:10} {100 * share:5.1f} %  of {count:,}")
    print("\nSome captions, each followed by a person's:")
    for image_id in list(captions)[:SAMPLES]:
        print(f"  {captions[image_id]}\n      {references[image_id][0]}")


def write_coco_files(captions, references, folder):
    """Captions and references in COCO's formats, for `keras_caption.evaluation`."""
    results = [{"image_id": i, "caption": text} for i, text in captions.items()]
    annotations = [(i, text) for i, texts in references.items() for text in texts]
    truth = {
        "images": [{"id": i, "width": 1, "height": 1} for i in references],
        "annotations": [
            {"id": number, "image_id": i, "caption": text}
            for number, (i, text) in enumerate(annotations)
        ],
    }
    write_json(folder / "test_results.json", results)
    write_json(folder / "test_references.json", truth)


def draw_attention(model, decoding, builder, path):
    """Draws where the model looks in a few pictures of the test split."""
    examples = kc.data.read(builder, f"test[:{PICTURES}]", pictures=True)
    figure = Figure(figsize=(20, 2.2 * PICTURES), layout="constrained")
    for part, example in zip(
        figure.subfigures(PICTURES), examples.as_numpy_iterator(), strict=True
    ):
        inputs = {name: example[name][None] for name in ("regions", "boxes")}
        tokens, _ = model.generate_tokens(inputs, **decoding)
        picture = example.get("image")
        kc.visualization.attention_over_words(model, inputs, tokens[0], picture, part)
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    app.run(main, flags_parser=parse_flags)
