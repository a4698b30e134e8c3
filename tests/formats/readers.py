"""The readers of files, each with a function that writes small valid files."""

import argparse
import collections
import copy
import gzip
import io
import json
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from typing import NamedTuple
from unittest import mock

import coco_files
import h5py
import keras
import lmdb
import numpy as np
import onnx_detectors
import pyarrow as pa
import pyarrow.parquet as pq
import region_files
import tensorflow as tf
import torch_files
from keras_caption.prepare import list_images, records_of_arrow, records_of_photos
from safetensors.numpy import save_file

import keras_caption as kc
from keras_caption.apps.bulk.shards import plan
from keras_caption.apps.objects.lite_yolox import write_yolox
from keras_caption.base.errors import InputError
from keras_caption.datasets import coco_objects, load_parallel
from keras_caption.datasets.coco import CocoFiles
from keras_caption.formats import apart, detector_files, lmdb_regions
from keras_caption.formats.arrow_folder import open_arrow
from keras_caption.formats.caption_rows import read_caption_rows
from keras_caption.formats.caption_texts import read_caption_texts
from keras_caption.formats.checkpoints import read_tensors
from keras_caption.formats.coco import read_captions, read_instances
from keras_caption.formats.coco_qa import read_coco_qa
from keras_caption.formats.coco_results import read_results
from keras_caption.formats.detector_files import open_detector
from keras_caption.formats.dictionaries import read_answers, read_token_ids
from keras_caption.formats.faults import reading
from keras_caption.formats.glove import read_glove
from keras_caption.formats.img2dataset import read_img2dataset
from keras_caption.formats.infos import read_infos
from keras_caption.formats.items import read_items
from keras_caption.formats.karpathy import read_split
from keras_caption.formats.keras_files import load_keras
from keras_caption.formats.litert_graph import LiteRTGraph
from keras_caption.formats.msvd import list_msvd_videos
from keras_caption.formats.ncnn_files import read_ncnn
from keras_caption.formats.photo_metadata import describe_photo, is_described
from keras_caption.formats.prepared_folder import read_image_ids
from keras_caption.formats.question_rows import read_question_rows
from keras_caption.formats.runs import read_finished, read_history
from keras_caption.formats.vqa import find_vqa, read_vqa
from keras_caption.formats.vqa_results import read_vqa_results
from keras_caption.formats.vsr import read_vsr
from keras_caption.rewards import DocumentFrequencies
from keras_caption.text import Vocabulary

RESULTS = [{"image_id": i, "caption": f"dog {i}"} for i in range(3)]
DECODING = {"beam_size": 3, "max_length": 20, "length_penalty": 0.0}
RUN = {
    "config.json": {
        "model": "san",
        "objective": "self-critical",
        "start": {"best.keras": "0a1b"},
        "members": {},
        "config": {
            "seed": 1,
            "precision": "float32",
            "strategy": "one_device",
            "deterministic": False,
            "data": {"dataset": "prepared", "data_dir": "prepared/coco"},
            "model": {"name": "san", "num_layers": 2, "query_norm": None},
            "decoding": DECODING,
        },
        "parameters": 1000,
    },
    "test_scores.json": {"CIDEr-D": 1.5, "statements": {"all": 0.5}},
    "history.json": [
        {"epoch": 1, "iterations": 3, "val_cider": 0.5, "scale": 100},
        {"epoch": 2, "iterations": 6, "val_cider": 0.75, "scale": 100},
    ],
    "test_items.json": {
        "ids": [1, "b"],
        "CIDEr-D": [0.5, None],
        "log_probability": [[-1.5, -2], [-0.5]],
    },
}


def karpathy_images():
    """The images of a file in Karpathy's schema."""
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
    """Content of a COCO file that lists images, with captions or without."""
    captions, _, _ = coco_files.contents(images=4)
    for image in captions["images"]:
        image["file_name"] = f"{image['id']}.jpg"
    return captions if annotated else {"images": captions["images"]}


def json_writer(name, content):
    """Makes a function that writes JSON into a folder."""
    return lambda folder: (folder / name).write_text(json.dumps(content))


def write_karpathy(folder):
    json_writer("dataset.json", {"images": karpathy_images()})(folder)
    json_writer("captions_val.json", listing(annotated=True))(folder)


