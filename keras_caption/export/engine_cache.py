"""Files of models and detectors for an engine, each written once and kept."""

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import pathlib
from collections.abc import Callable
from typing import Any

import keras_caption
from keras_caption.apps.objects.lite_yolox import write_yolox
from keras_caption.apps.objects.yolox_download import YOLOX_NANO, download_yolox
from keras_caption.base.caches import Cache, cache_folder, delete, own_folder
from keras_caption.base.errors import InputError
from keras_caption.base.progress import report, silent
from keras_caption.features.efficientnet_lite import EFFICIENTNET_LITE, weights_path
from keras_caption.formats import built_in
from keras_caption.formats.engine_files import (
    DESCRIPTION,
    FORMAT,
    NAMES,
    SUFFIXES,
    engine_file,
)
from keras_caption.formats.faults import check_file
from keras_caption.formats.model_files import model_file
from keras_caption.formats.suffixes import suffix_of


def engine_of(model: str | os.PathLike, engine: str) -> pathlib.Path:
    """Returns the file of a saved model for an engine, and writes it if needed.

    The file is in the package, or in the folder of `caches.cache_folder`,
    under the hash of the model's content. Only writing it needs Keras.

    Args:
        model: As in `keras_caption.models.load`.
        engine: As in `keras_caption.serving.export_engine`.

    Raises:
        InputError: If there is no such model, it is a file of another engine, or it
            cannot be exported for this one.
    """
    is_address = "://" in os.fspath(model)
    file = keras_caption.models.file_of(model) if is_address else model_file(model)
    if suffix_of(file) in SUFFIXES:
        if SUFFIXES[suffix_of(file)] != engine:
            raise InputError(
                f"{model} is a file of {NAMES[SUFFIXES[suffix_of(file)]]}, which "
                f"{NAMES.get(engine, 'Keras')} does not run."
            )
        return file
    folder = built_in.engines().get((file.resolve(), engine))
    if folder is not None:
        return file_in(folder)

    def write(folder):
        from keras_caption.export.engine_export import export_engine  # imports Keras

        export_engine(keras_caption.models.load(model), folder, engine)

    whole = file.parent if is_address else file
    if os.path.isdir(model) and suffix_of(file) != ".keras":  # a preset or an export
        whole = pathlib.Path(model)
    return kept(model, engine, digest_of(whole), write)


def detector_of(detector: str) -> pathlib.Path:
    """Returns the file of a detector for LiteRT, and writes it if needed.

    Args:
        detector: As in `keras_caption.objects.load_detector`. A YOLOX network in an
            `.onnx` file, as `yolox_nano` is, needs no TensorFlow.

    Raises:
        InputError: If there is no such detector, or LiteRT lacks one of its operations.
    """
    path = download_yolox() if detector == YOLOX_NANO else pathlib.Path(detector)
    if suffix_of(path) == ".onnx":
        check_file(path)
        write = functools.partial(write_yolox, path)
        return kept(detector, "litert", digest_of(path), write, by_tensorflow=False)
    if file := engine_file(detector):
        return file

    def write_exported(folder):
        from keras_caption.export.engine_export import export_detector

        export_detector(keras_caption.objects.load_detector(detector), folder)

    if os.path.exists(detector):
        digest = digest_of(path)
    else:  # a preset, of which a version of KerasHub has one
        described = f"{detector} {version_of('keras-hub')}"
        digest = hashlib.sha256(described.encode()).hexdigest()
    return kept(detector, "litert", digest, write_exported)


def needs_no_tensorflow(detector: str) -> bool:
    """Whether `detector_of` returns a detector for LiteRT without TensorFlow."""
    if detector == YOLOX_NANO:
        return True
    file = engine_file(detector)  # perhaps that of another program, or engine
    if file is None or SUFFIXES[suffix_of(file)] != "litert":
        return False
    return file.with_name(DESCRIPTION).is_file()


def classifier_of(folder: pathlib.Path) -> pathlib.Path:
    """Returns the file of the classifier of photos for LiteRT, and writes it if needed.

    Args:
        folder: Path of a folder that may hold it.

    Raises:
        InputError: If it is to be written, and a package is missing.
    """
    if file := engine_file(folder):
        return file

    def write(folder):
        from keras_caption.export.engine_export import export_classifier

        export_classifier(keras_caption.objects.PhotoClassifier(), folder)

    return kept(EFFICIENTNET_LITE, "litert", digest_of(weights_path()), write)


def kept(
    name: Any,
    engine: str,
    digest: str,
    write: Callable[[pathlib.Path], None],
    by_tensorflow: bool = True,
) -> pathlib.Path:
    """Returns the file for an engine in a kept folder, and writes it if needed.

    If the folder cannot be kept, the file lasts as long as this process.

    Args:
        name: Name of the model or detector in messages.
        engine: str, name of the engine.
        digest: str, hash of the model or detector.
        write: Function of a path that writes the folder.
        by_tensorflow: bool, whether writing takes TensorFlow, and long.
    """
    key = f"{digest[:32]}-{engine}-{FORMAT}"
    cache = engines()
    found = cache.find(key).get(key) or own_folder() / key
    if file := engine_file(found):
        return file
    made = own_folder() / key
    if by_tensorflow:
        if not importlib.util.find_spec("tensorflow"):
            raise InputError(
                f"{name} is not for {NAMES[engine]} yet, and TensorFlow converts it: "
                "pip install 'keras-caption[photos]', or name a folder that "
                f"`keras-caption export --format {engine}` wrote."
            )
        report(f"Converting {name} for {NAMES[engine]}, once.")
        with silent():  # converters print what they do
            write(made)
    else:
        write(made)
    entry = cache.keep(key, made)
    if entry is not None:
        delete(made)
    return file_in(entry or made)


def file_in(folder: pathlib.Path) -> pathlib.Path:
    """The engine's file in a folder that an export has written."""
    file = engine_file(folder)
    assert file is not None
    return file


@functools.cache
def engines() -> Cache:
    """The kept files for engines."""
    folder = cache_folder()
    return Cache(folder and folder / "engines", "files for engines")


def digest_of(path: pathlib.Path) -> str:
    """Computes the SHA-256 of a file, or of all files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def version_of(package: str) -> str:
    """The version of a package, empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
