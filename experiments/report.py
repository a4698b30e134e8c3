"""What a finished run shows: scores, captions, pictures, and a served model."""

from matplotlib.figure import Figure

import keras_caption as kc
from keras_caption.atomic import write_json
from keras_caption.data import scenes

PICTURES = 4  # in the figure of attention
SAMPLES = 10  # captions printed


def finish(model, decoding, builder, folder, about, spice=False):
    """Scores and exports what was trained, and says where everything is.

    Args:
        model: A trained captioner.
        decoding: Options of `generate_tokens`.
        builder: TFDS builder, whose test split is captioned.
        folder: Where everything goes.
        about: dict, what the run is.
        spice: bool, whether to compute SPICE.
    """
    (folder / "test_scores.json").unlink(missing_ok=True)
    scores = evaluate(model, decoding, builder, folder, spice)
    kc.serving.export(model, folder / "1", **decoding)
    write_json(folder / "config.json", {"model": model.name, **about})
    write_json(folder / "test_scores.json", scores)  # last: it says that all is there
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
        if (folder / name).exists():
            print(f"  {name:22}{content}")


def evaluate(model, decoding, builder, folder, spice=False):
    """Captions and scores the test split; prints and returns the scores."""
    examples = kc.data.read(builder, "test")
    references = kc.data.references(examples)
    batches = kc.data.image_batches(examples, 50, model.image_specs)
    captions = model.caption(batches, **decoding)
    write_coco_files(captions, references, folder)
    scores, missing = kc.evaluation.score(captions, references, spice)
    statements = {}
    if "objects" in builder.info.features:
        truth = scenes.statement_accuracy(captions, examples)
        statements = {category: share for category, (share, _) in truth.items()}
    draw_attention(model, decoding, builder, folder / "attention.png")

    print(f"\nTest split, {len(captions):,} images, beam {decoding.beam_size}\n")
    print(kc.evaluation.table({model.name: scores}))
    for name, reason in missing.items():
        print(f"\n{name}: {reason}")
    if statements:
        print("\nShare of statements that are true of the scene:")
        for category, (share, count) in truth.items():
            print(f"  {category:10} {100 * share:5.1f} %  of {count:,}")
    print("\nSome captions, each followed by a person's:")
    for image_id in list(captions)[:SAMPLES]:
        print(f"  {captions[image_id]}\n      {references[image_id][0]}")
    return {**scores, "statements": statements}


def write_coco_files(captions, references, folder):
    """Captions and references in COCO's formats, for `keras_caption.evaluation`."""
    annotations = [(i, text) for i, texts in references.items() for text in texts]
    truth = {
        "images": [{"id": i, "width": 1, "height": 1} for i in references],
        "annotations": [
            {"id": number, "image_id": i, "caption": text}
            for number, (i, text) in enumerate(annotations)
        ],
    }
    kc.evaluation.write_results(folder / "test_results.json", captions)
    write_json(folder / "test_references.json", truth)


def draw_attention(model, decoding, builder, path):
    """Draws where the model looks in a few pictures of the test split."""
    count = min(PICTURES, builder.info.splits["test"].num_examples)
    examples = kc.data.read(builder, f"test[:{count}]", pictures=True)
    figure = Figure(figsize=(20, 2.2 * count), layout="constrained")
    parts = figure.subfigures(count, squeeze=False)[:, 0]
    for part, example in zip(parts, examples.as_numpy_iterator(), strict=True):
        names = [name for name in model.image_specs if name != "region_mask"]
        inputs = {name: example[name][None].astype("float32") for name in names}
        tokens, _ = model.generate_tokens(inputs, **decoding)
        picture = example.get("image")
        kc.visualization.attention_over_words(model, inputs, tokens[0], picture, part)
    figure.savefig(path, dpi=80)
