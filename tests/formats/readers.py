"""The readers of files, each with a function that writes a small good file.

`READERS` maps a name to a pair: a function that writes into a folder, and a function
that reads the folder.
"""

import json

import coco_files
import numpy as np

from keras_caption.data import coco_objects, list_images, records_of_photos
from keras_caption.data.coco import CocoFiles
from keras_caption.formats.coco import read_captions, read_instances
from keras_caption.formats.coco_results import read_results
from keras_caption.formats.karpathy import read_split
from keras_caption.formats.runs import read_finished, read_history
from keras_caption.rewards import DocumentFrequencies
from keras_caption.text import Vocabulary

RESULTS = [{"image_id": i, "caption": f"dog {i}"} for i in range(3)]
RUN = {
    "config.json": {
        "model": "san",
        "dataset": "prepared",
        "data_dir": "prepared/coco",
        "seed": 1,
        "objective": "cross-entropy",
        "config": {
            "model": {"num_layers": 2},
            "decoding": {"beam_size": 3, "max_length": 20, "length_penalty": 0.0},
        },
        "overrides": {"model.num_layers": 2},
        "parameters": 1000,
    },
    "test_scores.json": {"CIDEr-D": 1.5, "statements": {"all": 0.5}},
    "history.json": [
        {"epoch": 1, "iterations": 3, "val_cider": 0.5},
        {"epoch": 2, "iterations": 6, "val_cider": 0.75},
    ],
}


def karpathy_images():
    """Images as Karpathy's JSON of COCO lists them."""
    return [
        {
            "cocoid": 10 + i,
            "imgid": i,
            "filepath": f"part{i % 2}",
            "filename": f"{i}.jpg",
            "split": split,
            "sentences": [{"raw": f"A dog, number {i}.", "sentid": i}],
        }
        for i, split in enumerate(["train", "restval", "val", "test"])
    ]


def listing(*, annotated):
    """A file of COCO's that lists images, with captions or without."""
    captions, _, _ = coco_files.contents(images=4)
    for image in captions["images"]:
        image["file_name"] = f"{image['id']}.jpg"
    return captions if annotated else {"images": captions["images"]}


def json_writer(name, content):
    """A function that writes JSON into a folder."""
    return lambda folder: (folder / name).write_text(json.dumps(content))


def write_karpathy(folder):
    json_writer("dataset.json", {"images": karpathy_images()})(folder)
    json_writer("captions_val.json", listing(annotated=True))(folder)


def write_photos(folder):
    write_karpathy(folder)
    (folder / "part0").mkdir(exist_ok=True)
    (folder / "part0" / "0.jpg").touch()


def read_photos(folder):
    """Finds the photos; does not read them."""
    return records_of_photos(folder, sorted(folder.glob("*.json")))


def write_run(folder):
    for name, content in RUN.items():
        json_writer(name, content)(folder)


VOCABULARY = Vocabulary(["a", "dog", "runs"])


def write_frequencies(folder):
    references = np.array([[[4, 5, 6, 2]], [[4, 5, 2, 0]]])
    counted = DocumentFrequencies.count(references)
    counted.save(folder / "frequencies.npz", VOCABULARY)


def read_objects(folder):
    records = coco_objects._records_of_files(CocoFiles.find(folder))
    return [coco_objects.object_example(*record) for record in records["train"]]


CAPTIONS, INSTANCES, SPLIT = coco_files.contents(images=4)
READERS = {
    "captions": (
        json_writer("captions.json", CAPTIONS),
        lambda folder: read_captions(folder / "captions.json"),
    ),
    "instances": (
        json_writer("instances.json", INSTANCES),
        lambda folder: read_instances(folder / "instances.json"),
    ),
    "split": (
        json_writer("split.json", SPLIT),
        lambda folder: read_split(folder / "split.json"),
    ),
    "objects": (
        lambda folder: coco_files.write(folder, CAPTIONS, INSTANCES, SPLIT),
        read_objects,
    ),
    "karpathy": (
        write_karpathy,
        lambda folder: list_images(sorted(folder.glob("*.json"))),
    ),
    "photo_names": (write_photos, read_photos),
    "coco_listing": (
        json_writer("captions_val.json", listing(annotated=True)),
        lambda folder: list_images([folder / "captions_val.json"]),
    ),
    "test_server_listing": (
        json_writer("image_info.json", listing(annotated=False)),
        lambda folder: list_images([folder / "image_info.json"]),
    ),
    "results": (
        json_writer("results.json", RESULTS),
        lambda folder: read_results(folder / "results.json"),
    ),
    "document_frequencies": (
        write_frequencies,
        lambda folder: DocumentFrequencies.load(folder / "frequencies.npz", VOCABULARY),
    ),
    "run": (
        write_run,
        lambda folder: (read_finished(folder), read_history(folder)),
    ),
}
