"""What trained models and training steps computed before the code was rearranged.

    python tests/test_frozen.py

writes `frozen.json` anew: on the machine that wrote it, an unchanged project changes no
digit of it. The test allows for the rounding of other machines.
"""

import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import PROJECT, random_boxes

import keras_caption as kc

FILE = PROJECT / "tests" / "frozen.json"
TRAINED = "ngsan", "aoanet", "area", "spatial", "updown"
SIZES = {
    "num_layers": 1,
    "decoder_layers": 1,
    "model_dim": 8,
    "embedding_dim": 6,
    "attention_dim": 7,
    "num_heads": 2,
    "decoder_heads": 2,
    "feedforward_dim": 12,
    "pooling_dim": 7,
    "fusion_dim": 9,
    "geometry_dim": 4,
    "region_dim": 5,
    "grid_height": 3,
    "grid_width": 4,
    "grid_dim": 5,
    "area_output_scale": 1.0,
    "initialization": "glorot",
}
VOCABULARY_SIZE = 14


def fingerprint(values):
    """A tensor as its products with two random vectors, a list of float."""
    values = np.asarray(values, "float64").ravel()
    return (np.random.default_rng(0).normal(size=(2, values.size)) @ values).tolist()


def name_of(number, variable):
    """A name without the numbers of layers, which count all that a process made."""
    return f"{number} {re.sub(r'_[0-9]+(?=/)', '', variable.path)}"


def images_of(model, rng, batch=3):
    """Random inputs of a model of regions, the last two padded, or of a grid."""
    if "grid" in model.input_specs:
        shape = (batch, *model.input_specs["grid"].shape[1:])
        return {"grid": rng.normal(size=shape).astype("float32")}
    regions = 7
    return {
        "regions": rng.normal(
            size=(batch, regions, model.input_specs["regions"].shape[-1])
        ).astype("float32"),
        "boxes": random_boxes(rng, batch, regions),
        "region_mask": np.arange(regions) < regions - np.arange(batch)[:, None],
    }


def captions_of_the_saved_model():
    """Logits, greedy and beam captions of the repository's trained model."""
    model = keras.models.load_model(PROJECT / "saved_models" / "ngsan_scenes.keras")
    examples = [
        kc.synthetic.scenes.make_example(np.random.default_rng(seed))
        for seed in range(8)
    ]
    count = min(len(example["boxes"]) for example in examples)
    images = {
        name: np.stack([example[name][:count] for example in examples])
        for name in ("regions", "boxes")
    }
    greedy, greedy_scores = model.generate_tokens(images, beam_size=1)
    beams, beam_scores = model.generate_tokens(images, beam_size=3)
    logits = model({**images, "tokens": greedy})
    return {
        "logits": fingerprint(logits),
        "greedy": [model.vocabulary.decode(row) for row in greedy],
        "greedy_scores": greedy_scores.tolist(),
        "beams": [model.vocabulary.decode(row) for row in beams],
        "beam_scores": beam_scores.tolist(),
    }


def weights_after_training(name):
    """Weights of a tiny model after three steps of each objective."""
    rng = np.random.default_rng(0)
    keras.utils.set_random_seed(0)
    has = {**kc.models.arguments(name), **dict.fromkeys(kc.models.data_arguments(name))}
    sizes = {key: value for key, value in SIZES.items() if key in has}
    model = kc.models.create(name, vocabulary_size=VOCABULARY_SIZE, **sizes)
    words = rng.integers(4, VOCABULARY_SIZE, (3, 2, 6))
    lengths = np.array([[2, 5], [3, 4], [5, 1]])[:, :, None]
    references = np.where(np.arange(6) < lengths, words, 0)
    references = np.where(np.arange(6) == lengths, kc.text.EOS, references)
    tokens = np.pad(references, ((0, 0), (0, 0), (1, 0)), constant_values=kc.text.BOS)
    batch = {
        **images_of(model, rng),
        "tokens": tokens.astype("int32"),
        "references": references.astype("int32"),
    }
    dataset = tf.data.Dataset.from_tensors(batch)
    trainer = kc.training.SelfCritical(
        model,
        kc.rewards.CiderD.from_references(batch["references"]),
        samples=2,
        max_length=6,
    )
    found = {}
    for objective, trained in (("cross-entropy", model), ("self-critical", trainer)):
        loss = {"loss": kc.training.SequenceCrossEntropy()} if trained is model else {}
        trained.compile(keras.optimizers.SGD(0.1), run_eagerly=True, **loss)
        data = dataset.map(kc.text.teacher_forcing) if trained is model else dataset
        histories = [trained.fit(data, shuffle=False, verbose=0) for _ in range(3)]
        found[objective] = {
            "losses": [history.history["loss"][0] for history in histories],
            **{
                name_of(i, v): fingerprint(v)
                for i, v in enumerate(model.trainable_variables)
            },
        }
    return found


def answers_after_training():
    """Losses and weights of a tiny MCAN with GSA in three steps."""
    rng = np.random.default_rng(0)
    keras.utils.set_random_seed(0)
    sizes = {key: SIZES[key] for key in SIZES if key in kc.models.arguments("mcan_gsa")}
    answers = [f"a{i}" for i in range(10)]
    model = kc.models.create(
        "mcan_gsa",
        answers=answers,
        question_size=VOCABULARY_SIZE,
        region_dim=SIZES["region_dim"],
        **sizes,
    )
    words = rng.integers(3, VOCABULARY_SIZE, (3, 6))
    tokens = np.where(np.arange(6) < [[6], [2], [4]], words, kc.text.PAD)
    inputs = {**images_of(model, rng), "question": tokens}
    scores = rng.choice([0, 0, 0, 0.3, 1], (3, len(answers)))
    loss = kc.training.AnswerCrossEntropy()
    model.compile(keras.optimizers.SGD(0.1), loss, run_eagerly=True)
    losses = [float(model.train_on_batch(inputs, scores)) for _ in range(3)]
    weights = enumerate(model.trainable_variables)
    return {"losses": losses} | {name_of(i, v): fingerprint(v) for i, v in weights}


def check_close(found, frozen, where=""):
    if isinstance(frozen, dict):
        assert found.keys() == frozen.keys(), where
        for name, value in frozen.items():
            check_close(found[name], value, f"{where}/{name}")
    elif isinstance(frozen[0], str):
        assert found == frozen, where
    else:
        np.testing.assert_allclose(found, frozen, rtol=1e-4, atol=1e-5, err_msg=where)


@pytest.fixture(scope="module")
def frozen():
    return json.loads(FILE.read_text())


def test_the_saved_model_captions_as_before(frozen):
    check_close(captions_of_the_saved_model(), frozen["ngsan_scenes"])


@pytest.mark.parametrize("name", TRAINED)
def test_training_steps_are_as_before(frozen, name):
    check_close(weights_after_training(name), frozen[name])


def test_training_steps_of_answers_are_as_before(frozen):
    check_close(answers_after_training(), frozen["mcan_gsa"])


if __name__ == "__main__":
    everything = {"ngsan_scenes": captions_of_the_saved_model()}
    everything |= {name: weights_after_training(name) for name in TRAINED}
    everything["mcan_gsa"] = answers_after_training()
    FILE.write_text(json.dumps(everything, indent=0) + "\n")
