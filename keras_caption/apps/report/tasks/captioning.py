"""Scores, captions and figures of a captioner on a test split."""

import contextlib
import pathlib
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

import keras_caption as kc
from keras_caption.apps.objects.named_objects import object_scores
from keras_caption.apps.report.visualization.fonts import NoFontError, without_font
from keras_caption.base.atomic import write_json
from keras_caption.base.progress import progress
from keras_caption.evaluation.tables import markdown_table
from keras_caption.formats.coco_categories import CATEGORIES
from keras_caption.formats.items import write_items
from keras_caption.tasks.captioning import Captioning, by_characters
from keras_caption.training.task import EXAMPLES_AT_ONCE

CAPTIONS = 4  # captions in the figure of attention
SUMMARIZED = 2  # captions that TensorBoard shows of each epoch
DPI = 80
SHOWN = 10  # captions that are printed


def evaluate(task: Captioning, model: Any, folder: pathlib.Path) -> dict[str, Any]:
    """Captions and scores the test split, and prints the scores.

    Args:
        task: `keras_caption.tasks.Captioning`.
        model: A trained captioner.
        folder: `pathlib.Path` for captions, references and a figure.

    Returns:
        dict from metric to score. It also has `statements`, a dict from category to the
        share of true statements, and `objects`, as
        `keras_caption.evaluation.object_scores` returns it; both are empty if the
        dataset does not hold the truth. `notes` is a dict from metric to str, for
        scores that mean nothing.
    """
    builder, examples = task.builder, task.read("test")
    spice = task.config["evaluation"]["spice"]
    references = kc.datasets.references(examples)
    batches = kc.batches.image_batches(examples, EXAMPLES_AT_ONCE, model.input_specs)
    shown = progress(batches, "Test split", unit="batches", leave=False)
    captions = model.caption(shown)
    ids = kc.datasets.given_ids(builder)
    write_coco_files(
        {ids.get(i, i): text for i, text in captions.items()},
        {ids.get(i, i): texts for i, texts in references.items()},
        folder,
    )
    characters = by_characters(model, references)
    scores, notes = kc.evaluation.score(captions, references, spice, characters)
    likelihoods = kc.evaluation.caption_log_probabilities(
        model, progress(batches, "References", unit="batches", leave=False), references
    )
    score_items(captions, references, likelihoods, folder, ids, characters)
    judged = task.statements
    truth = judged.accuracy(captions, examples) if judged else {}
    objects = score_objects(captions, references, examples, builder)
    with without_font():
        draw_attention(model, builder, folder / "attention.png")

    width = model.decoding.beam_size
    noun = model.memory_kind.noun
    print(f"\nTest split, {len(captions):,} {noun}s, beam {width}\n")
    print(kc.evaluation.table({model.name: scores}))
    for name, reason in notes.items():
        print(f"\n{name}: {reason}")
    one_of_each = [references[image_id][0] for image_id in captions]
    note = kc.evaluation.note_on_outputs([*captions.values()], one_of_each, "captions")
    if note:
        print(f"\n{note}")
    if truth:
        counted = {name: x for name, x in truth.items() if x[1]}
        print(f"\nShare of true statements:{'' if counted else ' no caption has one'}")
        for category, (share, count) in counted.items():
            print(f"  {category:10} {100 * share:5.1f} %  of {count:,}")
    if objects:
        print(f"\nObjects of COCO: {kc.evaluation.text_of_shares(objects)}")
    is_generated = getattr(builder, "name", "") in kc.synthetic.GENERATED
    author = "one of its references" if is_generated else "a person's"
    some = {image_id: captions[image_id] for image_id in list(captions)[:SHOWN]}
    marks = judged.marks(some, examples.take(SHOWN)) if judged else {}
    print(f"\nSome captions, each followed by {author}:")
    for image_id, caption in some.items():
        mark = f"  [{marks[image_id]}]" if marks else ""
        print(f"  {caption}{mark}\n      {references[image_id][0]}")
    shares = {category: share for category, (share, _) in truth.items()}
    return {**scores, "statements": shares, "objects": objects, "notes": notes}