def write_photos(folder):
    write_karpathy(folder)
    (folder / "part0").mkdir(exist_ok=True)
    (folder / "part0" / "0.jpg").touch()


def read_photos(folder):
    """Lists the photos without reading them."""
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
    for record in records["train"]:
        coco_objects.object_example(*record)


FEATURES = {
    i: (
        np.linspace(-1, 1, 5 * n, dtype="float32").reshape(n, 5),
        np.float32([[0.1, 0.2, 0.8, 0.9]] * n),
    )
    for i, n in ((7, 1), (8, 3))
}


def read_regions(path):
    """Reads all region features; returns a list of problems."""
    regions = kc.prepare.open_regions(path)
    size = region_files.WIDTH, region_files.HEIGHT
    problems = list(regions.problems)
    for image_id in regions.ids:
        try:
            features, boxes = regions.read(image_id, size)
            assert np.isfinite(features).all()
            assert boxes is None or boxes.shape == (len(features), 4)
        except InputError as error:
            problems.append(str(error))
    return problems


def regions_reader(write, name, files=("*",)):
    """Makes the `Reader` of region features that a function writes."""
    return Reader(
        lambda folder: write(folder / name, FEATURES),
        lambda folder: read_regions(folder / name),
        files,
    )


VIDEO_LISTS = {
    "vatex_training_v1.0.json": [
        {"videoID": f"v{i}", "enCap": ["A dog.", "One dog."]} for i in range(3)
    ],
    "videodatainfo.json": {
        "videos": [{"video_id": "m0", "split": "train"}],
        "sentences": [{"video_id": "m0", "caption": "A dog."}],
    },
    "captions.json": [{"id": "c0", "split": "val", "captions": ["A dog."]}],
}


def write_video_lists(folder):
    for name, content in VIDEO_LISTS.items():
        json_writer(name, content)(folder)


FRAMES = {name: np.linspace(-1, 1, 15).reshape(5, 3) for name in ("v0", "v1")}


def write_frames_folder(folder):
    folder.mkdir(exist_ok=True)
    np.save(folder / "v0.npy", FRAMES["v0"])
    np.savez(folder / "v1.npz", FRAMES["v1"])


def write_frames_hdf5(path):
    with h5py.File(path, "w") as file:
        for name, array in FRAMES.items():
            file[name] = array


def read_frames(path):
    """Reads all frame features; returns a list of problems."""
    source = kc.prepare.open_frames(path)
    problems = list(source.problems)
    for name in source.ids:
        try:
            features = source.read(name)
            assert np.isfinite(features).all()
            assert features.ndim == 2
        except InputError as error:
            problems.append(str(error))
    return problems


def frames_reader(write, name):
    """Makes the `Reader` of frame features that a function writes."""
    return Reader(
        lambda folder: write(folder / name), lambda folder: read_frames(folder / name)
    )


def write_keras(folder):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    model.save(folder / "model.keras")


KERAS_MEMBERS = "config.json", "metadata.json", "model.weights.h5"


def write_keras_members(folder):
    write_keras(folder)
    with zipfile.ZipFile(folder / "model.keras") as archive:
        archive.extractall(folder)


def read_keras_members(folder):
    """Loads a `.keras` file made of the members in a folder."""
    with zipfile.ZipFile(folder / "model.keras", "w") as archive:
        for name in KERAS_MEMBERS:
            archive.write(folder / name, name)
    load_keras(folder / "model.keras")


def write_infos(folder):
    vocabulary = {"1": "a", "2": "b"}
    options = argparse.Namespace(rnn_size=8, ids=(1, 2))
    infos = {"vocab": vocabulary, "opt": options, "best": np.float64(1)}
    (folder / "infos.pkl").write_bytes(pickle.dumps(infos, protocol=2))


def write_prepared(folder):
    source = region_files.write_tsv(folder / "features.tsv", FEATURES)
    listed = [kc.prepare.ListedImage(i, f"{i}.jpg", ["A dog."]) for i in FEATURES]
    kc.prepare.prepare_regions(
        {"train": listed}, [kc.prepare.open_regions(source)], folder
    )


