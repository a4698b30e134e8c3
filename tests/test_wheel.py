"""What the wheel holds, and what it says of extras that are not installed."""

import glob
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import PROJECT
from PIL import Image
from yolox_file import photo, white_yolox

from keras_caption.base.errors import EXTRAS

OF_PHOTOS = {"PIL", "google", "tensorflow"}  # which needs protobuf


def files_of(folder):
    """Names of files in a folder, linked ones too, but those that Python compiles."""
    names = glob.glob("**/*.*", root_dir=folder, recursive=True)
    return {name for name in names if not name.endswith(".pyc")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Folder of an unpacked wheel, built of a copy of what is packaged."""
    pytest.importorskip("setuptools", minversion="77")
    source, unpacked = (tmp_path_factory.mktemp(x) for x in ("source", "unpacked"))
    shutil.copytree(PROJECT / "keras_caption", source / "keras_caption")
    for name in ("keras_caption_cli.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    build = "import setuptools.build_meta as build; build.build_wheel('.')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True)
    [path] = source.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(unpacked)
    return unpacked


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of a photo and a detector, and nothing else."""
    folder = tmp_path_factory.mktemp("folder")
    white_yolox(image_size=None).save(folder / "yolox.keras")
    Image.fromarray(photo(64, 64, [(2, 2), (5, 5)])).save(folder / "photo.png")
    return folder


def outputs(code, wheel, folder, **variables):
    """What code prints to standard output and error, where only the wheel is."""
    environment = {k: x for k, x in os.environ.items() if not k.startswith("TF_")}
    environment |= {"PYTHONPATH": str(wheel), **variables}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


MISSING = """
import pathlib, sys
for module in {blocked!r}:
    sys.modules[module] = None

def report(use):
    try:
        print(use())
    except (SystemExit, kc.InputError) as end:
        print(end)
"""
WITHOUT_EXTRAS = """
import keras_caption_cli, keras_caption as kc
print(kc.__file__, "keras" in sys.modules)
program = keras_caption_cli.main
report(lambda: program(["caption", "photo.png", "--detector", "yolox.keras"]))
report(lambda: program(["caption", "photo.png"]))
report(lambda: program(["caption", "photo.png", "--figure", "a.png"]))
report(lambda: kc.datasets)
report(lambda: kc.visualization)
report(lambda: kc.evaluation.score({1: "a dog"}, {1: ["a dog"]}))
report(lambda: kc.evaluation.markdown_table(["a"], [["b"]]))
report(lambda: kc.features.read_clip("photo.png", 2, 64))
report(lambda: kc.convert.read_joeynmt("."))
pathlib.Path("a.safetensors").touch()
report(lambda: kc.convert.read_tensors("a.safetensors"))
report(lambda: kc.models.from_preset("hf://a/b"))
report(lambda: program(["--print-completion", "bash"]))
"""


def test_the_wheel_captions_a_photo_without_other_extras(wheel, folder):
    package = wheel / "keras_caption"
    assert files_of(package) == files_of(PROJECT / "keras_caption")
    assert (package / "built_in" / "configs" / "captioning" / "ngsan_coco.py").exists()
    code = MISSING.format(blocked=sorted({*EXTRAS} - OF_PHOTOS)) + WITHOUT_EXTRAS
    [where, captioned, ended, *sentences], errors = outputs(code, wheel, folder)
    assert where == f"{package / '__init__.py'} False"
    assert captioned.startswith("photo.png: ")
    assert "%" in captioned
    assert ended == "0"
    assert sentences == [
        f"{start}{module} is not installed: pip install 'keras-caption[{extra}]'{end}"
        for start, module, extra, end in [
            ("error: ", "keras_hub", "hub", "."),
            (
                "error: argument --figure: ",
                "matplotlib",
                "visualization",
                "; see --help.",
            ),
            ("", "tensorflow_datasets", "data", "."),
            ("", "matplotlib", "visualization", "."),
            ("", "pycocoevalcap", "evaluation", "."),
            ("", "tabulate", "evaluation", "."),
            ("", "av", "data", "."),
            ("", "yaml", "convert", "."),
            ("", "safetensors", "convert", "."),
            ("", "huggingface_hub", "hub", "."),
            ("error: ", "shtab", "completion", "."),
        ]
    ]
    assert not errors


WITHOUT_TENSORFLOW = """
import keras_caption as kc, keras, numpy as np
path = pathlib.Path(kc.__file__).parent / "built_in" / "ngsan_coco.keras"
model = keras.models.load_model(path)
image = {{
    "regions": np.eye(80, dtype="float32")[None, [0, 16]],
    "boxes": np.array([[[0, 0, 0.5, 0.5], [0.2, 0.2, 0.9, 0.9]]], "float32"),
}}
print(model.generate(image, beam_size=1, max_length=3)[0])
report(lambda: kc.datasets)
report(lambda: kc.serving.export(model, "served"))
detector = kc.objects.load_detector("yolox.keras")
report(lambda: detector.detect(np.zeros((1, 64, 64, 3), "float32")))
"""


def test_a_model_captions_without_tensorflow_on_jax(wheel, folder):
    pytest.importorskip("jax")
    code = (MISSING + WITHOUT_TENSORFLOW).format(blocked=sorted({*EXTRAS} - {"jax"}))
    printed, _ = outputs(code, wheel, folder, KERAS_BACKEND="jax")
    caption, *sentences = printed
    assert caption
    sentence = "tensorflow is not installed: pip install 'keras-caption[tensorflow]'."
    assert sentences == [sentence] * 3