def score_items(
    captions: dict[int, str],
    references: dict[int, list[str]],
    likelihoods: dict[int, list[float]],
    folder: pathlib.Path,
    ids: dict[int, Any],
    characters: bool = False,
) -> dict[str, float]:
    """Scores each image, for `test_items.json`.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str.
        likelihoods: dict from image id to the log-probabilities of its references.
        folder: `pathlib.Path` for the file.
        ids: dict from image id to the original id of the image.
        characters: bool, as in `keras_caption.evaluation.cider_by_image`.

    Returns:
        dict from the names of the scores to their means over images.
    """
    cider = kc.evaluation.cider_by_image(captions, references, characters)
    items: dict[str, list[Any]] = {
        "CIDEr-D": [cider[i] for i in captions],
        "log_probability": [likelihoods[i] for i in captions],
    }
    write_items(folder / "test_items.json", [ids.get(i, i) for i in captions], items)
    return {
        name: float(np.mean([np.mean(x) for x in scores]))
        for name, scores in items.items()
    }


def score_objects(
    captions: dict[int, str],
    references: dict[int, list[str]],
    examples: Any,
    builder: Any,
) -> dict[str, float]:
    """Scores the objects that captions of `coco_objects` name.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str.
        examples: tf.data dataset of these images.
        builder: TFDS builder.

    Returns:
        As `keras_caption.evaluation.object_scores`; empty for other datasets.
    """
    if not isinstance(builder, kc.datasets.CocoObjects):
        return {}
    names, objects = np.array(CATEGORIES), {}
    for example in examples.as_numpy_iterator():
        is_annotated = example["regions"].any(axis=0)
        objects[int(example["image_id"])] = set(names[is_annotated])
    return object_scores(captions, references, objects)


def write_coco_files(
    captions: dict[Any, str], references: dict[Any, list[str]], folder: pathlib.Path
) -> None:
    """Writes captions and references in COCO's formats."""
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


def draw_attention(model: Any, builder: Any, path: pathlib.Path) -> None:
    """Draws the attention weights of some captions of the test split.

    Captions whose truth is known are marked as true or false.
    """
    captions = some_captions(model, builder, "test", CAPTIONS)
    judged, marks = kc.datasets.statements_of(builder), None
    if judged:
        examples = kc.datasets.read(builder, f"test[:{len(captions)}]")
        texts = [model.vocabulary.decode(tokens) for _, tokens, _ in captions]
        ids = [int(example["image_id"]) for example in examples.as_numpy_iterator()]
        by_id = dict(zip(ids, texts, strict=True))
        marks = [*judged.marks(by_id, examples).values()]
    figure = kc.visualization.attention_over_captions(model, captions, marks)
    figure.savefig(path, dpi=DPI)


def some_captions(
    model: Any, builder: Any, split: str, count: int, **options: Any
) -> list[tuple[dict[str, np.ndarray], np.ndarray, np.ndarray | None]]:
    """Generates captions of the first examples of a split.

    Args:
        model: A captioner.
        builder: TFDS builder.
        split: str.
        count: int, greatest number of captions.
        **options: Options of `model.generate_tokens`.

    Returns:
        List of inputs, tokens and image, as
        `keras_caption.visualization.attention_over_captions` takes them.
    """
    count = min(count, builder.info.splits[split].num_examples)
    examples = kc.datasets.read(builder, f"{split}[:{count}]", images=True)
    names = [name for kind in model.kinds for name in kind.keys]
    # In one batch, padded: examples of many shapes would be many compilations.
    [batch] = kc.batches.image_batches(examples, count, model.input_specs)
    generated, _ = model.generate_tokens(batch, **options)
    captions = []
    for example, tokens in zip(examples.as_numpy_iterator(), generated, strict=True):
        inputs = {n: example[n][None].astype("float32") for n in names if n in example}
        captions.append((inputs, tokens, example.get("image")))
    return captions


def summaries(task: Captioning, model: Any) -> dict[str, Any]:
    """Makes summaries of an epoch for TensorBoard, see `Task.summaries`."""
    size = task.config["evaluation"]["validation_beam_size"]
    captions = some_captions(model, task.builder, "val", SUMMARIZED, beam_size=size)
    texts = [model.vocabulary.decode(tokens) for _, tokens, _ in captions]
    examples = task.read("val").take(len(texts))
    references = kc.datasets.references(examples).values()
    rows = [(text, first) for text, (first, *_) in zip(texts, references, strict=True)]
    table = markdown_table(["caption", "reference"], rows, labels=2)
    made: dict[str, Any] = {"captions": table}
    with contextlib.suppress(NoFontError):  # reported at the end of the run
        figure = kc.visualization.attention_over_captions(model, captions)
        figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        made["attention"] = np.asarray(canvas.buffer_rgba())
    return made
