"""Folders of data as macOS leaves them, and with what is no regular file."""

import os
import pathlib

import pytest

from keras_caption.datasets import CocoFiles
from keras_caption.features import find_clips, find_photos
from keras_caption.formats.caption_texts import read_caption_texts
from keras_caption.formats.frame_files import open_frames
from keras_caption.formats.parallel_text import find_parallel
from keras_caption.formats.region_files import open_regions
from keras_caption.formats.vqa import find_vqa


def names(paths):
    return [pathlib.Path(path).name for path in paths]


# Of each reader: its files, their folder, and the names of what it finds.
READERS = {
    "photos": (["a.png", "b.JPG"], "", lambda f: names(find_photos(f))),
    "clips": (["a.mp4", "b.MKV"], "", lambda f: names(find_clips(f))),
    "texts": (
        ["a.txt", "b.txt"],
        "",
        lambda f: [f"{photo.file_name}.txt" for photo in read_caption_texts(f)[0]],
    ),
    "frames": (
        ["a.npy", "b.npz"],
        "",
        lambda f: names(place for [(place, _)] in open_frames(f).records.values()),
    ),
    "regions": (
        ["1.npz", "2.npz"],
        "x_att",
        lambda f: names(place for [(place, _)] in open_regions(f).records.values()),
    ),
    "regions of MCAN": (
        ["1.npz", "2.npz"],
        "val2014",
        lambda f: names(place for [(place, _)] in open_regions(f).records.values()),
    ),
    "parallel text": (
        [f"{split}.{x}" for split in ("test", "train", "val") for x in ("de", "en.gz")],
        "",
        lambda f: sorted(
            name
            for files in find_parallel(f, "en", "de").values()
            for name in names([files.source, files.target])
        ),
    ),
    "questions": (
        [
            f"{k}_{s}.json"
            for k in ("annotations", "questions")
            for s in ("train", "val")
        ],
        "",
        lambda f: sorted(
            name for files in find_vqa(f).values() for name in names(files)
        ),
    ),
    "COCO": (
        ["captions_train.json", "dataset_coco.json", "instances_train.json"],
        "",
        lambda f: names(
            sorted(
                [*(found := CocoFiles.find(f)).captions, *found.instances, found.split]
            )
        ),
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_hidden_files_folders_and_pipes_are_no_data(reader, tmp_path):
    files, inner, find = READERS[reader]
    folder = tmp_path / inner
    folder.mkdir(exist_ok=True)
    if reader == "regions":
        (tmp_path / "x_box").mkdir()
        (tmp_path / ".y_att").mkdir()
    for name in files:
        (folder / name).write_text("A dog.")
        (folder / f"._{name}").write_bytes(b"\0\5\x16\7\xff")
        (folder / f"._{name}").with_suffix(".txt").write_bytes(b"\xff")
    os.mkfifo(folder / files[0].replace(".", "8.", 1))
    (folder / files[0].replace(".", "9.", 1)).mkdir()
    (folder / ".Trashes").mkdir()
    (folder / ".Trashes" / files[0]).write_text("A dog.")
    (folder / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    assert find(tmp_path) == files
