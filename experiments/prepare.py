r"""Makes datasets to train on: of photos, or of region features in others' files.

    python experiments/prepare.py --photos images --captions dataset_flickr8k.json \
        --output_dir prepared/flickr8k
    python experiments/run.py --model spatial --dataset prepared \
        --data_dir prepared/flickr8k

or

    python experiments/prepare.py --features karpathy_train.tsv,karpathy_val.tsv \
        --captions dataset_coco.json --output_dir prepared/coco

A photo becomes a grid of features and regions: its annotated boxes where --instances
has any, else what a --detector finds, else windows of three sizes and the whole photo.
The same command resumes where an interrupted one stopped. Photos that are missing or
cannot be read, and images without captions, are reported and skipped; a caption file
that is wrong stops the command.
"""

import ast
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import flags
from command import start

import keras_caption as kc

FLAGS = flags.FLAGS
flags.DEFINE_string("photos", None, "Folder of photos, at any depth.")
flags.DEFINE_list(
    "captions",
    [],
    "Their captions: Karpathy's JSON, which splits them too; COCO's captions_*.json, "
    "of which those with 'val' in their name are for validation and test; or "
    "coco_captions, which TFDS downloads.",
)
flags.DEFINE_list("instances", [], "Their objects: COCO's instances_*.json.")
flags.DEFINE_list(
    "features",
    [],
    "In place of --photos: bottom-up attention features, as the original TSV, VinVL's "
    "TSV with its lineidx, a folder of *_att and *_box, or HDF5.",
)
flags.DEFINE_enum(
    "dataset", None, ["scenes"], "Built-in pictures, in place of --photos."
)
flags.DEFINE_string("output_dir", None, "Where the prepared dataset goes.")
flags.DEFINE_string("backbone", "MobileNet", "A network of keras.applications.")
flags.DEFINE_string(
    "weights",
    "imagenet",
    "imagenet, which Keras downloads, or a file, without the top.",
)
flags.DEFINE_string("layer", None, "Whose output is the grid; the last one's if not.")
flags.DEFINE_integer("image_size", 224, "Height and width that photos are brought to.")
flags.DEFINE_multi_string(
    "argument", [], "More arguments of the network, such as alpha=0.75."
)
flags.DEFINE_string(
    "detector", None, "Finds regions: an object detector of KerasHub, name or folder."
)
flags.DEFINE_integer("shard_size", 200, "Photos in a file.", lower_bound=1)
flags.DEFINE_integer(
    "batch_size", 16, "Photos whose features are found at once.", lower_bound=1
)
flags.DEFINE_bool("strict", False, "Stop at what would be skipped.")
flags.mark_flag_as_required("output_dir")


def main(argv):
    if len(argv) > 1:
        sys.exit(f"error: unexpected argument {argv[1]!r}; see --help.")
    prepare()


def prepare():
    if sum(map(bool, (FLAGS.photos, FLAGS.dataset, FLAGS.features))) != 1:
        raise kc.InputError("Give one of --photos, --features and --dataset.")
    start = time.monotonic()
    options = {"shard_size": FLAGS.shard_size, "strict": FLAGS.strict}
    if FLAGS.features:
        sources = [kc.data.open_regions(path) for path in FLAGS.features]
        listed = kc.data.list_images(FLAGS.captions)
        manifest = kc.data.prepare_regions(listed, sources, FLAGS.output_dir, **options)
        report_features(manifest)
    else:
        manifest = prepare_photos(options)
    for split, counts in manifest["splits"].items():
        print(f"{split:6}{counts['prepared']:8,} of {counts['listed']:,} images")
    for name, reason in manifest["left_out"]:
        print(f"skipped: {name}: {reason}")
    total = sum(counts["listed"] for counts in manifest["splits"].values())
    rate = total / (time.monotonic() - start)
    print(f"{FLAGS.output_dir} is prepared, {rate:.1f} images/s")


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
    if FLAGS.dataset:
        records = kc.data.records_of_scenes(kc.data.load(FLAGS.dataset))
    else:
        records = kc.data.records_of_photos(
            FLAGS.photos, FLAGS.captions, FLAGS.instances
        )
    extractor = kc.features.Extractor(
        FLAGS.backbone,
        FLAGS.layer,
        FLAGS.image_size,
        detector=FLAGS.detector,
        arguments=dict(map(parse_argument, FLAGS.argument)),
        weights=FLAGS.weights,
    )
    height, width, dim = extractor.grid_shape
    print(f"Grids of {height} x {width} x {dim}")
    return kc.data.prepare(
        records, extractor, FLAGS.output_dir, batch_size=FLAGS.batch_size, **options
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


if __name__ == "__main__":
    start(main)
