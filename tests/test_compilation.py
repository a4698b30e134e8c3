"""When XLA compiles, for which shapes, and that later processes find it."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from conftest import PROJECT, random_images, tiny
from keras_caption.compilation import (
    REPEATS,
    delete_oldest,
    round_up,
    round_up_rows,
    uses_xla,
)

import keras_caption as kc
from keras_caption import compilation
from keras_caption.base.caches import ENTRY, is_whole
from keras_caption.batches.few_shapes import round_up_in_graph
from keras_caption.decoding.random_numbers import threefry, uniform_numbers


@pytest.fixture
def with_gpu(monkeypatch):
    monkeypatch.setattr(compilation, "has_accelerator", lambda: True)


def test_threads_keep_a_compilation_once(tmp_path, monkeypatch):
    kept = compilation.KeptCompilations(tmp_path / "cache")
    (kept.working / "xla_compile_cache__a.pb").touch()
    keep, keys = kept.cache.keep, []

    def keep_slowly(key, path):
        keys.append(key)
        time.sleep(0.2)
        return keep(key, path)

    monkeypatch.setattr(kept.cache, "keep", keep_slowly)
    with ThreadPoolExecutor(2) as pool:
        [x.result() for x in [pool.submit(kept.keep) for _ in range(2)]]
    assert keys == ["xla_compile_cache__a.pb"]


def test_sizes_are_rounded_up_alike_in_python_and_in_graphs():
    sizes = [*range(1, 1100), 2048, 2049, 5000]
    rounded = [round_up(size) for size in sizes]
    assert [int(round_up_in_graph(tf.constant(x))) for x in sizes[::37]] == rounded[
        ::37
    ]
    assert all(x >= size for x, size in zip(rounded, sizes, strict=True))
    assert rounded == sorted(rounded)
    assert {round_up(x) for x in (36, 100, 196)} == {36, 100, 196}
    assert [round_up(x) for x in (2048, 2049)] == [2048, 3072]


def test_rows_of_a_gpu_have_two_sizes(with_gpu):
    assert [round_up_rows(n, 32) for n in (1, 2, 5, 32)] == [1, 32, 32, 32]
    assert [round_up_rows(n, 1000) for n in (2, 64, 70)] == [64, 64, 100]


def test_auto_is_xla_on_a_gpu_whatever_a_model_was_saved_on(with_gpu, tmp_path):
    assert [uses_xla(x) for x in ("auto", True, False)] == [True, True, False]
    model = kc.models.create("san", vocabulary_size=9, **tiny("san"))
    model.compile("sgd", kc.losses.SequenceCrossEntropy())
    assert model.get_compile_config()["jit_compile"] == "auto"
    assert model.jit_compile
    trainer = kc.training.SelfCritical(model, lambda tokens, _: tokens)
    trainer.compile("sgd", jit_compile=False)
    assert not trainer.jit_compile
    assert not model.jit_compile
    with pytest.raises(kc.InputError, match="jit_compile"):
        model.jit_compile = "yes"


def test_a_cpu_compiles_single_examples_whose_shape_comes_back(rng):
    model = kc.models.create("san", vocabulary_size=9, **tiny("san"))
    assert not model.jit_compile
    calls = [model.pays_off(1, "a") for _ in range(REPEATS + 1)]
    assert calls == [False] * REPEATS + [True]
    assert not any([model.pays_off(2, "a"), model.pays_off(1, "b")])
    model.jit_compile = False
    assert not model.pays_off(1, "a")
    compilation.set_jit_compile(True)
    try:
        assert not model.jit_compile  # which was set itself
        assert kc.models.create("san", vocabulary_size=9, **tiny("san")).jit_compile
    finally:
        compilation.set_jit_compile("auto")


KEPT = """
import sys
import numpy as np
import keras_caption as kc
kc.compilation.keep_compilations()
import tensorflow as tf
if sys.argv[1] == "other":  # what a process does before changes nothing
    tf.function(lambda x: tf.while_loop(lambda i: i < 3, lambda i: i + 1, [x]))(0)
