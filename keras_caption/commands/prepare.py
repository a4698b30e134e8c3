r"""Prepares a dataset for training: of photos, clips or third-party features.

    keras-caption prepare --photos images --captions dataset_flickr8k.json \
        --output_dir prepared/flickr8k
    keras-caption run --model spatial --dataset prepared --data_dir prepared/flickr8k

with captions in CSV or JSON Lines, or in text files beside the photos

    keras-caption prepare --photos my_photos --captions captions.csv \
        --output_dir prepared/mine
    keras-caption prepare --photos my_photos --captions my_photos \
        --output_dir prepared/mine

of third-party features

    keras-caption prepare --features karpathy_train.tsv,karpathy_val.tsv \
        --captions dataset_coco.json --output_dir prepared/coco

of photos and questions about them

    keras-caption prepare --photos images --questions vqa_v2 cocoqa.json \
        --backbone coloured_objects --detector yolox_nano \
        --output_dir prepared/questions

and of videos

    keras-caption prepare --videos clips --captions videodatainfo.json \
        --output_dir prepared/msrvtt --num_frames 20
    keras-caption prepare --frames val --captions vatex_validation_v1.0.json \
        --output_dir prepared/vatex

The features of a photo depend on --backbone and --detector:

- a network alone: a grid, and regions. The regions are the boxes in --instances, or
  windows of three sizes and the whole photo;
- objects: the objects that the --detector finds;
- coloured_objects: these objects, and the colours of the objects and of the photo;
- a network with a --detector: objects, colours, and features from the network's grid. A
  photo without detected objects has windows as regions.

The features of a clip are those of --num_frames frames. The clip is cut into
--num_frames equal parts, and the middle frame of each part is taken; frames of
third-party features are taken in the same way. All frames of a shorter clip are taken.
The features of a frame are the means over the cells of its grid.

The same command resumes after an interruption. These are skipped and counted: photos
and clips that are missing or cannot be read, clips that were cut, clips of one frame,
images and videos without captions, captions without words, and rows that were cut. If
there are many, skipped.csv in the folder lists them. A damaged caption file stops the
command.

A CSV file of captions has commas, tabs, semicolons or | between its columns, a header,
and a row for each caption. Its columns are file_name (or image, photo, filename,
image_name), caption (or text, comment) and, optionally, split (train, val or test).
Flickr8k's captions.txt and Flickr30k's results.csv are such files. JSON Lines (.jsonl)
and .parquet have the same columns, such as metadata.jsonl of Hugging Face's folders of
images, and may have a list of captions. Names of photos may be relative to a file that
is beside them. Captions with is_rejected, is_precanned or is_spam, as in VizWiz, are
passed over and counted. The captions of dog.jpg may also be in dog.txt, one in each
line: --captions then names the folder.

The command prints the split of each file. You can set it:

    --captions train=a.json val=b.json test=c.json

Otherwise a file or folder is for the split train, val or test (or training, valid,
validation, dev, testing) that is a word of its name. A file of COCO without a split in
its name is refused; if no file of COCO is for test, every other image for val is for
test. If no CSV file or folder has a split in its name, photos are sorted by the SHA-256
of their names: a tenth is for test, a tenth for validation, at least one each, and the
rest for training.
"""

