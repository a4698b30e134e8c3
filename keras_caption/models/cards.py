"""Model cards: a README.md beside a model, for people and for hubs.

The head of a card is YAML, which hubs read. The last line holds a digest of the other
lines: it differs once a person has edited the card.
"""

import hashlib
import inspect
import json
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import keras

from keras_caption.formats import built_in
from keras_caption.formats.coco_categories import CATEGORIES
from keras_caption.formats.preset_files import CARD

TEMPLATE = """\
---
{metadata}
---

# {name}

{description} {parameters:,} parameters, in Keras with `keras_caption`.

## Use

```python
import keras_caption as kc

model = kc.models.load("{folder}")  # this folder, or hf://USER/NAME if uploaded
print(model.{call})
```

## Training

{training}

## Scores

{scores}

## Configuration

```json
{config}
```

## Limits

{limits}
"""
DIGEST = "<!-- keras_caption replaces this card unless it is edited: {} -->\n"
WRITTEN = re.compile(re.escape(DIGEST).replace(r"\{\}", "(\\w+)").encode() + rb"\Z")
# Names of metrics on the hubs.
METRICS = {"ROUGE-L": "rouge", "CIDEr-D": "cider", "exact": "exact_match"}
# Where the repository describes the training of the models in the package.
DOCUMENTED = "docs/results/photos.md and docs/results/questions.md of its repository"
LICENSE = "apache-2.0"  # of the package, with the models in it
# Figures of the models in the package, which the documents have with their intervals.
MEASURED = {
    "ngsan_coco": (
        "On 492 test images of COCO with annotated boxes, and evidence: CIDEr-D 78.5, "
        "and 3.3 % of the captions have a place, a number or company that neither "
        "objects nor a person's captions support (89.8 and 26.6 % without evidence)."
    ),
    "mcan_photos": (
        "Of 894 test questions of VQA v2 and COCO-QA, with what a detector finds, 326 "
        "are answered surely, and 63.0 % of these answers are right; of all, 39.6 %."
    ),
}
ENGLISH = (
    *("scenes", "moving_scenes", "coco_objects"),
    *("scene_questions", "coco_qa", "vqa", "vqa_coco_qa", "vsr"),
)
# Settings that hold paths, which should not be published.
FILE_SETTINGS = ("data_dir", "images_dir", "word_vectors")


def card_of(model: keras.Model, run: Mapping[str, Any] | None = None) -> str:
    """Makes the card of a model.

    Args:
        model: The model.
        run: dict that describes the training: `objective` and `config`, from the run's
            `config.json`; `training_size`, str; and `scores`, from its
            `test_scores.json`. If omitted, the card says that the training is not
            recorded.

    Returns:
        str, Markdown.
    """
    run = run or {}
    limits = limits_of(model) + limits_of_training(is_documented(model, run))
    config = without_files(run["config"]) if run else {"model": sizes_of(model)}
    text = TEMPLATE.format(
        metadata="\n".join(
            f"{name}: {json.dumps(value, ensure_ascii=False)}"
            for name, value in metadata_of(model, run).items()
        ),
        name=model.name,
        description=(inspect.getdoc(type(model)) or "").partition("\n")[0],
        parameters=model.count_params(),
        folder=model.name,
        call=call_of(model),
        training=training_of(run, model.name),
        scores=scores_of(run, model.name),
        config=json.dumps(config, indent=1, ensure_ascii=False, default=str),
        limits="\n".join(f"- {limit}" for limit in limits),
    )
    return text + DIGEST.format(digest_of(text.encode()))


def write_card(
    folder: pathlib.Path,
    model: keras.Model,
    run: Mapping[str, Any] | None = None,
    replaced: str | os.PathLike | None = None,
) -> None:
    """Writes the card of a model into a folder, or keeps one that a person has edited.

    Args:
        folder: `pathlib.Path`.
        model, run: As in `card_of`.
        replaced: Path of the folder that `folder` will replace. If its card has been
            edited, it is kept. Defaults to `folder`.
    """
    card = edited_card(pathlib.Path(replaced or folder))
    if card is None:
        card = card_of(model, run).encode()
    (folder / CARD).write_bytes(card)


def edited_card(folder: pathlib.Path) -> bytes | None:
    """The card in a folder if a person has written or edited it, else `None`."""
    path = folder / CARD
    if not path.is_file():
        return None
    card = path.read_bytes()
    written = WRITTEN.search(card)
    is_ours = written and written[1].decode() == digest_of(card[: written.start()])
    return None if is_ours else card


def digest_of(card: bytes) -> str:
    return hashlib.sha256(card).hexdigest()


