"""Decoders that could explain what attention on attention gains."""

import numpy as np
import pytest

import keras_caption as kc
from keras_caption.commands.configuration import make_config

DIM = 24


@pytest.fixture(scope="module")
def models():
    """Untrained models by the context of their decoder."""
    from experiments.papers import gates  # whose import makes a preset

    sizes = {"model_dim": DIM, "embedding_dim": 6, "region_dim": 5}
    contexts = "linear", "lstm", *gates.GATES
    return {
        context: kc.models.create("gated", vocabulary_size=9, context=context, **sizes)
        for context in contexts
    }


def test_runs_have_every_context(models):
    for context in models:
        settings = {"model.name": "gated", "model.context": context}
        _, config = make_config(None, settings)
        assert config["model"]["context"] == context


def test_two_linear_layers_have_as_many_parameters_as_aoa(models):
    sizes = {name: model.count_params() for name, model in models.items()}
    assert sizes["wide"] == pytest.approx(sizes["aoa"], abs=2 * DIM)
    assert sizes["query_gate"] == sizes["aoa"] - DIM**2


def test_the_gate_of_the_query_does_not_see_what_was_attended_to(models, rng):
    query = rng.normal(size=(1, DIM)).astype("float32")
    layer, gates = models["query_gate"].decoder.gate, []
    for _ in range(2):
        attended = rng.normal(size=(1, DIM)).astype("float32")
        information = layer.information(np.concatenate([attended, query], axis=1))
        gates.append(np.array(layer(attended, query) / information))
    np.testing.assert_allclose(*gates, rtol=1e-4)