def read_prepared(folder):
    builder = kc.datasets.load("prepared", folder)
    for example in kc.datasets.read(builder, "train").as_numpy_iterator():
        assert np.isfinite(example["regions"]).all()


def write_parallel(folder):
    for split in ("train", "val", "test"):
        (folder / f"{split}.en").write_text("a dog\na cat\n")
        text = gzip.compress("ein Hund\neine schöne Katze\n".encode())
        (folder / f"{split}.de.gz").write_bytes(text)


QUESTION_IDS = range(20, 24)
VQA = {
    "questions_{}.json": {
        "questions": [
            {"question_id": i, "image_id": 7 + i % 2, "question": f"Is it {i}?"}
            for i in QUESTION_IDS
        ]
    },
    "annotations_{}.json": {
        "annotations": [
            {
                "question_id": i,
                "image_id": 7 + i % 2,
                "question_type": "is it",
                "answer_type": "yes/no",
                "multiple_choice_answer": "yes",
                "answers": [{"answer": "yes", "answer_id": n} for n in range(1, 11)],
            }
            for i in QUESTION_IDS
        ]
    },
}
COCO_QA = {
    "questions": [
        {"question_id": i, "image_id": 7, "question": "what is it", "answer": "dog"}
        | {"type": "object"}
        for i in QUESTION_IDS
    ]
}
STATEMENTS = {
    "statements": [
        {"image_id": 7, "caption": "It is near.", "label": i % 2, "relation": "near"}
        for i in range(4)
    ]
}


def write_vqa(folder):
    for split in ("train", "val"):
        for name, content in VQA.items():
            json_writer(name.format(split), content)(folder)
        questions = folder / f"questions_{split}.json"
        packed = gzip.compress(questions.read_bytes(), mtime=0)
        questions.with_suffix(".json.gz").write_bytes(packed)
        questions.unlink()


def write_ok_vqa(folder):
    """As OK-VQA: without the commonest of ten answers."""
    annotations = copy.deepcopy(VQA["annotations_{}.json"])
    for record in annotations["annotations"]:
        del record["multiple_choice_answer"]
        record["answers"][:4] = [{"answer": "no"}] * 4
    for split in ("train", "val"):
        name = f"mscoco_{split}2014_questions.json"
        json_writer(name, VQA["questions_{}.json"])(folder)
        json_writer(f"mscoco_{split}2014_annotations.json", annotations)(folder)


class Reader(NamedTuple):
    """A reader of files.

    Attributes:
        write: Function that writes small valid files into a folder.
        read: Function that reads them. If it returns a list, the list is of problems.
        files: Patterns, of `PurePath.match`, of the files that it reads.
    """

    write: Callable
    read: Callable
    files: tuple[str, ...] = ("*",)


def torch_reader(is_archive):
    """A reader of a state dict of two tensors, in either format of PyTorch."""

    def write(folder):
        state = torch_files.tensors_of({"a": np.ones((2, 3)), "b": np.ones(2)})
        torch_files.write(folder / "model.pkl", state, is_archive)

    return Reader(write, lambda folder: read_tensors(folder / "model.pkl"))


CAPTION_CSV = 'image,caption,split\na.jpg,A dog.,train\na.jpg,"Dog, asleep.",train\n'
FLICKR30K = """image_name| comment_number| comment
a.jpg| 0| A dog , asleep .
a.jpg| 1   A dog .
b.jpg| 0| " No " dog .
"""
TOKENS = """a.jpg#0\tA dog , asleep .
a.jpg#1\t" No " dog .
b.jpg#0\t
"""
CAPTIONS, INSTANCES, SPLIT = coco_files.contents(images=4)


