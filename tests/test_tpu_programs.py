"""Training and search compile for TPUs, ahead of time, on a machine that has none."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import PROJECT, random_boxes, tiny

import keras_caption as kc

SIZE, LENGTH, ROWS = 34, 6, 8  # of the vocabulary, of captions and of a batch
MODELS = "ngsan", "aoanet", "area", "video_nsa", "transformer_tiny"
# A self-critical step holds a greedy search, samples, and the gradient of all layers on
# given tokens: of the other models nothing new is in cross-entropy and beam search.
WHOLLY = "ngsan", "transformer_tiny"


def model_of(name):
    sizes = tiny(name, num_layers=1)
    if name == "transformer_tiny":
        del sizes["region_dim"]
        return kc.models.create(name, source_size=SIZE, target_size=SIZE, **sizes)
    if name == "video_nsa":
        sizes["frame_dim"] = sizes.pop("region_dim")
    if name == "area":
        del sizes["region_dim"]
        sizes |= {"grid_height": 2, "grid_width": 3, "grid_dim": 6}
    return kc.models.create(name, vocabulary_size=SIZE, **sizes)


def inputs_of(model):
    rng = np.random.default_rng(0)
    arrays = {
        "regions": rng.normal(size=(ROWS, 5, 6)).astype("float32"),
        "boxes": random_boxes(rng, ROWS, 5),
        "region_mask": np.ones((ROWS, 5), bool),
        "grid": rng.normal(size=(ROWS, 2, 3, 6)).astype("float32"),
        "frames": rng.normal(size=(ROWS, 5, 6)).astype("float32"),
        "frame_mask": np.ones((ROWS, 5), bool),
        "source": rng.integers(4, 9, (ROWS, 5)).astype("int32"),
    }
    return {name: arrays[name] for name in model.input_specs}


def main():
    """Prints what the programs do, as JSON."""
    import dataclasses

    from experiments.benchmarks import for_tpu

    mesh = for_tpu.mesh_of()
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, SIZE, (ROWS, 2, LENGTH)).astype("int32")
    found = {}

    def note(program, *names):
        found[", ".join(names)] = dataclasses.asdict(program)

    for name in MODELS:
        model = model_of(name)
        inputs = inputs_of(model)
        batch = {**inputs, "references": tokens}
        note(for_tpu.self_critical(model, mesh, batch, 2), name, "self-critical")
        if name not in WHOLLY:
            continue
        of_training = tokens[:, 0] if name == "transformer_tiny" else tokens
        batch = {**inputs, "tokens": of_training}
        note(for_tpu.cross_entropy(model, mesh, batch), name, "cross-entropy")
        program = for_tpu.search(model, mesh, inputs, max_length=LENGTH)
        note(program, name, "beam search")

    def on_host(captions, references):
        import jax

        shape = jax.ShapeDtypeStruct((captions.shape[0],), "float32")
        return jax.pure_callback(lambda x: np.zeros(len(x), "float32"), shape, captions)

    model = model_of("ngsan")
    batch = {**inputs_of(model), "references": tokens}
    program = for_tpu.self_critical(model, mesh, batch, 2, reward=on_host)
    note(program, "a reward of the host")
    print(json.dumps(found))


@pytest.fixture(scope="module")
def programs():
    if importlib.util.find_spec("libtpu") is None:
        pytest.skip("libtpu is not installed, which compiles for TPUs")
    done = subprocess.run(
        [sys.executable, __file__],
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "PYTHONPATH": os.pathsep.join([str(PROJECT), *sys.path]),
            "XLA_FLAGS": "",  # those of the tests are of CPUs
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


PROGRAMS = [
    *(f"{name}, self-critical" for name in MODELS),
    *(
        f"{name}, {kind}"
        for name in WHOLLY
        for kind in ("cross-entropy", "beam search")
    ),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tpu_runs_it_alone_and_chips_share_the_batch(programs, name):
    program = programs[name]
    assert not program["host"]
    assert not program["dynamic"]
    assert program["memory"] > 0
    # Chips exchange sums of gradients and logs, and whether a search is unfinished, but
    # no rows of a batch.
    assert {*program["collectives"]} == {"all-reduce"}
    assert program["collectives"]["all-reduce"] <= 3


def test_a_reward_that_runs_on_the_host_is_found(programs):
    assert programs["a reward of the host"]["host"]


if __name__ == "__main__":
    main()
