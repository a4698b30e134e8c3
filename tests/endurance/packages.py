"""Checks the lowest and the newest packages that pyproject.toml allows.

    python tests/endurance/packages.py [--python 3.12] [--resolution lowest-direct]

Installs the package with uv into new environments, one for each resolution. In each, a
saved model captions detected objects, in Keras and on LiteRT, and is exported for
TensorFlow Serving. Takes minutes, a network and 5 GB of disk.

The exit status is 1 if the lowest packages fail: a bound of pyproject.toml is then
wrong. If the newest fail, a package has a new release: a warning says so, and the
status is 0, since no change of this repository has to wait for it.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).parents[2]
LOWEST, NEWEST = "lowest-direct", "highest"
EXTRAS = "hub,lite,photos,serving"
SHOWN = ("tensorflow", "keras", "keras-hub", "h5py", "numpy", "ai-edge-litert")
CHECK = """
import importlib.metadata, pathlib, sys, tempfile
import numpy as np
import tensorflow as tf
import keras_caption as kc
from keras_caption.formats import built_in
for name in sys.argv[1:]:
    print(name, importlib.metadata.version(name))
dog_above_frisbee = {
    "regions": np.eye(80, dtype="float32")[None, [16, 29]],
    "boxes": np.float32([[[0, 0, 1, 0.6], [0.4, 0.5, 0.6, 0.7]]]),
}
model = kc.models.load("ngsan_coco")
[caption] = model.generate(dog_above_frisbee)
assert "dog" in caption, caption
with tempfile.TemporaryDirectory() as folder:
    kc.serving.export(model, pathlib.Path(folder, "1"))
    served = tf.saved_model.load(str(pathlib.Path(folder, "1")))
    inputs = {name: tf.constant(x) for name, x in dog_above_frisbee.items()}
    [exported] = served.signatures["serving_default"](**inputs)["captions"].numpy()
assert exported.decode() == caption, exported
[file] = built_in.engines().values()
assert kc.models.load(file).generate(dog_above_frisbee) == [caption]
from keras_caption.formats.engine_files import open_engine
from keras_caption.formats.litert_graph import LiteRTGraph
with tempfile.TemporaryDirectory() as folder:  # as detectors are written
    graph, path = LiteRTGraph(), pathlib.Path(folder, "model.tflite")
    x = graph.input("x", (1, 2))
    y = graph.add("MUL", [x, graph.constant(np.float32(2))], (1, 2), "Mul")
    graph.write(path, {"doubled": y})
    [doubled] = open_engine(path)({"x": np.float32([[1, 2]])}).values()
assert doubled.tolist() == [[2, 4]], doubled
import keras_hub  # which the default detector in Keras needs
print(caption)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--resolution", nargs="+", default=(LOWEST, NEWEST))
    options = parser.parse_args()
    failed = []
    for resolution in options.resolution:
        print(f"== {resolution}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(options.python, resolution, pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                print(f"FAILED, status {error.returncode}: {resolution}", flush=True)
                failed.append(resolution)
    if NEWEST in failed:
        print("WARNING: the newest packages fail; pyproject.toml needs a bound.")
    sys.exit(LOWEST in failed)


def check(python: str, resolution: str, folder: pathlib.Path) -> None:
    """Installs the package into a new environment in `folder`, and uses it."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", python, folder], check=True)
    binary = folder / "bin" / "python"
    install = ["pip", "install", "--quiet", "--python", binary]
    package = f"{PROJECT}[{EXTRAS}]"
    subprocess.run([*uv, *install, f"--resolution={resolution}", package], check=True)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONWARNINGS": "ignore"}
    subprocess.run(
        [binary, "-c", CHECK, *SHOWN],
        check=True,
        cwd=folder,
        env={**os.environ, **quiet, "PYTHONPATH": ""},
    )


if __name__ == "__main__":
    main()
