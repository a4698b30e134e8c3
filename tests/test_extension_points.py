"""What users add by one registration, without touching a file of the project.

An input kind joins `keras_caption.inputs.KINDS`, a mechanism of attention a table of
`keras_caption.models.attention`, and a task `keras_caption.tasks.TASKS`.
"""

import dataclasses
import json
import re
from typing import get_args
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import PROJECT, random_images
from keras import ops

import keras_caption as kc
from keras_caption.base.arguments import Count
from keras_caption.inputs import Regions
from keras_caption.models import attention, blocks
from keras_caption.models.initializers import INITIALIZATIONS
from keras_caption.models.presets import PRESETS, Preset
from keras_caption.tasks import TASKS
from keras_caption.training.task import Task

SOUND_DIM = 3


class Sounds(kc.inputs.InputKind):
    """A dummy kind: clips of sound, the silent steps of which are padding."""

    keys = ("sounds", "sound_mask")
    sizes = ("sound_dim",)
    noun = "clip"
    optional = {"sound_mask"}

    def complete(self, inputs):
        return {**self.own(inputs), "sound_mask": ops.any(inputs["sounds"] != 0, -1)}

    def memory_mask(self, inputs):
        return inputs["sound_mask"]

    def faults(self, inputs):
        silent = ops.all(inputs["sounds"] == 0, axis=(1, 2))
        return {**super().faults(self.own(inputs)), "is silent": silent}

    def served_specs(self):
        return {"sounds": self.specs["sounds"]}


@pytest.fixture
def sounds():
    def draw(panel, inputs, weights, size):
        panel.bar(np.arange(len(weights)), weights)

    kc.inputs.KINDS.append(Sounds)  # the registrations
    kc.visualization.DRAWINGS[Sounds] = draw
    yield
    kc.inputs.KINDS.remove(Sounds)
    del kc.visualization.DRAWINGS[Sounds]


def make_decoder(size=34):
    block = kc.layers.TransformerDecoderBlock(
        attention.make_attention(2, 4), attention.make_attention(2, 4), 8
    )
    return kc.models.TransformerDecoder(size, 8, [block])


def make_captioner(vocabulary):
    specs = {
        "sounds": keras.Input((None, SOUND_DIM), name="sounds"),
        "sound_mask": keras.Input((None,), dtype="bool", name="sound_mask"),
    }
    encoder = keras.Model(specs, keras.layers.Dense(8)(specs["sounds"]))
    return kc.models.Captioner(encoder, make_decoder(), vocabulary)


def make_examples(rng):
    """Clips of 3, 4 and 5 steps."""

    def examples():
        for number in range(3):
            yield {
                "image_id": number,
                "sounds": rng.normal(size=(3 + number, SOUND_DIM)),
                "words": ["w1 w2", "w3"],
            }

    signature = {
        "image_id": tf.TensorSpec((), tf.int64),
        "sounds": tf.TensorSpec((None, SOUND_DIM), tf.float32),
        "words": tf.TensorSpec((None,), tf.string),
    }
    return tf.data.Dataset.from_generator(examples, output_signature=signature)


