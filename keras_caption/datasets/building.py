import functools
import sys
import urllib.parse
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow_datasets.core.units import Size

from keras_caption.errors import InputError
from keras_caption.formats.faults import reason_of


def build(make: Callable[[], Any]) -> Any:
    """Makes a TFDS builder, and prepares its data if they are not there yet.

    What is generated or downloaded is said before it begins, on standard error, with
    the folder that it goes to. Data appear as a whole or not at all: an interrupted
    preparation begins anew, but for files that were downloaded. TFDS compares the
    checksums of those.

    Args:
        make: Function without arguments that returns the builder.

    Returns:
        The builder, prepared.

    Raises:
        InputError: If a file cannot be downloaded, or has another checksum than TFDS
            knows.
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


def _announce(builder):
    """Lets a builder say what it does, in place of TFDS.

    TFDS announces a download of unknown size, whatever a dataset is made of.
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
    """`fetch`, a method of TFDS's download manager, that says what it downloads."""

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