import ast
import pathlib
import time
from collections.abc import Sequence
from typing import Any

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
FLAGS: dict[str, dict[str, Any]] = {
    "photos": {
        "help": "folder of photos, at any depth; or a dataset of Hugging Face on disk, "
        "which has their captions"
    },
    "captions": {
        "action": Names,
        "help": "captions: Karpathy's JSON, with splits; COCO's captions_*.json, for "
        "the split in their names, or as train=FILE val=FILE test=FILE; coco_captions, "
        "which TFDS downloads; CSV, JSON Lines or Parquet, such as metadata.jsonl; "
        "Flickr8k's *.token.txt; img2dataset's *.parquet; or a folder of text files, "
        "one for each photo. For videos: VATEX's JSON, one for each split, as of COCO; "
        "MSR-VTT's videodatainfo.json; MSVD's AllVideoDescriptions.txt or "
        "video_corpus.csv; or a list of id, split and captions",
    },
    "questions": {
        "action": Names,
        "help": "in place of --captions: questions about the photos, whose names are "
        "ids of images: folders of VQA's files, and COCO-QA's JSON with the split of "
        "each question",
    },
    "instances": {
        "action": Names,
        "help": "objects in the photos: COCO's instances_*.json",
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
        "help": "language of VATEX's captions; Chinese captions without spaces are "
        "split into characters",
    },
    "dataset": {
        "choices": ["scenes"],
        "help": "in place of --photos: built-in images",
    },
    "output_dir": {"required": True, "help": "folder for the prepared dataset"},
    "backbone": {
        "default": "MobileNet",
        "help": "a network of keras.applications; efficientnet_lite2, whose weights "
        "the extra backbones installs; a vision backbone of KerasHub: the name of a "
        "preset, such as clip_vit_base_patch16, an address (hf://..., kaggle://...) or "
        "a local folder; or objects or coloured_objects, which the --detector finds",
    },
    "weights": {
        "default": "imagenet",
        "help": "imagenet, which Keras downloads, or a file, without the top; presets "
        "of KerasHub have their own",
    },
    "layer": {
        "help": "layer whose output is the grid; defaults to the last one, for presets "
        "to the last one with a feature map or tokens; or pooled: the vector of the "
        "whole photo of a preset, as a grid of one cell and as one region"
    },
    "image_size": {
        "type": count,
        "help": "height and width of resized photos and frames; defaults to 224, or to "
        "the size of the preset",
    },
    "argument": {
        "action": "append",
        "default": [],
        "help": "another argument of the network, such as alpha=0.75",
    },
    "detector": {
        "help": "detector of the regions: an object detector of KerasHub, name or "
        "folder, or a YOLOX network as a .keras file; there is no grid then"
    },
    "confidence": CONFIDENCE,
    "shard_size": {"type": count, "default": 200, "help": "photos or videos in a file"},
    "batch_size": {
        "type": count,
        "default": 16,
        "help": "photos or frames whose features are computed at once",
    },
    "strict": {"action": "store_true", "help": "stop instead of skipping anything"},
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
    """Prepares a dataset, and prints the number of its images or videos.

    Args:
        options: Options of the command line, and `execute` of
            `keras_caption.apps.prepare.shards.write_shards`.
    """
    sources = [name for name in PREPARE if getattr(options, name)]
    if len(sources) != 1:
        *others, last = (f"--{name}" for name in PREPARE)
        raise kc.InputError(f"Give one of {', '.join(others)} and {last}.")
    [source] = sources
    skipped = Skipped(pathlib.Path(options.output_dir) / "skipped.csv")
    start = time.monotonic()
    manifest = PREPARE[source](options)
    noun = "video" if source in ("videos", "frames") else "image"
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
        listed, sources, options.output_dir, **writing(options)
    )


def writing(options):
    """What all datasets are written with."""
    return {
        "shard_size": options.shard_size,
        "strict": options.strict,
        "execute": options.execute,
    }


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
                "--questions cannot be combined with --captions or --instances."
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
        **writing(options),
    )


def find_objects(options):
    """The detector of objects, which may also describe their colours and pixels."""
    if not options.detector:
        raise kc.InputError(f"--backbone {options.backbone} needs a --detector.")
    network, coloured = None, options.backbone == COLOURED
    if options.backbone not in ("objects", COLOURED):
        network = make_extractor(options)
    return kc.objects.load_detector(
        options.detector, options.confidence, coloured, network
    )


def prepare_videos(options):
    if options.detector or options.backbone in ("objects", COLOURED):
        raise kc.InputError(
            "--videos has the features of a network: name one as --backbone, without "
            "a --detector."
        )
    extractor = kc.features.ClipExtractor(make_extractor(options), options.num_frames)
    return kc.prepare.prepare_clips(
        options.videos,
        kc.prepare.list_videos(options.captions, options.language, options.strict),
        extractor,
        options.output_dir,
        batch_size=options.batch_size,
        **writing(options),
    )


def prepare_frames(options):
    return kc.prepare.prepare_frames(
        kc.prepare.list_videos(options.captions, options.language, options.strict),
        [kc.prepare.open_frames(path) for path in options.frames],
        options.output_dir,
        num_frames=options.num_frames,
        **writing(options),
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
    """Parses `name=value`. The value is a Python literal, or else a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise kc.InputError(f"--argument={text} should be name=value.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
