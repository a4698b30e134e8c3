"""A dataset, a model and a gate of one's own, which a file registers."""

import json
import re
from typing import Unpack
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow_datasets as tfds

import keras_caption as kc
from keras_caption.apps.report.tasks import captioning as report
from keras_caption.base.arguments import Count, Share
from keras_caption.commands import main
from keras_caption.commands.configuration import make_config
from keras_caption.commands.run_arguments import parse
from keras_caption.datasets.registry import DATASETS
from keras_caption.inputs import Regions
from keras_caption.models import AttentionOptions, make_attention
from keras_caption.models.attention import GATES, Mechanisms
from keras_caption.models.captioner import CaptionerOptions
from keras_caption.models.constructors import for_base
from keras_caption.models.presets import PRESETS, Preset

WORDS = "left", "right"


class Sides(tfds.core.GeneratorBasedBuilder):
    """Images of two regions, on the left or on the right."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self, features=kc.datasets.region_features(3)
        )

    def _split_generators(self, dl_manager):
        return {split: self._generate_examples() for split in ("train", "val", "test")}

    def _generate_examples(self):
        for i in range(4):
            side = i % 2 / 2
            captions = [f"a dot on the {WORDS[i % 2]}"]
            yield (
                i,
                {
                    "image_id": i,
                    "regions": np.full((2, 3), side, "float32"),
                    "boxes": np.array([[side, 0, side + 0.5, 1]] * 2, "float32"),
                    "captions": captions,
                    "words": captions,
                },
            )


class ScaledOptions(Mechanisms, CaptionerOptions, total=False):
    """Keywords of `Scaled` that other models have too."""


@keras.saving.register_keras_serializable("tests")
class Scaled(kc.models.Captioner):
    """Attends to regions, as they are or scaled.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`.
        region_dim: int, size of a region's feature vector.
        width: int, size of the hidden states. The rest is not in the help.
        factor: float, what regions are multiplied by.
        scaled: bool, whether they are.
    """

    def __init__(
        self,
        vocabulary: kc.text.Vocabulary,
        region_dim: Count = 4,
        width: Count = 4,
        factor: Share | None = None,
        scaled: bool = False,
        **options: Unpack[ScaledOptions],
    ):
        mechanisms = AttentionOptions.of(options)
        inputs = Regions.symbolic(region_dim)
        x = keras.layers.Rescaling(factor if scaled else 1.0)(inputs["regions"])
        x = make_attention(1, width, mechanisms)(keras.layers.Dense(width)(x))
        block = kc.layers.TransformerDecoderBlock(
            make_attention(1, width), make_attention(1, width), width
        )
        decoder = kc.models.TransformerDecoder(len(vocabulary), width, [block])
        super().__init__(
            keras.Model(inputs, x), decoder, vocabulary, **for_base(options)
        )


MINE = """
import keras
import keras_caption as kc
from keras_caption.models.attention import GATES
from keras_caption.models.presets import PRESETS, Preset
from test_extension_dataset import Scaled, Sides


@keras.saving.register_keras_serializable("mine")
class MyGate(keras.layers.Layer):
    def call(self, attended, query):
        return keras.ops.relu(attended)


GATES["mine"] = lambda options, num_heads, dtype: MyGate(dtype=dtype)
PRESETS["scaled"] = Preset(Scaled, {{}})
kc.datasets.register("sides", lambda folder: Sides(data_dir="{}"))
"""


@pytest.fixture
def mine(tmp_path):
    """A file that registers a dataset, a model and a gate."""
    path = tmp_path / "mine.py"
    path.write_text(MINE.format(tmp_path / "tfds"))
    with mock.patch.dict(DATASETS), mock.patch.dict(GATES), mock.patch.dict(PRESETS):
        yield path


def test_an_experiment_trains_what_a_file_registers(
    mine, call_script, monkeypatch, tmp_path
):
    # What takes seconds, and is tested elsewhere.
    monkeypatch.setattr(kc.evaluation, "score", lambda *_: ({}, {}))
    monkeypatch.setattr(report, "draw_attention", lambda *_: None)
    monkeypatch.setattr(report, "summaries", lambda *_: {})
    monkeypatch.setattr(kc.serving, "export", lambda *_, **options: None)
    values = {
        "model.width": 8,
        "model.factor": 0.5,
        "model.scaled": True,
        "training.batch_size": 4,
        "data.min_count": 1,
        "decoding.beam_size": 1,
        "model.gate": "mine",
    }
    done = call_script(
        *("experiments/run.py", f"--import={mine}"),
        *("--model=scaled", "--dataset=sides", "--epochs=1"),
        f"--output_dir={tmp_path / 'run'}",
        *(f"--config.{name}={value}" for name, value in values.items()),
    )
    assert done.returncode == 0, done.stderr
    assert "note: of 4 captions, " in done.stdout  # after one step
    model = kc.models.load(tmp_path / "run")
    assert set(WORDS) < set(model.vocabulary.words)
    assert (model.width, model.factor, model.scaled) == (8, 0.5, True)
    assert model.decoder.model_dim == 8
    assert model.input_specs["regions"].shape[-1] == 3
    results = json.loads((tmp_path / "run" / "test_results.json").read_text())
    assert sorted(row["image_id"] for row in results) == [0, 1, 2, 3]
    # Other commands load the model with the file, and not without.
    saved = str(tmp_path / "run" / "best.keras")
    for command, problem in (
        (["caption", __file__, "--model", saved], "has no extractor"),
        (["translate", saved, "a"], "translates no sentences"),
        (["answer", __file__, "a", "--model", saved], "not a model that answers"),
    ):
        del DATASETS["sides"], GATES["mine"]
        with pytest.raises(SystemExit, match="gate='mine'"):
            main(command)
        with pytest.raises(SystemExit, match=problem):
            main([*command, f"--import={mine}"])
    del DATASETS["sides"], GATES["mine"], PRESETS["scaled"]
    tables = "experiments/tables.py", tmp_path / "run"
    done = call_script(*tables)
    assert f"{tables[1]} is skipped: There is no model named 'scaled'" in done.stderr
    done = call_script(*tables, f"--import={mine}")
    assert "| scaled " in done.stdout


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "There is no Python file .*mine.py"),
        ("import nowhere", "mine.py fails: ModuleNotFoundError: No module named 'no"),
        ("kc.datasets.register('scenes', None)", "fails: NameError: name 'kc'"),
    ],
)
def test_a_file_that_fails_is_named(content, problem, tmp_path):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit, match=problem):
        main(["run", f"--import={path}"])


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("width=0", "--config.model.width: Input should be greater than or equal to 1"),
        ("factor=2", "--config.model.factor: Input should be less than or equal to 1"),
        ("scaled=so", "--config.model.scaled: Input should be a valid boolean"),
        ("gat=aoa", "--config.model has no 'gat'. Did you mean gate?"),
    ],
)
def test_arguments_of_a_registered_model_have_types(setting, problem):
    settings = dict([f"model.{setting}".split("=")])
    with (
        mock.patch.dict(PRESETS, scaled=Preset(Scaled, {})),
        pytest.raises(kc.InputError, match=re.escape(problem)),
    ):
        make_config(None, {"model.name": "scaled", **settings})


def test_help_describes_the_arguments_of_a_registered_model(capsys):
    with (
        mock.patch.dict(PRESETS, scaled=Preset(Scaled, {})),
        pytest.raises(SystemExit, match="0"),
    ):
        parse(["--model=scaled", "--help"], "")
    printed = capsys.readouterr().out
    assert re.search(r"--config.model.width=4 +size of the hidden states\n", printed)


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="There is a dataset 'scenes' already"):
        kc.datasets.register("scenes", Sides)