@pytest.mark.usefixtures("sounds")
def test_a_kind_of_input_is_trained_captioned_served_and_drawn(
    vocabulary, rng, tmp_path
):
    model = make_captioner(vocabulary)
    examples = make_examples(rng).cache()
    assert kc.inputs.sizes_of(examples.element_spec) == {"sound_dim": SOUND_DIM}
    model.compile("adam", kc.training.SequenceCrossEntropy(), run_eagerly=True)
    batches = kc.batches.train_batches(
        examples, vocabulary, 3, inputs=model.input_specs
    )
    history = model.fit(batches, steps_per_epoch=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])

    [batch] = kc.batches.image_batches(examples, 3, model.input_specs)
    assert set(batch) == {"sounds", "image_id"}
    options = {"beam_size": 2, "max_length": 4}
    captions = model.generate(batch, **options)
    short = {"sounds": batch["sounds"][:1, :3]}  # without its padding
    scores, expected = (model.generate_tokens(x, **options)[1] for x in (short, batch))
    np.testing.assert_allclose(scores, expected[:1], atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.generate(batch, **options) == captions
    ensemble = kc.models.Ensemble([model, loaded])
    assert ensemble.generate(batch, **options) == captions

    silent = tf.concat([batch["sounds"], tf.zeros((1, 5, SOUND_DIM))], axis=0)
    with pytest.raises(kc.InputError, match="Clip 3 of the batch is silent"):
        model.generate({"sounds": silent})
    kc.serving.export(model, tmp_path / "1", **options)
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    answers = served(sounds=silent)["captions"].numpy()
    assert [answer.decode() for answer in answers] == [*captions, ""]

    tokens, _ = model.generate_tokens(short, **options)
    figure = kc.visualization.attention_over_words(model, short, tokens[0])
    assert figure.axes[0].get_title() == "all words"


def test_inputs_of_no_kind_are_named():
    smells = keras.Input((4, 2), name="smells")
    for inputs in ({"smells": smells}, {**Regions.symbolic(2), "smells": smells}):
        encoder = keras.Model(inputs, keras.layers.Dense(8)(smells))
        with pytest.raises(kc.InputError, match="No kind of input has the name 'sme"):
            kc.models.Captioner(encoder, make_decoder())
    encoder = keras.Model(smells, keras.layers.Dense(8)(smells))
    with pytest.raises(kc.InputError, match="a dict of inputs"):
        kc.models.Captioner(encoder, make_decoder())


@keras.saving.register_keras_serializable("tests")
class Norm(keras.layers.Layer):
    """A dummy norm."""

    def call(self, x):
        return ops.tanh(x)


@keras.saving.register_keras_serializable("tests")
class Differences(keras.layers.Layer):
    """A dummy score: near keys have a greater one."""

    def call(self, queries, keys):
        return -ops.sum(ops.abs(queries[..., None, :] - keys[:, :, None]), axis=-1)


@keras.saving.register_keras_serializable("tests")
class LevelBias(keras.layers.Layer):
    """A dummy bias: boxes attend to those at their height."""

    def call(self, query, value, boxes):
        levels = boxes[..., 1]
        return -ops.abs(levels[:, None, :, None] - levels[:, None, None, :])


@keras.saving.register_keras_serializable("tests")
class NullMemory(keras.layers.Layer):
    """A dummy memory: one more item, which is zero."""

    def call(self, keys, values, mask=None):
        def pad(x, axis):
            widths = [(0, 0)] * len(x.shape)
            widths[axis] = (0, 1)
            return ops.pad(x, widths)

        items = pad(keys, 2), pad(values, 2)
        return items if mask is None else (*items, ~pad(~mask, 2))

    def average(self, bias):
        return ops.pad(bias, [(0, 0)] * 3 + [(0, 1)])

    def share(self, weights, length):
        return weights[..., :length]


@keras.saving.register_keras_serializable("tests")
class Two(keras.layers.Layer):
    """A dummy temperature."""

    def call(self, keys):
        return ops.convert_to_tensor(2.0, keys.dtype)


@keras.saving.register_keras_serializable("tests")
class ReluGate(keras.layers.Layer):
    """A dummy gate."""

    def call(self, attended, query):
        return ops.relu(attended)


@pytest.fixture
def options(monkeypatch):
    """Options of models that fill every socket with a registered mechanism."""
    monkeypatch.setitem(kc.layers.NORMS, "mine", lambda affine, **_: Norm())
    for table, layer in (
        (attention.BIASES, LevelBias),
        (attention.MEMORIES, NullMemory),
        (attention.TEMPERATURES, Two),
        (attention.GATES, ReluGate),
    ):
        monkeypatch.setitem(
            table, "mine", lambda _, heads, dtype, layer=layer: layer(dtype=dtype)
        )
    names = "query_norm", "key_norm", "geometry", "memory", "temperature", "gate"
    return dict.fromkeys(names, "mine")


def check_sockets(layer):
    assert isinstance(layer.query_norm, Norm)
    assert isinstance(layer.key_norm, Norm)
    assert isinstance(layer.bias, LevelBias)
    assert isinstance(layer.memory, NullMemory)
    assert isinstance(layer.temperature, Two)
    assert isinstance(layer.gate, ReluGate)


def test_mechanisms_work_in_presets_and_in_models_of_own_parts(
    options, vocabulary, rng, tmp_path
):
    inputs = Regions.symbolic(6)
    block = kc.layers.TransformerEncoderBlock(
        attention.make_attention(2, 4, attention.AttentionOptions(**options)),
        8,
        name="block",
    )
    x = keras.layers.Dense(8)(inputs["regions"])
    x = block(x, mask=inputs["region_mask"], boxes=inputs["boxes"])
    model = kc.models.Captioner(keras.Model(inputs, x), make_decoder(), vocabulary)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    check_sockets(loaded.encoder.get_layer("block").attention)
    images = random_images(rng)
    short = {"beam_size": 1, "max_length": 3}
    assert loaded.generate(images, **short) == model.generate(images, **short)

    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    for family, more in (("san", {}), ("aoanet", {"refining": "attention"})):
        sizes |= {"decoder_heads": 2, "embedding_dim": 4} if more else {}
        model = kc.models.create(
            family, vocabulary=vocabulary, region_dim=6, **options, **sizes, **more
        )
        [layer] = [x.attention for x in model.encoder.layers if hasattr(x, "attention")]
        check_sockets(layer)
        memory = model.encode(model.read(images))
        assert model.attention(np.int32([[1, 4]] * 3), memory).shape == (3, 2, 5)


def test_an_option_of_a_mechanism_is_one_of_every_model_that_has_its_socket(
    monkeypatch,
):
    """A keyword of a socket is a field of `AttentionOptions`, of the same type."""
    for keywords, options in (
        (attention.Mechanisms, attention.AttentionOptions),
        (blocks.Blocks, blocks.BlockOptions),
    ):
        fields = {field.name: field for field in dataclasses.fields(options)}
        for name, kind in keywords.__annotations__.items():
            assert fields[name].type == kind, name
            assert kc.models.arguments("san")[name] == fields[name].default
    assert get_args(blocks.Initialization) == (*INITIALIZATIONS,)
    known = {name: kc.models.argument_types(name) for name in ("san", "video_nsa")}
    assert known["san"]["geometry_dim"].__args__ == (int,)
    assert "geometry_dim" not in known["video_nsa"]
    with pytest.raises(kc.InputError, match="'video_nsa' has no 'geometry_dim'"):
        kc.models.create("video_nsa", vocabulary_size=9, geometry_dim=4)
    with pytest.raises(kc.InputError, match="`geometry_dim`: Input should be a valid"):
        kc.models.create("san", vocabulary_size=9, geometry_dim="four")
    monkeypatch.setitem(attention.SCORES, "mine", lambda *_: Differences())
    options = attention.AttentionOptions(score="mine")
    assert isinstance(attention.make_attention(2, 4, options).score, Differences)
    monkeypatch.setitem(attention.BIASES, "mine", lambda *_: LevelBias())
    with pytest.raises(kc.InputError, match="joins kinds of one layer only"):
        kc.models.create("san", vocabulary_size=9, geometry="query+mine")


@keras.saving.register_keras_serializable("tests")
class Louder(kc.models.NGSAN):
    def __init__(self, *args, volume: float = 1.0, **kwargs):
        super().__init__(*args, **kwargs)


def test_a_subclass_passes_on_arguments_that_it_does_not_name(vocabulary):
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "region_dim": 6}
    model = Louder(vocabulary, volume=2.0, gate="aoa", name="loud", **sizes)
    clone = keras.models.clone_model(model)
    assert type(clone) is Louder
    assert clone.get_config() == model.get_config()
    assert (clone.volume, clone.gate, clone.name) == (2.0, "aoa", "loud")
    with pytest.raises(kc.InputError, match=r"no 'gat'\. Did you mean gate"):
        Louder(vocabulary, gat="aoa")
    with pytest.raises(kc.InputError, match="`volume`: Input should be a valid number"):
        Louder(vocabulary, volume="high")