def write_records(folder):
    """Questions about photos in all formats of bulk."""
    rows = [{"id": i, "image": f"{i}.jpg", "text": "Is it?"} for i in range(3)]
    lines = [json.dumps(row) for row in rows]
    (folder / "a.jsonl").write_text("\n".join(lines))
    (folder / "b.csv").write_text(
        'id,image,text\n1,1.jpg,"Is it,\nor not?"\n2,2.jpg,?\n'
    )
    pq.write_table(pa.Table.from_pylist(rows), folder / "c.parquet")
    with tf.io.TFRecordWriter(str(folder / "d.tfrecord")) as writer:
        for row in rows:
            feature = {
                name: tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[str(value).encode()])
                )
                for name, value in row.items()
            }
            features = tf.train.Features(feature=feature)
            writer.write(tf.train.Example(features=features).SerializeToString())
    with tarfile.open(folder / "e.tar", "w") as tar:
        for i in range(3):
            contents = {"jpg": b"photo", "txt": b"Is it?", "json": b'{"id": 7}'}
            for suffix, content in contents.items():
                member = tarfile.TarInfo(f"{i}.{suffix}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def read_records(folder):
    """The problems of all records, after the folder."""
    fields, problems = ("photo", "text"), []
    inputs = [str(folder / name) for name in ("a.jsonl", "b.csv")]
    for shard in plan([str(folder), *inputs], fields, 2).shards:
        for record in shard.read(fields, collections.Counter()):
            assert record.problem or isinstance(record.photo, str | bytes)
            assert record.problem or isinstance(record.text, str)
            if record.problem:
                problems.append(f"{folder}: {record.problem}")
    return problems


def write_arrays(folder):
    """One array of each format that a folder may have."""
    folder.mkdir(exist_ok=True)
    array = np.linspace(-1, 1, 15, dtype="float32").reshape(3, 5)
    np.save(folder / "1.npy", array)
    np.savez(folder / "2.npz", features=array)
    save_file({"features": array}, folder / "3.safetensors")
    tensor = torch_files.tensors_of({"a": array})["a"]
    torch_files.write(folder / "4.pth", tensor, True)


def write_safetensors(path):
    save_file({str(i): features for i, (features, _) in FEATURES.items()}, path)


def write_grit(path):
    with h5py.File(path, "w") as file:
        file["image_ids"] = [*FEATURES]
        file["gri_feat"] = np.ones((2, 4, 5), "float32")
        file["gri_mask"] = np.arange(8).reshape(2, 1, 1, 4) > 5


def write_dlct(path):
    size = region_files.WIDTH, region_files.HEIGHT
    with h5py.File(path, "w") as file:
        for i, (features, boxes) in FEATURES.items():
            file[f"{i}_features"], file[f"{i}_size"] = features, [size]
            file[f"{i}_boxes"] = region_files.in_pixels(boxes)
            file[f"{i}_grids"] = np.ones((4, 5), "float32")


NCNN = """7767517
3 3
Input data 0 1 data 0=8 1=8 2=3
Convolution first 1 1 data a 0=2 1=1 5=1 6=6 9=1
ConvolutionDepthWise second 1 1 a b 0=2 1=1 5=1 6=2 7=2 8=1 -23310=2,0.0,1.0
"""


def write_ncnn(folder):
    """A convolution of float32, and one of int8 with its scales."""
    (folder / "net.param").write_text(NCNN)
    floats = np.linspace(-1, 1, 6 + 2, dtype="<f4")
    int8 = [np.int8([3, -3, 0, 0]), np.float32([0.5, 0.5, 20, 20, 0.1])]
    content = [np.uint32([0]), floats, np.uint32([0x000D4B38]), *int8]
    (folder / "net.bin").write_bytes(b"".join(x.tobytes() for x in content))


def write_metadata(folder):
    rows = [{"file_name": f"{i}.jpg", "text": ["A dog.", None]} for i in range(3)]
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), folder / "metadata.parquet")


def read_metadata(folder):
    """Reads one file after the other: the fault of one hides none of the other."""
    problems = []
    for name in ("metadata.jsonl", "metadata.parquet"):
        try:
            problems += read_caption_rows(folder / name)[1]
        except InputError as error:
            problems.append(str(error))
    return problems


def write_lmdb_record(folder):
    """The record of one image of ViLBERT's LMDB."""
    features, boxes = FEATURES[8]
    record = {"image_h": region_files.HEIGHT, "image_w": region_files.WIDTH}
    record |= {
        "num_boxes": 3,
        "boxes": region_files.text(region_files.in_pixels(boxes)),
    }
    record["features"] = region_files.text(features)
    (folder / "record.pkl").write_bytes(pickle.dumps(record, protocol=3))


