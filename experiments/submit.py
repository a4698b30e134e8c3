r"""Writes results files for COCO's caption server.

    python experiments/submit.py saved_models/ngsan_prepared --name ngsan \
        --val2014 prepared/val2014 --test2014 prepared/test2014

captions all images of the two datasets, which keras-caption prepare makes from
captions_val2014.json and image_info_test2014.json. Writes
captions_val2014_ngsan_results.json and captions_test2014_ngsan_results.json. Models
that are separated by commas form an ensemble. With --references, such as the server's
c5 and c40 captions, the files are scored. An earlier file is scored by

    keras-caption score C5.json C40.json RESULTS.json
"""

import pathlib

import keras_caption as kc
from keras_caption.base.atomic import check_new
from keras_caption.base.progress import progress
from keras_caption.commands.command_line import (
    Parser,
    add_decoding,
    count,
    decoding_of,
    names,
    start,
)

SETS = {"val2014": 40_504, "test2014": 40_775}


def main(arguments):
    parser = Parser("experiments/submit.py", __doc__, imports=True)
    parser.add_argument(
        "model", type=names, help="saved model, or several separated by commas"
    )
    parser.add_argument(
        "--name", required=True, help="name of the algorithm, in the names of files"
    )
    for name, expected in SETS.items():
        parser.add_argument(
            f"--{name}", help=f"prepared dataset of the {expected:,} images"
        )
    parser.add_argument(
        "--references",
        type=names,
        default=[],
        help="COCO's captions_*.json to score against",
    )
    parser.add_argument(
        "--spice",
        action="store_true",
        help="compute SPICE too; its first use downloads several hundred MB",
    )
    parser.add_argument("--output_dir", default=".", help="folder for the files")
    parser.add_argument(
        "--batch_size", type=count, default=50, help="images captioned at once"
    )
    add_decoding(parser)
    submit(parser.parse_intermixed_args(arguments))


def submit(options):
    """Captions the datasets, and scores those that have references."""
    folders = {name: getattr(options, name) for name in SETS}
    folders = {name: folder for name, folder in folders.items() if folder}
    if not folders:
        raise kc.InputError("Give --val2014, --test2014 or both.")
    output = pathlib.Path(options.output_dir)
    paths = {n: output / f"captions_{n}_{options.name}_results.json" for n in folders}
    for path in paths.values():
        check_new(path)
    model = kc.models.Ensemble(options.model)
    for name, folder in folders.items():
        captions, path = caption(model, name, folder, options), paths[name]
        kc.evaluation.write_results(path, captions)
        print(f"Wrote {path}, {len(captions):,} captions")
        if len(captions) != SETS[name]:
            print(f"The server expects {SETS[name]:,}.")
        known = [
            reference
            for reference in options.references
            if kc.prepare.read_captions(reference).keys() & captions.keys()
        ]
        if known:
            print(kc.evaluation.score_table(known, path, options.spice))


def caption(model, name, folder, options):
    """Captions all images of a prepared dataset, a dict from image id to str."""
    builder = kc.datasets.load("prepared", folder)
    examples = kc.datasets.read(builder, "+".join(builder.info.splits))
    batches = kc.batches.image_batches(examples, options.batch_size, model.input_specs)
    total = -(-len(examples) // options.batch_size)
    return model.caption(
        progress(batches, name, total, "batches"), **decoding_of(options)
    )


if __name__ == "__main__":
    start(main)