@keras.saving.register_keras_serializable("tests")
class Sized(kc.models.NGSAN):
    def __init__(self, region_dim: Count = 6, model_dim: Count = 8, **kwargs):
        super().__init__(
            None, 9, region_dim, 1, model_dim=model_dim, num_heads=2, **kwargs
        )


def test_a_subclass_fixes_arguments_of_its_base(tmp_path, monkeypatch):
    model = Sized(model_dim=4, gate="aoa")
    model.save(tmp_path / "sized.keras")
    loaded = kc.models.load(tmp_path / "sized.keras")
    assert loaded.get_config() == model.get_config()
    assert (loaded.model_dim, loaded.gate) == (4, "aoa")
    assert (loaded.vocabulary, loaded.vocabulary_size) == (None, 9)
    monkeypatch.setitem(PRESETS, "sized", Preset(Sized, {}))
    fixed = {"num_layers", "num_heads", "vocabulary_size", "vocabulary"}
    assert {"model_dim", "gate"} <= {*kc.models.arguments("sized")}
    assert not fixed & {*kc.models.arguments("sized"), *model.get_config()}
    with pytest.raises(kc.InputError, match="The model 'Sized' has no 'num_layers'"):
        Sized(num_layers=2)


@pytest.fixture
def counting(tmp_path):
    """The file of a task of one's own that CONTRIBUTING shows."""
    text = (PROJECT / "CONTRIBUTING.md").read_text().split("## Add a task\n")[1]
    path = tmp_path / "counting.py"
    path.write_text(re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1])
    with mock.patch.dict(PRESETS), mock.patch.dict(TASKS):
        yield path


def test_a_task_is_trained_resumed_scored_and_served(counting, call_script, tmp_path):
    def call(*more):
        return call_script(
            *("keras-caption", "run", f"--import={counting}", "--model=counter"),
            *(f"--output_dir={tmp_path / 'run'}", "--config.data.examples=30", *more),
        )

    done = call()
    assert done.returncode == 0, done.stderr
    assert ", 3 answers, 30 training images" in done.stdout
    assert "test_scores.json" in done.stdout
    scores = tmp_path / "run" / "test_scores.json"
    assert json.loads(scores.read_text()) == {"accuracy": 1.0}
    assert "Resuming after epoch 20" in call("--resume", "--epochs=21").stdout
    served = tf.saved_model.load(str(tmp_path / "run" / "1")).signatures
    images = {"regions": np.ones((1, 3, 8), "float32"), "num_regions": np.int32([2])}
    answers = served["serving_default"](**images)["answers"]
    assert answers.numpy().tolist() == [b"two"]
    wrong = call("--resume", "--config.model.width=3")
    assert "--config.model has no 'width'" in wrong.stderr


def test_a_task_says_what_it_lacks():
    with pytest.raises(TypeError, match="methods build_vocabularies, evaluate"):
        type("Empty", (Task,), {})({"data": {}})
