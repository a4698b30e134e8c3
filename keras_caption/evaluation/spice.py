import contextlib
import hashlib
import io
import pathlib
import shutil
import subprocess
import tempfile
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from pycocoevalcap.spice import spice as pycocoevalcap_spice
from tqdm import tqdm

from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError

FOLDER = pathlib.Path(pycocoevalcap_spice.__file__).parent / "lib"
ARCHIVE = "stanford-corenlp-full-2015-12-09"
URL = f"https://nlp.stanford.edu/software/{ARCHIVE}.zip"
# SHA-256 from Git LFS in a published copy of SPICE's `lib` folder, whose other jars
# are identical to those of pycocoevalcap.
JARS = {
    "stanford-corenlp-3.6.0.jar": (
        "d341d5863276f55782c5ef73212222d6b3b48e02ae1951ab6de7618d28b12742"
    ),
    "stanford-corenlp-3.6.0-models.jar": (
        "d285157bd7887ee3018094b5dbae092e49088b023361ccdb550ee1daf9b2c9bd"
    ),
}


def spice(
    references: Mapping[Any, Sequence[str]], captions: Mapping[Any, Sequence[str]]
) -> float:
    """Computes SPICE of tokenized captions with pycocoevalcap.

    It needs two jars of CoreNLP 3.6.0 in pycocoevalcap's folder `spice/lib`. They are
    downloaded if one is missing, and checked before Java runs them.

    Args:
        references: dict from image id to a list of str.
        captions: dict from the same image ids to a list of one str.

    Returns:
        float, the mean over images.

    Raises:
        InputError: If a jar cannot be downloaded or has another checksum, or the
            program fails.
    """
    try:
        provide_jars()
        with contextlib.redirect_stdout(io.StringIO()):
            return pycocoevalcap_spice.Spice().compute_score(references, captions)[0]
    except InputError:
        raise
    except subprocess.CalledProcessError as error:
        raise InputError(
            f"SPICE, a Java program, failed (exit status {error.returncode}); it runs "
            "on Java 8 and 11, not on 17 or later."
        ) from None
    except Exception as error:  # raised by pycocoevalcap; keeps the other metrics
        raise InputError(f"SPICE failed: {type(error).__name__}: {error}.") from error


def note_on_download() -> str | None:
    """Says that SPICE will download its jars, or returns `None` if they are here."""
    if all((FOLDER / name).exists() for name in JARS):
        return None
    return (
        f"SPICE comes last, and then downloads several hundred MB, {URL}, unless "
        f"{' and '.join(JARS)} are put into {FOLDER}."
    )


def provide_jars() -> None:
    """Downloads the jars if one is missing, and compares their checksums."""
    if note_on_download():
        with tempfile.TemporaryFile() as file:
            download(file)
            try:
                with zipfile.ZipFile(file) as archive:
                    unpack(archive)
            except (zipfile.BadZipFile, KeyError) as error:
                raise InputError(f"{URL} is not CoreNLP's archive: {error}.") from None
    for name, expected in JARS.items():
        with open(FOLDER / name, "rb") as jar:
            check(jar, FOLDER / name, expected)


def download(file: IO[bytes]) -> None:
    """Downloads the archive of CoreNLP to an open file."""
    try:
        with urllib.request.urlopen(URL, timeout=60) as response:
            size = int(response.headers["Content-Length"] or 0) or None
            with tqdm.wrapattr(response, "read", size, desc=URL) as stream:
                shutil.copyfileobj(stream, file)
    except OSError as error:
        raise InputError(f"{URL} cannot be downloaded: {error}.") from None


def unpack(archive: zipfile.ZipFile) -> None:
    """Unpacks the jars into pycocoevalcap's folder if all checksums agree."""
    members = {name: f"{ARCHIVE}/{name}" for name in JARS}
    for name, member in members.items():
        with archive.open(member) as jar:
            check(jar, f"{URL}, {name}", JARS[name])
    for name, member in members.items():
        with (
            archive.open(member) as jar,
            replacing(FOLDER / name) as partial,
            open(partial, "wb") as file,
        ):
            shutil.copyfileobj(jar, file)


def check(jar: IO[bytes], where: Any, expected: str) -> None:
    """Raises `InputError` if the checksum of a jar is not the expected one."""
    digest = hashlib.sha256()
    while block := jar.read(2**20):
        digest.update(block)
    if digest.hexdigest() != expected:
        raise InputError(
            f"{where} is not the published jar, whose SHA-256 is {expected}."
        )
