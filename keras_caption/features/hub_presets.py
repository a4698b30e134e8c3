"""Names and downloads of presets."""

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import reason_of

# From the scheme of an address to the site with the preset's files.
PAGES = {
    "kaggle": "https://www.kaggle.com/models/",
    "hf": "https://huggingface.co/",
}
ARCHIVES = "https://www.kaggle.com/api/v1/models/"


def is_preset(name: str, presets: Mapping[str, Any]) -> bool:
    """Whether a name is an address, a folder or one of KerasHub's own presets."""
    return "://" in name or os.path.isdir(name) or name in presets


@contextlib.contextmanager
def loading_preset(
    preset: str, presets: Mapping[str, Any], instead: str = ""
) -> Iterator[None]:
    """Announces a download in a `with` block, and converts errors to `InputError`.

    Kaggle's client verifies checksums of its downloads.

    Args:
        preset: str, an address, a folder or one of `presets`.
        presets: Mapping from name to description of KerasHub's presets.
        instead: str, end of a message that says what else can be named without a
            network.
    """
    address, size = preset, ""
    if preset in presets:
        address = presets[preset]["kaggle_handle"]
        megabytes = 4 * presets[preset]["metadata"]["params"] / 1e6  # in float32
        size = f", about {megabytes:,.0f} MB,"
    scheme, _, handle = address.rpartition("://")
    page = f"{PAGES[scheme]}{handle}" if scheme in PAGES else address
    if not is_here(scheme, handle):
        unless = "" if scheme == "kaggle" else ", unless it is in the cache"
        print(
            f"Downloading {preset}{size} from {page}{unless}",
            file=sys.stderr,
            flush=True,
        )
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # clients of hubs raise errors of many classes
        reason = reason_of(error)
        files = "its files"
        if scheme == "kaggle":
            files = f"{ARCHIVES}{handle}/download (its files, as .tar.gz)"
        if is_here(scheme, handle):
            problem = f"cannot be used: {reason}"
        else:
            problem = (
                f"could not be loaded from {page}: {reason}; without a network, "
                f"fetch {files} where there is one, put them into a folder here, and "
                f"name that, such as ./folder{instead}"
            )
        raise InputError(f"The preset {preset!r} {problem}.") from None


def is_here(scheme: str, handle: str) -> bool:
    """Whether a preset is a folder, or in Kaggle's cache."""
    if scheme == "kaggle":
        cache = os.environ.get("KAGGLEHUB_CACHE", "~/.cache/kagglehub")
        folder = pathlib.Path(cache, "models", handle).expanduser()
        return any(folder.rglob("*.weights.h5"))
    return not scheme
