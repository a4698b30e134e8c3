import functools
import gc
import os
import pathlib
import runpy
import subprocess
import sys

# With this variable, which images of containers set, each process that tests start
# would compile the sources of TensorFlow and Keras anew: 6 s of the processor or more.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.dont_write_bytecode = False

import keras
import numpy as np
import pytest
import tensorflow as tf
from counts import Counts
from durations import SLOW, Durations, is_slow, read_seconds
from tensorflow.python.framework import ops

import keras_caption as kc

PROJECT = pathlib.Path(__file__).parents[1]
PROGRAM = "keras_caption_cli.py"
# JAX, and XLA in TensorFlow, compile small models for longer than they run them. What
# LLVM optimizes only makes them faster. Processes that tests start inherit this.
QUICK_JAX = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
os.environ.update(QUICK_JAX)
os.environ["XLA_FLAGS"] = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
os.environ["JAX_PLATFORMS"] = "cpu"  # it would look for a TPU where libtpu is installed
os.environ["KERAS_CAPTION_CACHE"] = ""  # what XLA compiles is not kept
# TensorFlow rewrites the graph of a small model for longer than it runs it, and keeps
# pytest's hundred frames with each operation: a fifth of the time of the tests.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
ops._create_c_op = functools.partial(ops._create_c_op, extract_traceback=False)


def read_oracle(name):
    """Inputs, weights and outputs of official code, see `tests/oracles/README.md`."""
    with np.load(PROJECT / "tests" / "oracles" / f"{name}.npz") as data:
        return dict(data)


def data_folder(name):
    """A folder of real data, which are no part of the project.

    The environment variable KERAS_CAPTION_DATA names the folder that it is in; a test
    is skipped where there is none.
    """
    folder = pathlib.Path(os.environ.get("KERAS_CAPTION_DATA", "")) / name
    if "KERAS_CAPTION_DATA" not in os.environ or not folder.is_dir():
        pytest.skip(f"KERAS_CAPTION_DATA names no folder with {name} in it")
    return folder


# Files that take a minute of CPU or about that, the longest first: they are begun in
# this order before all others, so that no process waits for the other at the end.
SLOWEST = (
    *("test_strategies.py", "test_run.py", "test_export.py", "test_toolkits.py"),
    *("test_captioner.py", "test_caption.py", "test_engines.py", "test_decoding.py"),
    *("test_translation.py", "test_documents.py", "test_prepared.py"),
)


def pytest_addoption(parser):
    parser.addoption("--record", help="file for the processor time of each test")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: of `make test-rest`, by its duration")
    config.pluginmanager.register(Durations(config.option.record))
    if getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(Counts(config))


# Of all collected tests, before pytest selects among them by marks.
ALL_TESTS = pytest.StashKey[dict[str, bool]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    slow = read_seconds(SLOW)
    for item in items:
        if is_slow(item.nodeid, slow):
            item.add_marker("slow")
    config.stash[ALL_TESTS] = {x.nodeid: is_slow(x.nodeid, slow) for x in items}
    items.sort(key=lambda item: (*SLOWEST, item.path.name).index(item.path.name))


def pytest_collection_finish():
    """Collects garbage less often, and not among the million objects of imports."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Makes what a test and its fixtures draw the same in every run.

    Random weights of a tiny model may otherwise be ones with which nothing can be seen:
    all ReLUs of a head at zero, or captions that are all alike.
    """
    keras.utils.set_random_seed(0)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Frees the models of a file after its last test: they would add up to gigabytes.

    TensorFlow registers each custom gradient that it traces, and never forgets it, nor
    the graph that it is of; other cycles wait for the thresholds above.
    """
    if nextitem is None or nextitem.path != item.path:
        registered = ops.gradient_registry._registry
        for name in [x for x in registered if x.startswith("CustomGradient-")]:
            del registered[name]
        gc.collect()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def vocabulary():
    return kc.text.Vocabulary([f"w{i}" for i in range(30)])


@pytest.fixture(scope="session")
def captioner(vocabulary):
    """A tiny NG-SAN with random weights; tests must not train it."""
    keras.utils.set_random_seed(3)  # with which captions repeat themselves
    return kc.models.create("ngsan", vocabulary=vocabulary, **tiny("ngsan"))


REGION_DIM = 6


def tiny(name, **more):
    """Sizes for a small model of a preset, those that it has."""
    values = {
        "num_layers": 2,
        "model_dim": 16,
        "embedding_dim": 10,
        "num_heads": 2,
        "feedforward_dim": 32,
        "geometry_dim": 4,
    }
    full = kc.models.arguments(name)
    if (full.get("decoder_heads") or 1) > 1:
        values["decoder_heads"] = 2
    sizes = {key: value for key, value in values.items() if key in full}
    return {**sizes, "region_dim": REGION_DIM, **more}


def random_boxes(rng, *shape):
    """Boxes with sorted corners, float32 `(*shape, 4)`."""
    corners = np.sort(rng.random((*shape, 2, 2)), axis=-2)
    return corners.reshape(*shape, 4).astype("float32")


def random_images(rng, batch=3, regions=5, region_dim=REGION_DIM):
    """Inputs of a region model; the later images have padded regions."""
    lengths = np.maximum(regions - np.arange(batch), 1)
    return {
        "regions": rng.normal(size=(batch, regions, region_dim)).astype("float32"),
        "boxes": random_boxes(rng, batch, regions),
        "region_mask": np.arange(regions) < lengths[:, None],
    }


@pytest.fixture
def call_script(capfd, monkeypatch):
    """Runs a script, or `keras-caption`, in this process: some seconds less."""

    def call(*command):
        path = PROGRAM if command[0] == "keras-caption" else command[0]
        monkeypatch.chdir(PROJECT)
        monkeypatch.setattr(sys, "argv", [str(part) for part in command])
        monkeypatch.syspath_prepend(PROJECT)
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(PROJECT / path), run_name="__main__")
        code = end.value.code
        printed, errors = capfd.readouterr()
        if isinstance(code, str):  # printed by the interpreter at its end
            code, errors = 1, f"{errors}{code}\n"
        return subprocess.CompletedProcess(command, code or 0, printed, errors)

    return call


def check_trains_and_saves(model, images, rng, folder):
    """A model of 34 words trains on three images, and captions alike once loaded."""
    tokens = rng.integers(4, 34, (3, 2, 6)).astype("int32")
    batch = kc.text.teacher_forcing({**images, "tokens": tokens})
    losses = [model.train_on_batch(*batch) for _ in range(2)]
    assert np.isfinite(losses).all()
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    short = {"beam_size": 1, "max_length": 6}
    assert loaded.generate(images, **short) == model.generate(images, **short)
