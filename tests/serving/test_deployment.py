"""What a user deploys: the repository's model as an export, and `deploy/`."""

import pathlib
import shutil
import subprocess

import pytest
import tensorflow as tf
from conftest import PROJECT
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc

DEPLOY = PROJECT / "deploy"
PHOTOS = {"dog.png": [(1, 1)], "dogs.png": [(1, 1), (4, 5)]}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """The repository's captioner, its export, files and captions, the last empty."""
    folder = tmp_path_factory.mktemp("deployed")
    model = kc.models.load(PROJECT / "saved_models" / "ngsan_coco.keras")
    model.extractor = kc.features.Yolox(white_yolox(), image_size=64)
    kc.serving.export(model, folder / "1", beam_size=2)
    for name, cells in PHOTOS.items():
        Image.fromarray(photo(64, 48, cells)).save(folder / name)
    photos = [folder / name for name in PHOTOS]
    captions = model.generate(photos, beam_size=2)
    (folder / "broken.jpg").write_bytes(b"no photo")
    return model, folder / "1", [*photos, folder / "broken.jpg"], [*captions, ""]


def test_the_model_of_the_repository_captions_what_is_detected(deployed):
    model, exported, photos, captions = deployed
    assert model.categories == list(kc.features.CATEGORIES)
    assert "dog" in captions[0].split()
    served = tf.saved_model.load(str(exported)).signatures
    files = tf.constant([path.read_bytes() for path in photos])
    assert texts(served["serving_default"](image_bytes=files)) == captions
    features = model.extract(photos[:2])
    features = {key: tf.constant(features[key]) for key in ("regions", "boxes")}
    assert texts(served["features"](**features)) == captions[:2]


def texts(outputs):
    return [text.decode() for text in outputs["captions"].numpy()]


def test_a_program_in_c_prints_the_same_captions(deployed, tmp_path):
    _, exported, photos, captions = deployed
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = pathlib.Path(tf.sysconfig.get_lib())
    command = [
        *(compiler, "-Wall", "-Wextra", "-Werror", DEPLOY / "caption.c"),
        *("-o", tmp_path / "caption", f"-I{tf.sysconfig.get_include()}"),
        *(f"-L{library}", f"-Wl,-rpath,{library}"),
        *(f"-l:libtensorflow_{part}.so.2" for part in ("cc", "framework")),
        # GNU's other linker takes ten times as long for a library of this size.
        *(["-fuse-ld=gold"] if shutil.which("ld.gold") else []),
    ]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [tmp_path / "caption", exported, *photos],
        env={"TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = zip(photos, captions, strict=True)
    assert done.stdout == "".join(f"{path}: {text}\n" for path, text in pairs)
    wrong = subprocess.run(
        [tmp_path / "caption", tmp_path, photos[0]], capture_output=True, text=True
    )
    assert wrong.returncode == 1
    assert f"error: {tmp_path}: " in wrong.stderr
