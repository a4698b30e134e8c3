r"""Captions photos with a trained model.

    keras-caption caption saved_models/spatial_prepared/best.keras photo.jpg
    keras-caption caption saved_models/spatial_prepared a.jpg b.png \
        --figure attention.png

The model must know how its features are made of photos, as models trained on what
`keras-caption prepare` made do. A folder stands for the best.keras in it; several
models, separated by commas, caption as an ensemble. Photos that cannot be read are
reported and skipped.
"""

import sys
from collections.abc import Sequence

import keras_caption as kc
from keras_caption.commands.command_line import Parser, count


def main(arguments: Sequence[str]) -> int:
    parser = Parser("keras-caption caption", __doc__)
    parser.add_argument("model", help="saved model, or several separated by commas")
    parser.add_argument("photos", nargs="+", help="JPEG or PNG files")
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
    """Prints a caption for every photo; returns how many could not be read."""
    model = kc.models.Ensemble(options.model.split(","))
    if model.source is not None:
        raise kc.InputError(
            f"{options.model} translates sentences: use keras-caption translate."
        )
    photos = {}
    for name in options.photos:
        try:
            photos[name] = kc.features.read_photo(name)
        except kc.InputError as error:
            print(f"error: {error}", file=sys.stderr)
    if not photos:
        return len(options.photos)
    inputs = model.extract(list(photos.values()))
    tokens, scores = model.generate_tokens(
        inputs, beam_size=options.beam_size, max_length=options.max_length
    )
    for name, row, score in zip(photos, tokens, scores, strict=True):
        print(f"{name}: {model.vocabulary.decode(row)} ({score:.2f})")
    if options.figure:
        draw(model, inputs, tokens, photos.values(), options.figure)
        print(f"Wrote {options.figure}")
    return len(options.photos) - len(photos)


def draw(model, inputs, tokens, photos, path):
    """Draws the attention weights of captions over their photos."""
    captions = [
        ({key: value[i : i + 1] for key, value in inputs.items()}, tokens[i], photo)
        for i, photo in enumerate(photos)
    ]
    kc.visualization.attention_over_captions(model, captions).savefig(path, dpi=80)
