"""Graphs as users run them: with the passes of Grappler and XLA.

`conftest.py` switches these passes off in all other tests, since they take longer than
small models run.
"""

import os
import subprocess
import sys

from conftest import PROJECT, QUICK_JAX

PROGRAM = """
import keras
import numpy as np
import tensorflow as tf

import keras_caption as kc

assert not tf.config.optimizer.get_experimental_options()["disable_meta_optimizer"]
rng = np.random.default_rng(0)
images = {
    "regions": rng.normal(size=(3, 5, 6)).astype("float32"),
    "boxes": np.sort(rng.random((3, 5, 2, 2)), axis=-2).reshape(3, 5, 4),
    "region_mask": np.arange(5) < [[5], [4], [2]],
}
tokens = rng.integers(4, 12, (3, 2, 6)).astype("int32")
batch = kc.text.teacher_forcing({**images, "tokens": tokens})
sizes = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "feedforward_dim": 32}
sizes |= {"region_dim": 6, "geometry_dim": 4, "vocabulary_size": 12, "dropout": 0.0}
computed = {}
for how in "eagerly", "by a graph", "by XLA":
    keras.utils.set_random_seed(0)
    tf.config.run_functions_eagerly(how == "eagerly")
    model = kc.models.create("ngsan", gate="aoa", input_area=2, **sizes)
    model.jit_compile = by_xla = how == "by XLA"
    found = model.generate_tokens(images, beam_size=3, max_length=6)
    model.compile(keras.optimizers.SGD(0.1), loss=model.loss, jit_compile=by_xla)
    losses = [model.train_on_batch(*batch) for _ in range(2)]
    computed[how] = [*found, losses, *model.get_weights()]
expected = computed.pop("eagerly")
for how, arrays in computed.items():
    for x, y in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4, rtol=1e-4, err_msg=how)
"""


def test_passes_over_graphs_change_no_result():
    switched_off = {*QUICK_JAX, "XLA_FLAGS"}
    environment = {x: y for x, y in os.environ.items() if x not in switched_off}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr[-2000:]