def metadata_of(model: keras.Model, run: Mapping[str, Any]) -> dict[str, Any]:
    """The head of a card in the fields of the hubs, without unknown values."""
    pipeline, tag = model.hub_task
    if any(kind.noun == "video" for kind in model.kinds):
        pipeline, tag = None, "video-captioning"
    data = run["config"]["data"] if run else {}
    languages = [data[name] for name in ("source", "target") if data.get(name)]
    if data.get("dataset") in ENGLISH:
        languages = ["en"]
    scores = flat_scores(run)
    metrics = [
        {"type": METRICS.get(name, name.lower().partition("-")[0]), "name": name}
        for name in scores
    ]
    metadata = {
        "library_name": "keras_caption",
        "pipeline_tag": pipeline,
        "tags": ["keras", "keras_caption", *([tag] if tag else [])],
        "language": languages,
        "license": LICENSE if is_documented(model, run) else "unknown",
        "metrics": sorted({metric["type"] for metric in metrics}),
    }
    if scores:
        values = [
            m | {"value": x} for m, x in zip(metrics, scores.values(), strict=True)
        ]
        result = {
            "task": {"type": pipeline or tag or "other"},
            "dataset": {
                "type": data["dataset"],
                "name": data["dataset"],
                "split": "test",
            },
            "metrics": values,
        }
        metadata["model-index"] = [{"name": model.name, "results": [result]}]
    return {name: value for name, value in metadata.items() if value}


def call_of(model: keras.Model) -> str:
    """Code of a call of a model."""
    names = [name for kind in model.kinds for name in kind.required]
    inputs = ", ".join(f'"{name}": {name}' for name in names if name != "question")
    images = '["photo.jpg"]' if getattr(model, "extractor", None) else f"{{{inputs}}}"
    return model.example_call(images)


def training_of(run: Mapping[str, Any], name: str) -> str:
    if not run and name in built_in.models():
        return f"By the authors of `keras_caption`: {DOCUMENTED}."
    if not run:
        return (
            "Not recorded: the model was saved outside of a run of `keras-caption run`."
        )
    return (
        f"On the dataset `{run['config']['data']['dataset']}`, "
        f"{run['training_size']}, by {run['objective']} "
        "(`keras-caption run`, with the configuration below)."
    )


def scores_of(run: Mapping[str, Any], name: str) -> str:
    scores = flat_scores(run)
    if not scores and name in built_in.models():
        return f"{MEASURED[name]} With intervals, and on photos: {DOCUMENTED}."
    if not scores:
        return "None recorded."
    rows = [f"| {name} | {score:.4f} |" for name, score in scores.items()]
    return "\n".join(
        [
            "On the test split, not multiplied by 100:",
            "",
            "| metric | score |",
            "|---|---:|",
            *rows,
        ]
    )


def limits_of(model: keras.Model) -> list[str]:
    """Limits of a model, a list of sentences."""
    limits = []
    categories = getattr(model, "categories", None)
    if categories:
        count, colours = len(categories), ""
        # Values of colours may follow those of categories.
        if tuple(categories[: len(CATEGORIES)]) == CATEGORIES != tuple(categories):
            count, colours = len(CATEGORIES), " and their colours"
        limits.append(
            f"By itself, it sees objects of {count} categories{colours}, and nothing "
            "else of an image."
        )
    limits += model.output_limits
    if getattr(model, "threshold", 0):
        limits.append(
            f"Outputs with a confidence below {_threshold(model)} should not be relied "
            "on."
        )
    return limits


def limits_of_training(documented: bool) -> list[str]:
    """What a card says of any model besides; `documented`, see `is_documented`."""
    limits = [
        "Scores hold for inputs like those of the test split. Outputs for other "
        "inputs, and for what is rare in the training data, may be wrong."
    ]
    if not documented:
        limits.append(
            "The licence of the model depends on the licence of the training data: "
            "state it in the head of this card before you publish the model."
        )
    return limits


def is_documented(model: keras.Model, run: Mapping[str, Any]) -> bool:
    """Whether a model is one in the package, as it is."""
    return not run and model.name in built_in.models()


def _threshold(model):
    if isinstance(model.threshold, Mapping):
        return ", ".join(f"{x:.2f} ({kind})" for kind, x in model.threshold.items())
    return f"{model.threshold:.2f}"


def flat_scores(run: Mapping[str, Any]) -> dict[str, float]:
    """The scores of a run that are single numbers."""
    scores = run.get("scores", {})
    return {name: x for name, x in scores.items() if isinstance(x, float)}


def sizes_of(model: keras.Model) -> dict[str, Any]:
    """Arguments of a model that are numbers or names."""
    return {
        name: value
        for name, value in model.get_config().items()
        if isinstance(value, str | int | float | bool) or value is None
    }


def without_files(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a run with names of files in place of their paths."""
    data = {
        name: pathlib.Path(value).name if name in FILE_SETTINGS and value else value
        for name, value in config["data"].items()
    }
    return {**config, "data": data}
