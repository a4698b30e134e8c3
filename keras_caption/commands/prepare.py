r"""Makes datasets to train on: of photos, or of region features in others' files.

    keras-caption prepare --photos images --captions dataset_flickr8k.json \
        --output_dir prepared/flickr8k
    keras-caption run --model spatial --dataset prepared --data_dir prepared/flickr8k

or

    keras-caption prepare --features karpathy_train.tsv,karpathy_val.tsv \
        --captions dataset_coco.json --output_dir prepared/coco

A photo becomes a grid of features and regions: its annotated boxes where --instances
has any, else what a --detector finds, else windows of three sizes and the whole photo.
The same command resumes where an interrupted one stopped. Photos that are missing or
cannot be read, and images without captions, are reported and skipped; a caption file
that is wrong stops the command.
"""

import ast
import time
from collections.abc import Sequence

import keras_caption as kc
from keras_caption.commands.command_line import Parser, count, names

FLAGS = {
    "photos": {"help": "folder of photos, at any depth"},
    "captions": {
        "type": names,
        "default": [],
        "help": "their captions: Karpathy's JSON, which splits them too; COCO's "
        "captions_*.json, of which those with 'val' in their name are for validation "
        "and test; or coco_captions, which TFDS downloads",
    },
    "instances": {
        "type": names,
        "default": [],
        "help": "their objects: COCO's instances_*.json",
    },
    "features": {
        "type": names,
        "default": [],
        "help": "in place of --photos: bottom-up attention features, as the original "
        "TSV, VinVL's TSV with its lineidx, a folder of *_att and *_box, or HDF5",
    },
    "dataset": {
        "choices": ["scenes"],
        "help": "built-in images, in place of --photos",
    },
    "output_dir": {"required": True, "help": "where the prepared dataset goes"},
    "backbone": {"default": "MobileNet", "help": "a network of keras.applications"},
    "weights": {
        "default": "imagenet",
        "help": "imagenet, which Keras downloads, or a file, without the top",
    },
    "layer": {"help": "layer whose output is the grid; defaults to the last one"},
    "image_size": {
        "type": int,
        "default": 224,
        "help": "height and width that photos are resized to",
    },
    "argument": {
        "action": "append",
        "default": [],
        "help": "another argument of the network, such as alpha=0.75",
    },
    "detector": {
        "help": "finds regions: an object detector of KerasHub, name or folder"
    },
    "shard_size": {"type": count, "default": 200, "help": "photos in a file"},
    "batch_size": {
        "type": count,
        "default": 16,
        "help": "photos whose features are found at once",
    },
    "strict": {"action": "store_true", "help": "stop at what would be skipped"},
}


def main(arguments: Sequence[str]) -> None:
    parser = Parser("keras-caption prepare", __doc__)
    for name, settings in FLAGS.items():
        parser.add_argument(f"--{name}", **settings)
    prepare(parser.parse_args(arguments))


def prepare(options):
    """Prepares a dataset, and prints what has become of every image."""
    if sum(map(bool, (options.photos, options.dataset, options.features))) != 1:
        raise kc.InputError("Give one of --photos, --features and --dataset.")
    start = time.monotonic()
    if options.features:
        manifest = prepare_features(options)
        report_features(manifest)
    else:
        manifest = prepare_photos(options)
    for split, counts in manifest["splits"].items():
        print(f"{split:6}{counts['prepared']:8,} of {counts['listed']:,} images")
    for name, reason in manifest["left_out"]:
        print(f"skipped: {name}: {reason}")
    total = sum(counts["listed"] for counts in manifest["splits"].values())
    rate = total / (time.monotonic() - start)
    print(f"{options.output_dir} is prepared, {rate:.1f} images/s")


def prepare_features(options):
    sources = [kc.data.open_regions(path) for path in options.features]
    listed = kc.data.list_images(options.captions)
    return kc.data.prepare_regions(
        listed,
        sources,
        options.output_dir,
        shard_size=options.shard_size,
        strict=options.strict,
    )


def report_features(manifest):
    """What has become of every record of the files of features."""
    features = manifest["features"]
    prepared = sum(counts["prepared"] for counts in manifest["splits"].values())
    print(
        f"{sum(features['sources'].values()):,} records of features: "
        f"{prepared:,} prepared, "
        f"{features['with_captions'] - prepared:,} unreadable, "
        f"{features['without_captions']:,} without captions, "
        f"{len(features['wrong']):,} of no known image"
    )
    for reason in features["wrong"]:
        print(f"skipped: {reason}")


def prepare_photos(options):
    if options.dataset:
        records = kc.data.records_of_scenes(kc.data.load(options.dataset))
    else:
        records = kc.data.records_of_photos(
            options.photos, options.captions, options.instances
        )
    extractor = kc.features.Extractor(
        options.backbone,
        options.layer,
        options.image_size,
        detector=options.detector,
        arguments=dict(map(parse_argument, options.argument)),
        weights=options.weights,
    )
    height, width, dim = extractor.grid_shape
    print(f"Grids of {height} x {width} x {dim}")
    return kc.data.prepare(
        records,
        extractor,
        options.output_dir,
        batch_size=options.batch_size,
        shard_size=options.shard_size,
        strict=options.strict,
    )


def parse_argument(text):
    """Name and value of `name=value`, a Python literal or else a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise kc.InputError(f"--argument={text} should be name=value.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
