import functools
import sys
import urllib.parse
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow_datasets.core.units import Size

from keras_caption.base.errors import InputError, need_name
from keras_caption.formats.faults import reason_of

ARGUMENTS = ("data_dir", "config", "version", "file_format")  # of every TFDS builder


def build(make: Callable[[], Any]) -> Any:
    """Makes a TFDS builder, and prepares its data unless they exist.

    Before data are generated or downloaded, the function prints what and to which
    folder, on standard error. Data appear as a whole or not at all: an interrupted
    preparation starts again, but keeps downloaded files, whose checksums TFDS compares.

    Args:
        make: Function without arguments that returns the builder.

    Returns:
        The prepared builder.

    Raises:
        InputError: If a file cannot be downloaded, or its checksum differs from the one
            that TFDS knows.
    """
    builder = make()
    generated = isinstance(builder, tfds.core.GeneratorBasedBuilder)
    if generated and not builder.data_path.exists():
        _announce(builder)
    try:
        builder.download_and_prepare()
    except OSError:
        builder = make()
        if not builder.data_path.exists():
            raise
        # Another process prepared the same dataset at the same time.
    return builder


def make_builder(name: str, make: Callable[..., Any], **kwargs: Any) -> Any:
    """Makes a TFDS builder of arguments that a user gives.

    Args:
        name: str, name of the dataset, for messages.
        make: Class or function that returns the builder.
        **kwargs: Arguments of TFDS builders.

    Raises:
        InputError: If TFDS builders have no such argument, or refuse its value.
    """
    for argument in kwargs:
        problem = f"The dataset {name!r} takes no {argument!r}"
        need_name(argument, ARGUMENTS, problem)
    try:
        return make(**kwargs)
    except InputError:
        raise
    except Exception as error:  # any type: TFDS asserts, and reads attributes
        given = ", ".join(f"{key}={value!s:.60}" for key, value in kwargs.items())
        raise InputError(
            f"The dataset {name!r} cannot be made with {given or 'no arguments'}: "
            f"{reason_of(error)}."
        ) from error


def _announce(builder):
    """Makes a builder print what it does, instead of TFDS.

    TFDS announces a download of unknown size for any dataset, even a generated one.
    """
    say(f"Preparing the dataset {builder.name} in {builder.data_path}")
    builder._log_download_bytes = builder._log_download_done = lambda: None
    split_generators = builder._split_generators

    @functools.wraps(split_generators)
    def announced(dl_manager, *args, **kwargs):
        for method in ("download", "download_and_extract"):
            fetch = getattr(dl_manager, method)
            announcing = _announced(fetch, builder.name, builder.url_infos or {})
            setattr(dl_manager, method, announcing)
        return split_generators(dl_manager, *args, **kwargs)

    builder._split_generators = announced


def _announced(fetch, name, url_infos):
    """Wraps `fetch`, a method of a download manager, to print what it downloads."""

    @functools.wraps(fetch)
    def announced(resources):
        urls = [getattr(x, "url", x) for x in tf.nest.flatten(resources)]
        known = [url_infos[url].size for url in urls if url in url_infos]
        size = str(Size(sum(known)))
        if len(known) < len(urls):
            size = f"at least {size}" if known else "of unknown size"
        hosts = dict.fromkeys(urllib.parse.urlsplit(url).netloc for url in urls)
        say(f"Downloading {len(urls)} files, {size}, from {', '.join(hosts)}")
        try:
            return fetch(resources)
        except Exception as error:  # of a network, a server or a checksum
            raise InputError(
                f"The dataset {name} cannot be downloaded: {reason_of(error)}."
            ) from error

    return announced


def say(text):
    print(text, file=sys.stderr, flush=True)
