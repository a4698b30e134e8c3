"""Damages files that are kept or trusted to libraries in C, and counts what comes.

    python tests/stress/damaged_files.py [--mutations 300] [--seed 0]

Each file is changed in one to three places, at random, or emptied, cut, renamed or
replaced by a folder:

    caches     entries of a cache, files and folders: none may be found but as it was
               kept, and each is made anew
    engines    the kept file of a model for LiteRT: it is made anew, and is whole
    lmdb       ViLBERT's LMDB: every record is read, or refused in one sentence
    detectors  a detector in ONNX: it detects, or is refused in one sentence

No damage may end this process, stop it or raise another error. About 10 minutes on two
idle cores.
"""

import argparse
import collections
import pathlib
import pickle
import re
import shutil
import sys
import tempfile
import time

import lmdb
import numpy as np

PROJECT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(PROJECT / "tests" / name) for name in ("formats", "helpers")]

import onnx_detectors  # noqa: E402
import region_files  # noqa: E402
from mutations import mutate_bytes  # noqa: E402

import keras_caption as kc  # noqa: E402
from keras_caption.base.caches import Cache  # noqa: E402
from keras_caption.export import engine_cache  # noqa: E402
from keras_caption.formats import apart, built_in  # noqa: E402
from keras_caption.formats.detector_files import open_detector  # noqa: E402
from keras_caption.formats.engine_files import engine_file  # noqa: E402
from keras_caption.formats.region_files import open_regions  # noqa: E402

ENDED = re.compile(r"ended the process by \w+|was not read within|MemoryError")


def damage(rng, path):
    """Changes a file in some way; returns whether it differs from before."""
    content = path.read_bytes()
    kind = rng.integers(12)
    if kind == 0:
        path.write_bytes(b"")
    elif kind == 1:
        path.unlink()
        path.mkdir()
    elif kind == 2:
        path.rename(path.with_name(f"other{path.suffix}"))
    else:
        path.write_bytes(mutate_bytes(rng, content))
        return path.read_bytes() != content
    return True


def files_of(path):
    return (
        sorted(x for x in path.rglob("*") if x.is_file()) if path.is_dir() else [path]
    )


def damage_caches(folder, rng, count):
    (folder / "file").write_bytes(rng.bytes(5000))
    (folder / "parts" / "below").mkdir(parents=True)
    (folder / "parts" / "model.bin").write_bytes(rng.bytes(3000))
    (folder / "parts" / "below" / "a.json").write_text("{}")
    made = {"function.pb": folder / "file", "0f-litert-1": folder / "parts"}
    cache = Cache(folder / "cache", "entries")
    counts = collections.Counter()
    for i in range(count):
        key = list(made)[i % 2]
        entry = cache.find(key).get(key) or cache.keep(key, made[key])
        files = files_of(entry)
        differs = damage(rng, files[rng.integers(len(files))])
        found = cache.find(key)
        assert bool(found) != differs, entry
        counts["made anew" if differs else "the same"] += 1
    return counts


def damage_engines(folder, rng, count):
    [source] = built_in.engines().values()
    cache = Cache(folder / "engines", "files for engines")
    engine_cache.engines = lambda: cache
    counts = collections.Counter()
    whole = engine_file(source).read_bytes()

    def write(made):
        counts["made anew"] += 1
        shutil.copytree(source, made)

    for _ in range(count):
        file = engine_cache.kept("model", "litert", "0" * 64, write)
        assert file.read_bytes() == whole
        files = files_of(file.parent)
        damage(rng, files[rng.integers(len(files))])
    return counts


def damage_lmdb(folder, rng, count):
    path = folder / "lmdb"
    with lmdb.open(str(path), map_size=2**20) as file, file.begin(write=True) as txn:
        for i in range(20):
            features = rng.normal(size=(3, 8 if i % 2 else 500)).astype("f4")
            boxes = np.tile(np.float32([1, 1, 50, 50]), (3, 1))
            record = {"image_h": 100, "image_w": 100, "num_boxes": 3}
            record["boxes"] = region_files.text(boxes)
            record["features"] = region_files.text(features)
            txn.put(str(i).encode(), pickle.dumps(record, protocol=3))
    content = (path / "data.mdb").read_bytes()
    counts = collections.Counter()
    for _ in range(count):
        (path / "data.mdb").write_bytes(mutate_bytes(rng, content))
        try:
            regions = open_regions(path)
        except kc.InputError as error:
            count_refusal(counts, error, path)
            continue
        counts["opened"] += 1
        for id_ in regions.ids:
            try:
                regions.read(id_)
            except kc.InputError as error:
                count_refusal(counts, error, path, "records ")
            else:
                counts["records read"] += 1
    return counts


def damage_detectors(folder, rng, count):
    path = onnx_detectors.write(folder / "detector.onnx", *onnx_detectors.detr())
    content = path.read_bytes()
    image = np.zeros((1, 3, 64, 64), "float32")
    counts = collections.Counter()
    for _ in range(count):
        path.write_bytes(mutate_bytes(rng, content))
        try:
            detector = open_detector(path)
            detector.run(image)
        except kc.InputError as error:
            count_refusal(counts, error, path)
        else:
            counts["run"] += 1
    return counts


def count_refusal(counts, error, path, noun=""):
    """Counts an error, which should be a sentence about the file."""
    text = str(error)
    assert str(path) in text, text
    assert "\n" not in text, text
    ended = ENDED.search(text)
    counts[f"{noun}{ended[0] if ended else 'refused'}"] += 1


KINDS = {
    "caches": (damage_caches, 10),
    "engines": (damage_engines, 1),
    "lmdb": (damage_lmdb, 1),
    "detectors": (damage_detectors, 1),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    apart.SECONDS = 60.0
    for name in options.kinds:
        run, times = KINDS[name]
        rng = np.random.default_rng(options.seed)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            counts = run(pathlib.Path(folder), rng, times * options.mutations)
        listed = ", ".join(f"{n:,} {what}" for what, n in counts.most_common())
        seconds = time.monotonic() - begun
        print(f"{name:10}{times * options.mutations:6,} in {seconds:4.0f} s: {listed}")


if __name__ == "__main__":
    main()
