"""What users add by one registration, without touching a file of the project.

An input kind joins `keras_caption.inputs.KINDS`, and a mechanism of attention a table
of `keras_caption.models.attention`.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images
from keras import ops

import keras_caption as kc
from keras_caption.inputs import Regions
from keras_caption.models import attention

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

    def draw(self, panel, inputs, weights, size):
        steps = np.repeat(weights, -(-size[1] // len(weights)))[: size[1]]
        return np.broadcast_to(steps[None, :, None], (*size, 1))


@pytest.fixture
def sounds():
    kc.inputs.KINDS.append(Sounds)  # the registration
    yield
    kc.inputs.KINDS.remove(Sounds)


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
    model.compile("adam", kc.training.CaptionCrossEntropy(), run_eagerly=True)
    batches = kc.data.train_batches(examples, vocabulary, 3, inputs=model.input_specs)
    history = model.fit(batches, steps_per_epoch=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])

    [batch] = kc.data.image_batches(examples, 3, model.input_specs)
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
    assert len(figure.axes) == np.count_nonzero(tokens[0])  # all but PAD


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
class ReluGate(keras.layers.Layer):
    """A dummy mechanism: fills the gate."""

    def call(self, attended, query):
        return ops.relu(attended)


def test_a_mechanism_works_in_presets_and_in_models_of_own_parts(
    monkeypatch, vocabulary, rng, tmp_path
):
    monkeypatch.setitem(attention.GATES, "relu", lambda _, dtype: ReluGate(dtype=dtype))
    options = attention.AttentionOptions(gate="relu")
    inputs = Regions.symbolic(6)
    block = kc.layers.TransformerEncoderBlock(
        attention.make_attention(2, 4, options), 8, name="block"
    )
    x = keras.layers.Dense(8)(inputs["regions"])
    encoder = keras.Model(inputs, block(x, mask=inputs["region_mask"]))
    model = kc.models.Captioner(encoder, make_decoder(), vocabulary)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.encoder.get_layer("block").attention.gate, ReluGate)
    images = random_images(rng)
    short = {"beam_size": 1, "max_length": 3}
    assert loaded.generate(images, **short) == model.generate(images, **short)

    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    for family, more in (("san", {}), ("aoanet", {"refining": "attention"})):
        sizes |= {"decoder_heads": 2, "embedding_dim": 4} if more else {}
        model = kc.models.create(
            family, vocabulary=vocabulary, region_dim=6, gate="relu", **sizes, **more
        )
        [layer] = [x.attention for x in model.encoder.layers if hasattr(x, "attention")]
        assert isinstance(layer.gate, ReluGate)
