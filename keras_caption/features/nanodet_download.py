import hashlib
import pathlib
import urllib.request

from keras_caption.errors import InputError
from keras_caption.formats.faults import reason_of
from keras_caption.progress import report

NANODET = "nanodet_plus"
# NanoDet-Plus-m-1.5x of NanoDet's authors, in ncnn's files with weights of int8.
ADDRESS = (
    "https://raw.githubusercontent.com/Deepdive543443/ncnn-android-nanodet/"
    "1481b2417f57f93460e06c16bc170c24e4d1ed5a/app/src/main/assets/"
)
STEM = "nanodet-plus-m-1.5x_416_int8"
DIGESTS = {  # SHA-256
    f"{STEM}.param": "0b3993170ac08796924ba681c199eb522da0d4dc2e6f5beef5a0de7b69a2e0dc",
    f"{STEM}.bin": "1d8e0c55231336028c803d0b3b60ec036bf02b40146886c8b7a472d93e767011",
}
MAX_BYTES = 2**22  # of a file: the greater one has 2.6 MB


def download_nanodet(folder: pathlib.Path) -> pathlib.Path:
    """Downloads the weights of NanoDet-Plus, 2.6 MB, and compares their SHA-256.

    Args:
        folder: Path of an existing folder.

    Returns:
        Path of the `.param` file; the `.bin` file is beside it.

    Raises:
        InputError: If a file cannot be downloaded, or is another one.
    """
    report(f"Downloading {NANODET}, 2.6 MB, from {ADDRESS}")
    for name, digest in DIGESTS.items():
        try:
            with urllib.request.urlopen(ADDRESS + name, timeout=60) as response:
                content = response.read(MAX_BYTES)
        except OSError as error:
            cause = getattr(error, "reason", error)  # of an `URLError`
            reason = reason_of(cause) if isinstance(cause, OSError) else error
            raise InputError(
                f"{ADDRESS}{name} cannot be downloaded: {reason}; without a network, "
                f"fetch it and {' and '.join(x for x in DIGESTS if x != name)} beside "
                f"it elsewhere, and name the file: --detector {STEM}.param."
            ) from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise InputError(
                f"{ADDRESS}{name} is another file than that whose SHA-256 is {digest}."
            )
        (folder / name).write_bytes(content)
    return folder / f"{STEM}.param"
