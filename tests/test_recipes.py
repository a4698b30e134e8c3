"""The papers' recipes, against what the papers say."""

import importlib

import numpy as np
import pytest
from conftest import PROJECT

import keras_caption as kc


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "experiments")
    return lambda name: importlib.import_module(f"configs.{name}").get_config()


def schedule_of(values, first_epoch=0):
    names = ("learning_rate", "warmup_epochs", "decay_after", "decay_every")
    values = {name: values[name] for name in (*names, "decay_rate")}
    return kc.training.WarmupStepDecay(10, first_epoch=first_epoch, **values)


def rates(schedule, epochs):
    return [float(schedule(10 * epoch)) for epoch in range(epochs)]


def test_ngsan_has_one_schedule_for_both_phases(recipe):
    config = recipe("ngsan_coco")
    assert (config.training.epochs, config.self_critical.epochs) == (15, 15)
    assert config.self_critical.learning_rate is None
    found = rates(schedule_of(config.training), 15)
    expected = [1e-4, 2e-4, *[3e-4] * 4, *[1.5e-4] * 3, *[0.75e-4] * 3, *[0.375e-4] * 3]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    found = rates(schedule_of(config.training, first_epoch=15), 15)
    halved = 1.875e-5 * 0.5 ** np.arange(5)
    np.testing.assert_allclose(found, np.repeat(halved, 3), rtol=1e-5)


def test_spatial_has_a_constant_rate_and_short_captions(recipe):
    config = recipe("spatial_coco")
    np.testing.assert_allclose(rates(schedule_of(config.training), 20), 3e-4, rtol=1e-6)
    assert config.training.max_words == 14
    assert config.self_critical.epochs == 0


def test_aoanet_is_that_of_its_section(recipe):
    config = recipe("aoanet_coco")
    found = rates(schedule_of(config.training), 9)
    np.testing.assert_allclose(found, 2e-4 * 0.8 ** np.repeat([0, 1, 2], 3), rtol=1e-5)
    assert (config.training.epochs, config.self_critical.epochs) == (30, 15)


@pytest.mark.parametrize(
    ("name", "rule"),
    [("ngsan_coco", (6, "all")), ("aoanet_coco", (5, "all")), ("scenes", (5, "train"))],
)
def test_vocabularies_are_counted_as_the_papers(recipe, name, rule):
    training = recipe(name).training
    assert (training.min_count, training.vocabulary_split) == rule


def test_every_recipe_has_every_value(recipe):
    folder = PROJECT / "experiments" / "configs"
    names = {path.stem for path in folder.glob("*.py")} - {"defaults"}
    expected = recipe("scenes")
    for name in names:
        for group in ("training", "self_critical", "decoding"):
            assert set(recipe(name)[group]) == set(expected[group]), name
