r"""Captions photos or clips with a trained model.

    keras-caption caption saved_models/spatial_prepared/best.keras photo.jpg
    keras-caption caption saved_models/spatial_prepared a.jpg b.png \
        --figure attention.png
    keras-caption caption saved_models/video_nsa_prepared clip.mp4 \
        --figure film_strip.png

The model must know how its features are made of photos or clips, as models trained on
what `keras-caption prepare` made of them do. A folder stands for the best.keras in it;
several models, separated by commas, caption as an ensemble. Files that cannot be read,
and clips that were cut or have one frame, are reported and skipped.
"""

import sys
from collections.abc import Sequence

import keras_caption as kc
from keras_caption.commands.command_line import Parser, count

BATCH_SIZE = 8  # files that are captioned at once


def main(arguments: Sequence[str]) -> int:
    parser = Parser("keras-caption caption", __doc__)
    parser.add_argument("model", help="saved model, or several separated by commas")
    parser.add_argument(
        "files", nargs="+", help="photos, or clips for a model of videos"
    )
    parser.add_argument("--figure", help="file for a figure of the attention weights")
    parser.add_argument(
        "--beam_size", type=count, default=3, help="beam width; 1 is greedy search"
    )
    parser.add_argument(
        "--max_length", type=count, default=20, help="greatest number of tokens"
    )
    options = parser.parse_intermixed_args(arguments)
    failed = caption(options)
    return 1 if failed else 0


def caption(options):
    """Prints a caption for every file; returns how many could not be read."""
    model = kc.models.Ensemble(options.model.split(","))
    if model.source is not None:
        raise kc.InputError(
            f"{options.model} translates sentences: use keras-caption translate."
        )
    if model.extractor is None:
        raise kc.InputError(
            f"{options.model} has no extractor: it was not trained on photos or clips."
        )
    batch_size = 1 if options.figure else BATCH_SIZE  # a figure shows no padding
    read_count, drawn = 0, []
    for start in range(0, len(options.files), batch_size):
        batch = read(model.extractor, options.files[start : start + batch_size])
        if not batch:
            continue
        inputs = model.extract([item for _, item in batch])
        tokens, scores = model.generate_tokens(
            inputs, beam_size=options.beam_size, max_length=options.max_length
        )
        for (name, _), row, score in zip(batch, tokens, scores, strict=True):
            print(f"{name}: {model.vocabulary.decode(row)} ({score:.2f})")
        read_count += len(batch)
        if options.figure:
            [(_, item)] = batch
            drawn.append((inputs, tokens[0], image_of(item)))
    if drawn:
        figure = kc.visualization.attention_over_captions(model, drawn)
        figure.savefig(options.figure, dpi=80)
        print(f"Wrote {options.figure}")
    return len(options.files) - read_count


def read(extractor, names):
    """Reads photos or clips, pairs with their names; reports those that cannot be."""
    found = []
    for name in names:
        try:
            found.append((name, extractor.read(name)))
        except kc.InputError as error:
            print(f"error: {error}", file=sys.stderr)
    return found


def image_of(item):
    """What attention is shown on: a photo, or the film strip of a clip."""
    is_clip = isinstance(item, kc.features.Clip)
    return kc.features.film_strip(item) if is_clip else item
