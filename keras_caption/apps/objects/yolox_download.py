import hashlib
import http.client
import pathlib
import urllib.request

from keras_caption.base.caches import Cache, cache_folder, delete, own_folder
from keras_caption.base.errors import InputError
from keras_caption.base.progress import report
from keras_caption.formats.faults import reason_of

YOLOX_NANO = "yolox_nano"
# YOLOX-Nano of YOLOX's authors, under Apache-2.0 as their code.
ADDRESS = (
    "https://github.com/Megvii-BaseDetection/YOLOX/releases/download/0.1.1rc0/"
    "yolox_nano.onnx"
)
SHA_256 = "c789161ed43c8269fcd4e67c67eeeb4e80c622da2eb296a20bc6007bd18a0b7d"
MAX_BYTES = 2**22  # it has 3,659,407


def download_yolox() -> pathlib.Path:
    """Downloads YOLOX-Nano, 3.7 MB, once, and compares its SHA-256.

    Returns:
        Path of the `.onnx` file, in the folder of `caches.cache_folder`.

    Raises:
        InputError: If the file cannot be downloaded, or is another one.
    """
    name = ADDRESS.rpartition("/")[2]
    folder = cache_folder()
    cache = Cache(folder and folder / "detectors", "detectors")
    made = own_folder() / YOLOX_NANO
    kept = cache.find(YOLOX_NANO).get(YOLOX_NANO, made) / name
    if kept.is_file():
        return kept
    report(f"Downloading {YOLOX_NANO}, 3.7 MB, from {ADDRESS}")
    try:
        with urllib.request.urlopen(ADDRESS, timeout=60) as response:
            content = response.read(MAX_BYTES)
    except (OSError, http.client.HTTPException) as error:
        cause = getattr(error, "reason", error)  # of an `URLError`
        reason = reason_of(cause) if isinstance(cause, Exception) else cause
        raise InputError(
            f"{ADDRESS} cannot be downloaded: {reason}; without a network, fetch it "
            f"elsewhere, and name the file: --engine litert --detector {name}, or, in "
            f"Keras, what keras-caption convert yolox {name} writes."
        ) from None
    if hashlib.sha256(content).hexdigest() != SHA_256:
        raise InputError(f"{ADDRESS} has not the file whose SHA-256 is {SHA_256}.")
    made.mkdir(exist_ok=True)
    (made / name).write_bytes(content)
    entry = cache.keep(YOLOX_NANO, made)
    if entry is not None:
        delete(made)
    return (entry or made) / name