function = kc.compilation.compile_function(
    lambda x: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x @ x), (0, x)),
    [],
    jit_compile=True,
)
function(np.eye(8, dtype="float32"))
"""


def test_what_is_compiled_is_found_by_later_processes(tmp_path):
    kept = []
    for what in ("first", "other", "damaged"):
        if what == "damaged":  # which TensorFlow itself takes for an error
            kept[0][0].write_bytes(kept[0][0].read_bytes()[:-100])
        subprocess.run(
            [sys.executable, "-c", KEPT, what],
            env={**os.environ, "KERAS_CAPTION_CACHE": str(tmp_path)},
            cwd=PROJECT,
            check=True,
            capture_output=True,
        )
        kept.append(sorted(tmp_path.rglob("xla_compile_cache__*")))
    assert len(kept[0]) == 1
    assert kept[0] == kept[1]
    [anew] = kept[2]
    assert anew.name.split(".pb")[0] == kept[0][0].name.split(".pb")[0]
    assert is_whole(anew, *ENTRY.fullmatch(anew.name).groups())
    assert kept[0][0].parent.stat().st_mode & 0o77 == 0


def test_the_least_recently_used_compilations_are_deleted(tmp_path):
    for age in range(4):
        path = tmp_path / f"xla_compile_cache__{age}"
        path.write_bytes(b"0" * 10)
        os.utime(path, (10**9 - age, 10**9 - age))
    (tmp_path / "mine").write_bytes(b"0" * 100)
    delete_oldest(tmp_path, greatest=25)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mine",
        "xla_compile_cache__0",
        "xla_compile_cache__1",
    ]


@pytest.mark.parametrize("xp", [np, kc.decoding.random_numbers.ops])
def test_random_numbers_are_those_of_their_paper_and_of_a_row(xp):
    """Test vectors of Random123, the authors' library."""
    for key, counter, bits in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((-1, -1), (-1, -1), (0x1CB996FC, 0xBB002BE7)),
        (
            (0x13198A2E, 0x03707344),
            (0x243F6A88, 0x85A308D3),
            (0xC4923A9C, 0x483DF7A0),
        ),
    ):
        words = [np.array([x % 2**32], "uint32").view("int32") for x in counter]
        found = threefry(*key, *words, xp)
        assert [int(x[0]) % 2**32 for x in found] == [*bits]
    rows = np.arange(500, dtype="int32")
    numbers = np.asarray(uniform_numbers(3, 7, rows, 20, xp))
    assert 0 <= numbers.min() < 0.001
    assert 0.999 < numbers.max() < 1
    np.testing.assert_allclose(numbers.mean(), 0.5, atol=0.01)
    alone = uniform_numbers(3, 7, rows[7:8], 20, xp)
    np.testing.assert_array_equal(np.asarray(alone)[0], numbers[7])
    others = uniform_numbers(3, 8, rows[7:8], 20, xp)
    assert (np.asarray(others)[0] != numbers[7]).all()


def test_an_export_that_xla_compiles_answers_as_the_model(vocabulary, rng, tmp_path):
    sizes = tiny("san", num_layers=1)
    model = kc.models.create("san", vocabulary=vocabulary, **sizes)
    model.decoding = model.decoding.override(max_length=5)
    kc.serving.export(model, tmp_path / "1", jit_compile=True)
    served = tf.saved_model.load(tmp_path / "1").signatures
    images = random_images(rng, 3)
    features = {
        "regions": tf.constant(images["regions"]),
        "num_regions": tf.constant(images["region_mask"].sum(1), tf.int32),
    }
    found = served["n_best"](**features)
    texts = [[x.decode() for x in row] for row in found["captions"].numpy()]
    best = model.generate(images, n=3)
    assert texts == [[text for text, _ in row] for row in best]