class Here:
    """`keras_caption.formats.apart.Apart`, in this process, which is quicker."""

    def __init__(self, open_file, path):
        self.path = path
        with reading(path):
            self.function = open_file(str(path))

    def __call__(self, *args):
        with reading(self.path):
            return self.function(*args)


class Forked:
    """The process of `Apart` as a fork, which begins in milliseconds."""

    def __init__(self, command, *, pass_fds, **kwargs):
        [self.connection] = pass_fds
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=self.answer, args=command[-1:])
        self.process.start()

    def answer(self, argument):
        os.closerange(3, self.connection)  # the caller's end, whose close is the end
        os.closerange(self.connection + 1, 4096)
        sys.argv[1:] = [argument]
        apart.answer_calls()

    def wait(self, timeout=None):
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired("fork", timeout)
        return self.process.exitcode

    def kill(self):
        self.process.kill()


@mock.patch.object(subprocess, "Popen", Forked)
def read_lmdb(folder):
    return read_regions(folder / "lmdb")


@mock.patch.object(subprocess, "Popen", Forked)
def read_detector_of_litert(folder):
    run_detector(folder / "detector.tflite")


@mock.patch.object(lmdb_regions, "Apart", Here)
def read_lmdb_record(folder):
    """Reads an LMDB with a record: damaged pages would end the process, in C."""
    content = (folder / "record.pkl").read_bytes()
    with tempfile.TemporaryDirectory(dir=folder) as path:
        with lmdb.open(path, map_size=2**20) as file, file.begin(write=True) as writing:
            writing.put(b"8", content)
        return read_regions(pathlib.Path(path))


def write_lmdb(folder):
    write_lmdb_record(folder)
    record = (folder / "record.pkl").read_bytes()
    (folder / "record.pkl").unlink()
    opened = lmdb.open(str(folder / "lmdb"), map_size=2**20, lock=False)
    with opened as file, file.begin(write=True) as writing:
        for i in range(20):
            writing.put(str(i).encode(), record)


def write_arrow(folder):
    import datasets

    columns = {"image": datasets.Image(), "captions": datasets.Value("string")}
    png = tf.io.encode_png(np.zeros((2, 2, 3), "uint8")).numpy()
    rows = {"image": [{"bytes": png, "path": None}] * 3, "captions": ["A dog."] * 3}
    rows = datasets.Dataset.from_dict(rows, datasets.Features(columns))
    rows.save_to_disk(folder / "rows")


def read_arrow(folder):
    open_arrow.cache_clear()
    for records in records_of_arrow(folder / "rows").values():
        for record in records:
            record.read()


def write_img2dataset(folder):
    rows = {"key": ["000000001", "000000002"], "caption": ["A dog.", "A cat."]}
    rows["status"] = ["success", "failed_to_download"]
    pq.write_table(pa.table(rows), folder / "00000.parquet")


def write_detector(folder):
    onnx_detectors.write(folder / "detector.onnx", *onnx_detectors.detr())


@mock.patch.object(detector_files, "Apart", Here)
def read_detector(folder):
    run_detector(folder / "detector.onnx")


def run_detector(path):
    detector = open_detector(path)
    shape = (1, 3, 64, 64) if detector.channels_first else (1, 64, 64, 3)
    detector.run(np.zeros(shape, "float32"))


def write_detector_of_litert(folder):
    graph = LiteRTGraph()
    image = graph.input("image", (1, 64, 64, 3))
    scaled = graph.add(
        "MUL", [image, graph.constant(np.float32(2))], image.shape, "Mul"
    )
    axes = graph.constant(np.int32([1, 2]))
    means = graph.add("MEAN", [scaled, axes], (1, 3), "Reducer", keepDims=False)
    graph.write(folder / "detector.tflite", {"logits": means})


def write_yolox_network(folder):
    network = onnx_detectors.yolox_network(np.random.default_rng(0))
    onnx_detectors.write(folder / "yolox.onnx", *network)


def convert_yolox(folder):
    with tempfile.TemporaryDirectory() as made:
        write_yolox(folder / "yolox.onnx", pathlib.Path(made, "yolox"))


def write_described(folder):
    jpeg = tf.io.encode_jpeg(np.zeros((8, 8, 3), "uint8")).numpy()
    (folder / "dog.jpg").write_bytes(describe_photo(jpeg, "A dog."))


