"""Folders of data as macOS leaves them, and with what is no regular file."""

import collections
import os
import pathlib

import pytest

import keras_caption as kc
from keras_caption.apps.bulk.shards import plan
from keras_caption.datasets import CocoFiles
from keras_caption.features import find_clips, find_photos
from keras_caption.formats.caption_texts import read_caption_texts
from keras_caption.formats.folders import describe_passed_over
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


def test_what_is_passed_over_is_counted(tmp_path):
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    files = ["a.jpg", "b.jfif", "c.JPE", "d.pjpeg", "more/e.heif", "f.avif"]
    others = ["g.psd", "h.psd", "notes", ".DS_Store", "more/._e.heif", "more/i.txt"]
    for name in files + others:
        (folder / name).write_bytes(b"x")
    (folder / ".captions.html.lock").touch()  # of the command that reads the folder
    (folder / "circle").symlink_to(folder)
    (folder / "away").symlink_to("/")
    (folder / "gone.jpg").symlink_to("nowhere")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    (folder / "j.jpg").symlink_to("a.jpg")
    os.mkfifo(folder / "pipe.jpg")
    passed_over = collections.Counter()
    expected = sorted(folder / name for name in [*files, "j.jpg"])
    assert find_photos(folder, passed_over) == expected
    text = (
        "links, pipes and devices: 3, .psd: 2, hidden: 2, links to folders: 2, "
        ".txt: 1, without suffix: 1"
    )
    assert describe_passed_over(passed_over) == text
    assert sorted(map(str, expected)) == [
        path
        for shard in plan([str(folder)], ("photo",), 100).shards
        for path in shard.files
    ]
    (tmp_path / "link").symlink_to(folder)
    assert len(find_photos(tmp_path / "link")) == len(expected)
    with pytest.raises(kc.InputError, match=r"no clip in .*; it has .*\.psd: 2"):
        find_clips(folder, passed_over)  # without those of other folders
