r"""Captions photos with a trained model.

    python experiments/caption.py saved_models/spatial_prepared/best.keras photo.jpg
    python experiments/caption.py saved_models/spatial_prepared a.jpg b.png \
        --figure looks.png

The model must know how its features are made of photos, as models trained on the output
of prepare.py do. A folder stands for the best.keras in it; several models, separated by
commas, caption as an ensemble. Photos that cannot be read are named, and the others are
captioned.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags
from command import start
from matplotlib.figure import Figure

import keras_caption as kc

FLAGS = flags.FLAGS
flags.DEFINE_string("figure", None, "File for a figure of the attention weights.")
flags.DEFINE_integer("beam_size", 3, "Beam width; 1 is greedy search.", lower_bound=1)
flags.DEFINE_integer("max_length", 20, "Greatest number of tokens.", lower_bound=1)


def main(argv):
    if len(argv) < 3:
        sys.exit("error: name a saved model and at least one photo; see --help.")
    failed = caption(argv[1], argv[2:])
    return 1 if failed else 0


def caption(paths, names):
    """Prints a caption for every photo; returns how many could not be read."""
    model = kc.models.Ensemble(paths.split(","))
    photos = {}
    for name in names:
        try:
            photos[name] = kc.features.read_photo(name)
        except kc.InputError as error:
            print(f"error: {error}", file=sys.stderr)
    if not photos:
        return len(names)
    inputs = model.extract(list(photos.values()))
    tokens, scores = model.generate_tokens(
        inputs, beam_size=FLAGS.beam_size, max_length=FLAGS.max_length
    )
    for name, row, score in zip(photos, tokens, scores, strict=True):
        print(f"{name}: {model.vocabulary.decode(row)} ({score:.2f})")
    if FLAGS.figure:
        figure = Figure(figsize=(20, 2.4 * len(photos)), layout="constrained")
        parts = figure.subfigures(len(photos), squeeze=False)[:, 0]
        for i, (part, photo) in enumerate(zip(parts, photos.values(), strict=True)):
            one = {key: value[i : i + 1] for key, value in inputs.items()}
            kc.visualization.attention_over_words(model, one, tokens[i], photo, part)
        figure.savefig(FLAGS.figure, dpi=80)
        print(f"Wrote {FLAGS.figure}")
    return len(names) - len(photos)


if __name__ == "__main__":
    start(main)
