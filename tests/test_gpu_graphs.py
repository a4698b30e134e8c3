"""Graphs of training and decoding have what a GPU and XLA need, read without a GPU."""

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from device_kernels import problems_of
from keras import ops
from keras_caption.compilation import has_accelerator
from keras_caption.objects import CATEGORIES

import keras_caption as kc
from keras_caption.decoding import Decoding
from keras_caption.export.signatures import signatures_of
from keras_caption.rewards import cider_d

OF_OBJECTS = "captioner_of_objects"  # which takes evidence
TRANSLATORS = "transformer_tiny_area", "lstm_512"
SIZE, LENGTH = 34, 6  # of the vocabulary, and of captions
# Integers of tokens, places and beams, which TensorFlow keeps in the host's memory.
# XLA compiles them too.
ON_HOST = [
    "AddV2",
    "BroadcastTo",
    "ConcatV2",
    "Equal",
    "ExpandDims",
    "FloorDiv",
    "FloorMod",
    "Identity",
    "Less",
    "LessEqual",
    "Maximum",
    "Minimum",
    "Mul",
    "NotEqual",
    "Pack",
    "Range",
    "Reshape",
    "StridedSlice",
    "Sub",
    "Sum",
]
# Steps of a training loop are kept in lists, which the host counts, and its dropout has
# counters there.
OF_LSTM = [
    "ConcatOffset",
    "InvertPermutation",
    "StatelessRandomGetKeyCounter",
    "StatelessRandomUniformV2",
    "TensorListElementShape",
    "TensorListGetItem",
    "TensorListLength",
    "TensorListPopBack",
    "TensorListReserve",
    "TensorListSetItem",
]
# Evidence compares integers of categories, and keeps what each step admits in a list.
OF_EVIDENCE = ["Greater", "GreaterEqual", "Max", "Pad", *OF_LSTM]


@functools.cache
def rng():
    return np.random.default_rng(0)


def model_of(name):
    if name == OF_OBJECTS:
        sizes = tiny("ngsan", num_layers=1, region_dim=len(CATEGORIES))
        words = kc.text.Vocabulary(
            ["a", "cat", "dog", "two", "on", "with", "next", "to", "street", "bus"]
        )
        return kc.models.create(
            "ngsan", vocabulary=words, categories=[*CATEGORIES], **sizes
        )
    sizes = tiny(name, **{"num_layers": 1})
    if name == "mcan":
        words = kc.text.QuestionTokenizer([f"w{i}" for i in range(9)])
        small = {"fusion_dim": 8, "pooling_dim": 8}
        return kc.models.create(
            name, answers=["a", "b", "c"], question=words, **sizes, **small
        )
    if name in TRANSLATORS:
        sizes.pop("region_dim")
        return kc.models.create(name, source_size=SIZE, target_size=SIZE, **sizes)
    if "frame_dim" in kc.models.data_arguments(name):
        sizes = {"frame_dim": sizes.pop("region_dim"), **sizes}
    if "grid_dim" in kc.models.data_arguments(name):
        del sizes["region_dim"]
        sizes |= {"grid_height": 2, "grid_width": 3, "grid_dim": 6}
    return kc.models.create(name, vocabulary_size=SIZE, **sizes)


def inputs_of(model):
    images = random_images(rng(), 2)
    if getattr(model, "categories", None):
        images = random_images(rng(), 2, region_dim=len(CATEGORIES))
    arrays = images | {
        "grid": rng().normal(size=(2, 2, 3, 6)).astype("float32"),
        "frames": images["regions"],
        "frame_mask": images["region_mask"],
        "source": rng().integers(4, 9, (2, 5)).astype("int32"),
        "question": rng().integers(4, 9, (2, 5)).astype("int32"),
    }
    own = {name: tf.constant(arrays[name]) for name in model.input_specs}
    return model.read(own)


def training(name):
    model = model_of(name)
    inputs = inputs_of(model)
    if name == "mcan":
        loss, batch = kc.losses.AnswerCrossEntropy(), (inputs, tf.ones((2, 3)))
    else:
        tokens = tf.constant(rng().integers(4, SIZE, (2, LENGTH)), tf.int32)
        loss = kc.losses.SequenceCrossEntropy(0.1)
        batch = kc.text.teacher_forcing({**inputs, "tokens": tokens})
    model.compile(keras.optimizers.Adam(1e-3, clipvalue=0.1), loss)
    model.make_train_function()
    return model.train_step, (batch,)


