"""Datasets that are generated or downloaded: what is said, and interruptions."""

import os
import signal
import subprocess
import sys

import pytest
import tensorflow_datasets as tfds
from conftest import PROJECT
from tensorflow_datasets.core.download.checksums import UrlInfo
from tensorflow_datasets.core.download.download_manager import NonMatchingChecksumError

import keras_caption as kc
from keras_caption.apps.scenes.scenes.builder import Scenes, ScenesConfig
from keras_caption.datasets import load_parallel
from keras_caption.datasets.building import build

SMALL = ScenesConfig(name="small", train=3, val=1, test=1)
ENDLESS = """
from keras_caption.datasets import building
from keras_caption.synthetic.scenes import builder

make_example = builder.make_example
def slow(rng, image_id):
    if image_id == 2:
        print("two are written", flush=True)
        input()
    return make_example(rng, image_id)

builder.make_example = slow
small = builder.ScenesConfig(name="small", train=3, val=1, test=1)
building.build(lambda: builder.Scenes(config=small))
"""


def ids(builder):
    splits = ("train", "val", "test")
    return [int(x["image_id"]) for s in splits for x in kc.datasets.read(builder, s)]


def test_an_interrupted_generation_is_redone_and_nothing_untrue_is_said(
    tmp_path, capfd
):
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        cwd=PROJECT,
        env={**os.environ, "TFDS_DATA_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout.readline() == b"two are written\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert list(tmp_path.glob("scenes/small/incomplete*"))
    capfd.readouterr()
    builder = build(lambda: Scenes(config=SMALL, data_dir=tmp_path))
    assert ids(builder) == [0, 1, 2, 1_000_000, 2_000_000]
    printed, errors = capfd.readouterr()
    assert f"Preparing the dataset scenes in {builder.data_path}\n" in errors
    assert not printed
    assert "ownload" not in errors
    assert ids(build(lambda: Scenes(config=SMALL, data_dir=tmp_path))) == ids(builder)
    assert "Preparing" not in capfd.readouterr().err


URLS = {
    f"https://{host}/{name}.zip": UrlInfo(2**20, "0" * 64, f"{name}.zip")
    for host, name in (("a.test", "x"), ("b.test", "y"))
}


class Downloaded(tfds.core.GeneratorBasedBuilder):
    """A dataset of files of another's server."""

    VERSION = tfds.core.Version("1.0.0")
    url_infos = URLS

    def _info(self):
        features = tfds.features.FeaturesDict({"x": tfds.features.Text()})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        dl_manager.download_and_extract({"files": [*URLS]})
        return {"train": iter([(0, {"x": "a"})])}

    def _generate_examples(self):
        raise NotImplementedError


@pytest.mark.parametrize("known", [True, False])
def test_downloads_are_announced_before_they_begin(tmp_path, capfd, monkeypatch, known):
    errors = []

    def fetch(self, resources):
        errors.append(capfd.readouterr().err)
        return resources

    manager = tfds.download.DownloadManager
    monkeypatch.setattr(manager, "download_and_extract", fetch)
    if not known:
        monkeypatch.setattr(Downloaded, "url_infos", dict([*URLS.items()][:1]))
    build(lambda: Downloaded(data_dir=tmp_path))
    size = "2.00 MiB" if known else "at least 1.00 MiB"
    assert f"Downloading 2 files, {size}, from a.test, b.test\n" in errors[0]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            NonMatchingChecksumError("x.zip is another file.\nLine 2"),
            "x.zip is another",
        ),
        (
            ConnectionError("HTTPConnectionPool(host='a.test')"),
            "there is no connection",
        ),
    ],
)
def test_a_download_that_fails_is_one_sentence(tmp_path, monkeypatch, error, reason):
    def fetch(self, resources):
        raise error

    manager = tfds.download.DownloadManager
    monkeypatch.setattr(manager, "download_and_extract", fetch)
    message = f"downloaded cannot be downloaded: {reason}"
    with pytest.raises(kc.InputError, match=message):
        build(lambda: Downloaded(data_dir=tmp_path))
    assert not list(tmp_path.glob("downloaded/incomplete*"))


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda **x: kc.datasets.load("scenes", dat_dir="d", **x), "mean data_dir"),
        (lambda **x: kc.datasets.load("moving_scenes", foo=1, **x), "no 'foo'. Valid"),
        (lambda **x: kc.datasets.load("coco_objects", foo=1, **x), "takes no 'foo'"),
        (lambda **x: kc.datasets.load_questions("scene_questions", foo=1), "no 'foo'"),
        (lambda **x: load_parallel("scene_sentences", foo=1), "takes no 'foo'"),
        (lambda **x: load_parallel("wmt14_translate", foo=1), "takes no 'foo'"),
        (lambda **x: load_parallel("parallel", "a", foo=1), "files takes no 'foo'"),
        (lambda **x: kc.datasets.load("scenes", data_dir=3), "made with data_dir=3: "),
        (lambda **x: kc.datasets.load("scenes", config="no", **x), "BuilderConfig no"),
        (lambda **x: kc.datasets.load("scenes", config=5, **x), "with config=5, "),
        (lambda **x: kc.datasets.load("scenes", version="9.9.9", **x), "only: 1.0.0"),
        (lambda **x: kc.datasets.load("scenes", file_format="x", **x), "valid FileFor"),
    ],
)
def test_arguments_of_builders_are_refused_in_one_sentence(tmp_path, load, message):
    with pytest.raises(kc.InputError, match=message) as caught:
        load(data_dir=tmp_path)
    assert "\n" not in str(caught.value)