def read_described(folder):
    """The photo's path, if a description cannot be written into it."""
    path = folder / "dog.jpg"
    is_described(path)
    try:
        describe_photo(path.read_bytes(), "A cat.")
    except InputError:  # the reason alone, as the text goes elsewhere then
        return [str(path)]
    return []


READERS = {
    "parallel_text": Reader(
        write_parallel, lambda folder: load_parallel("parallel", folder)
    ),
    "captions": Reader(
        json_writer("captions.json", CAPTIONS),
        lambda folder: read_captions(folder / "captions.json"),
    ),
    "instances": Reader(
        json_writer("instances.json", INSTANCES),
        lambda folder: read_instances(folder / "instances.json"),
    ),
    "split": Reader(
        json_writer("split.json", SPLIT),
        lambda folder: read_split(folder / "split.json"),
    ),
    "objects": Reader(
        lambda folder: coco_files.write(folder, CAPTIONS, INSTANCES, SPLIT),
        read_objects,
    ),
    "karpathy": Reader(
        write_karpathy,
        lambda folder: list_images(sorted(folder.glob("*.json"))),
    ),
    "photo_names": Reader(write_photos, read_photos, ("*.json",)),
    "coco_listing": Reader(
        json_writer("captions_val.json", listing(annotated=True)),
        lambda folder: list_images([folder / "captions_val.json"]),
    ),
    "test_server_listing": Reader(
        json_writer("image_info.json", listing(annotated=False)),
        lambda folder: list_images([folder / "image_info.json"]),
    ),
    "results": Reader(
        json_writer("results.json", RESULTS),
        lambda folder: read_results(folder / "results.json"),
    ),
    "vqa": Reader(
        write_vqa,
        lambda folder: {split: read_vqa(*x) for split, x in find_vqa(folder).items()},
    ),
    "ok_vqa": Reader(
        write_ok_vqa,
        lambda folder: tuple(read_vqa(*find_vqa(folder)["val"])),
        ("*val*",),
    ),
    "vqa_results": Reader(
        json_writer("r.json", [{"question_id": i, "answer": "a"} for i in range(3)]),
        lambda folder: read_vqa_results(folder / "r.json"),
    ),
    "coco_qa": Reader(
        json_writer("coco_qa.json", COCO_QA),
        lambda folder: tuple(read_coco_qa(folder / "coco_qa.json")),
    ),
    "vsr": Reader(
        json_writer("vsr.json", STATEMENTS),
        lambda folder: tuple(read_vsr(folder / "vsr.json")),
    ),
    "document_frequencies": Reader(
        write_frequencies,
        lambda folder: DocumentFrequencies.load(folder / "frequencies.npz", VOCABULARY),
    ),
    "run": Reader(
        write_run,
        lambda folder: (
            read_finished(folder),
            read_history(folder),
            read_items(folder / "test_items.json"),
        ),
    ),
    "tsv": regions_reader(region_files.write_tsv, "features.tsv"),
    "vinvl": regions_reader(region_files.write_vinvl, "features.tsv"),
    "lxmert": regions_reader(region_files.write_lxmert, "features.tsv"),
    "mcan": regions_reader(region_files.write_mcan, "mcan"),
    "npz": regions_reader(
        region_files.write_npz, "bu", ("bu_att/8.npz", "bu_box/8.npy")
    ),
    "hdf5": regions_reader(region_files.write_hdf5, "features.h5"),
    "arrays": Reader(
        lambda folder: write_arrays(folder / "arrays"),
        lambda folder: read_regions(folder / "arrays"),
    ),
    "safetensors": Reader(
        lambda folder: write_safetensors(folder / "features.safetensors"),
        lambda folder: read_regions(folder / "features.safetensors"),
    ),
    "grit": Reader(
        lambda folder: write_grit(folder / "grit.hdf5"),
        lambda folder: read_regions(folder / "grit.hdf5"),
    ),
    "dlct": Reader(
        lambda folder: write_dlct(folder / "dlct.hdf5"),
        lambda folder: read_regions(folder / "dlct.hdf5"),
    ),
    "ncnn": Reader(write_ncnn, lambda folder: tuple(read_ncnn(folder / "net.param"))),
    "metadata": Reader(write_metadata, read_metadata),
    "questions_json": Reader(
        json_writer("questions.json", VQA["questions_{}.json"]),
        lambda folder: tuple(read_question_rows(folder / "questions.json")),
    ),
    "msvd": Reader(
        lambda folder: (folder / "val.txt").write_text("#\nv_1_2 A dog.\nw_0_1 It.\n"),
        lambda folder: tuple(list_msvd_videos(folder / "val.txt").splits),
    ),
    "lmdb": Reader(write_lmdb, read_lmdb, ("*.mdb",)),
    "lmdb_record": Reader(write_lmdb_record, read_lmdb_record),
    "arrow": Reader(write_arrow, read_arrow),
    "img2dataset": Reader(
        write_img2dataset,
        lambda folder: tuple(read_img2dataset(folder / "00000.parquet")),
    ),
    "detector": Reader(write_detector, read_detector),
    "detector_of_litert": Reader(write_detector_of_litert, read_detector_of_litert),
    "yolox_network": Reader(write_yolox_network, convert_yolox),
    "described_photo": Reader(write_described, read_described),
    "video_lists": Reader(
        write_video_lists,
        lambda folder: kc.prepare.list_videos(sorted(folder.glob("*.json"))),
    ),
    "frames_folder": frames_reader(write_frames_folder, "frames"),
    "frames_hdf5": frames_reader(write_frames_hdf5, "frames.h5"),
    "caption_csv": Reader(
        lambda folder: (folder / "captions.csv").write_text(CAPTION_CSV),
        lambda folder: tuple(read_caption_rows(folder / "captions.csv")),
    ),
    "flickr30k": Reader(
        lambda folder: (folder / "results.csv").write_text(FLICKR30K),
        lambda folder: read_caption_rows(folder / "results.csv")[1],
    ),
    "flickr8k_tokens": Reader(
        lambda folder: (folder / "Flickr8k.token.txt").write_text(TOKENS),
        lambda folder: read_caption_rows(folder / "Flickr8k.token.txt")[1],
    ),
    "caption_texts": Reader(
        lambda folder: (folder / "dog.txt").write_text("A dog.\nThe dog, asleep.\n"),
        lambda folder: tuple(read_caption_texts(folder)),
    ),
    "tensors": Reader(
        lambda folder: np.savez(folder / "model.npz", a=np.ones((2, 3)), b=np.ones(2)),
        lambda folder: read_tensors(folder / "model.npz"),
    ),
    "torch_archive": torch_reader(is_archive=True),
    "torch_pickles": torch_reader(is_archive=False),
    "glove": Reader(
        lambda folder: (folder / "glove.txt").write_text("a 1 2.5\nthe -1 3e-2\n"),
        lambda folder: read_glove(folder / "glove.txt", {"a", "the"}, 2),
    ),
    "question_rows": Reader(
        lambda folder: (folder / "q.csv").write_text('1,"Is it, or not?"\n2,What?\n'),
        lambda folder: tuple(read_question_rows(folder / "q.csv")),
    ),
    "token_ids": Reader(
        json_writer("tokens.json", {"PAD": 0, "UNK": 1}),
        lambda folder: read_token_ids(folder / "tokens.json"),
    ),
    "answer_ids": Reader(
        json_writer("answers.json", [{"yes": 0, "no": 1}, {"0": "yes", "1": "no"}]),
        lambda folder: tuple(read_answers(folder / "answers.json")),
    ),
    "infos": Reader(write_infos, lambda folder: read_infos(folder / "infos.pkl")),
    "keras": Reader(write_keras, lambda folder: load_keras(folder / "model.keras")),
    "keras_members": Reader(write_keras_members, read_keras_members, KERAS_MEMBERS),
    "bulk_records": Reader(write_records, read_records),
    "image_ids": Reader(
        json_writer("image_ids.json", {"a1f0": -1, "2.jpg": -2}),
        lambda folder: read_image_ids(folder / "image_ids.json"),
    ),
    "prepared": Reader(
        write_prepared,
        read_prepared,
        ("manifest.json", "dataset_info.json", "features.json", "prepared-*"),
    ),
}