def self_critical(name):
    model = model_of(name)
    references = rng().integers(4, SIZE, (2, 3, LENGTH)).astype("int32")
    reward = kc.rewards.CiderD.from_references(references)
    model.decoding = Decoding(evidence=name == OF_OBJECTS)
    trainer = kc.training.SelfCritical(model, reward, samples=2, max_length=LENGTH)
    trainer.make_train_function()
    return trainer.train_step, ({**inputs_of(model), "references": references},)


def searching(name, **options):
    model = model_of(name)
    if name == "mcan":
        return model.probabilities, (inputs_of(model),)

    def search(inputs):
        decoding = Decoding(max_length=LENGTH, **options)
        numbers = None
        if decoding.temperature is not None:
            numbers = ops.full((2, LENGTH), 0.5)
        found = model.search(decoding, inputs, numbers=numbers)
        return found.run(model.encode(inputs))

    return search, (inputs_of(model),)


GRAPHS = {
    "cross-entropy": functools.partial(training, "ngsan"),
    "cross-entropy of an LSTM, AoANet": functools.partial(training, "aoanet"),
    "cross-entropy with areas": functools.partial(training, "area"),
    "cross-entropy of an LSTM of videos": functools.partial(training, "video_aoa"),
    "cross-entropy of an LSTM of translation": functools.partial(training, "lstm_512"),
    "training of answers with an LSTM": functools.partial(training, "mcan"),
    "self-critical": functools.partial(self_critical, "ngsan_aoa"),
    "self-critical with evidence": functools.partial(self_critical, OF_OBJECTS),
    "beam search with evidence": functools.partial(
        searching, OF_OBJECTS, evidence=True
    ),
    "greedy search": functools.partial(searching, "ngsan", beam_size=1),
    "sampling": functools.partial(searching, "san", temperature=1.0, top_p=0.9),
    "beam search": functools.partial(
        searching, "ngsan", no_repeat_ngram=2, min_length=2, repetition_penalty=1.1
    ),
    "beam search of an LSTM, AoANet": functools.partial(searching, "aoanet"),
    "beam search with areas": functools.partial(searching, "transformer_tiny_area"),
    "beam search of videos": functools.partial(searching, "video_nsa"),
    "answers with an LSTM": functools.partial(searching, "mcan"),
}


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    """A GPU by name, for which Keras and the project choose what they trace."""
    for list_devices in ("list_logical_devices", "list_physical_devices"):
        cpus = getattr(tf.config, list_devices)("CPU")
        gpus = [cpus[0]._replace(name="GPU:0", device_type="GPU")]
        devices = {"CPU": cpus, "GPU": gpus, None: [*cpus, *gpus]}
        monkeypatch.setattr(
            tf.config, list_devices, lambda kind=None, devices=devices: devices[kind]
        )
    has_accelerator.cache_clear()
    yield
    has_accelerator.cache_clear()


@pytest.mark.parametrize("name", GRAPHS)
def test_a_gpu_runs_all_of_a_graph_and_xla_compiles_it(name):
    function, arguments = GRAPHS[name]()
    graph = tf.function(function, autograph=False, jit_compile=True)
    problems = problems_of(graph.get_concrete_function(*arguments))
    assert not problems.without_kernel
    on_host = {problem.partition(" ")[0] for problem in problems.on_host_in_loops}
    more = OF_LSTM if "LSTM" in name else OF_EVIDENCE if "evidence" in name else ()
    assert on_host <= {*ON_HOST, *more}
    # As far as XLA's own operations: their compilation takes long, and adds none.
    assert "ENTRY" in graph.experimental_get_compiler_ir(*arguments)(stage="hlo")


def test_a_variable_that_no_gpu_holds_is_found(monkeypatch):
    monkeypatch.setattr(cider_d, "TABLE_DTYPE", "int32")
    function, arguments = self_critical("san")
    graph = tf.function(function, autograph=False, jit_compile=True)
    problems = problems_of(graph.get_concrete_function(*arguments))
    assert problems.without_kernel == {"VarHandleOp int32"}


def test_a_self_critical_step_without_xla_holds_no_messages():
    function, arguments = self_critical("san")
    graph = tf.function(function, autograph=False).get_concrete_function(*arguments)
    definition = graph.graph.as_graph_def()
    nodes = itertools.chain(
        definition.node, *(x.node_def for x in definition.library.function)
    )
    assert "Assert" not in {node.op for node in nodes}


def test_loops_of_exported_signatures_run_on_a_gpu(captioner):
    """What reads strings and joins words is outside of them, once a request."""
    for name, signature in signatures_of(captioner).items():
        problems = problems_of(signature.function)
        assert not problems.without_kernel_in_loops, name
        on_host = {x.partition(" ")[0] for x in problems.on_host_in_loops}
        assert on_host <= {*ON_HOST, *OF_LSTM}, name
