import importlib.util
import itertools

import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from keras import ops
from keras_caption.compilation import constant_shapes

import keras_caption as kc
from keras_caption.decoding import (
    Decoding,
    beam_search,
    compile_from_second_call,
    compile_function,
    greedy_search,
    length_limits,
    sample,
)
from keras_caption.decoding.beam_search import make_beam
from keras_caption.decoding.best_tokens import Scores, best_tokens, log_sum_exp
from keras_caption.decoding.constrained_beam import required_phrases
from keras_caption.layers.transformer_decoder_block import (
    GrowingCache,
    SharedCache,
    TransformerDecoderBlock,
)
from keras_caption.models import compiled_searches
from keras_caption.text import BOS, EOS, PAD


class Markov:
    """A decoder whose next word depends on the last one, and the image, only."""

    def __init__(self, log_probs):
        self.log_probs = np.asarray(log_probs, "float32")  # (images, last, next)
        self.steps = 0

    def start(self, memory, length):
        images = ops.arange(len(self.log_probs))
        return {"memory": None, "cache": images}

    def step(self, tokens, state, index):
        self.steps += 1
        logits = ops.take(ops.convert_to_tensor(self.log_probs), state["cache"], axis=0)
        tokens = ops.reshape(tokens, (-1, 1, 1))
        logits = ops.take_along_axis(logits, tokens, axis=1)
        return ops.squeeze(logits, 1), state

    def score(self, image, words):
        """Log-probability of words, the last of which may be EOS."""
        return sum(
            self.log_probs[image, a, b] for a, b in itertools.pairwise([BOS, *words])
        )

    def best(self, image, max_length):
        """The most probable caption of all, by trying every one."""
        allowed = [w for w in range(self.log_probs.shape[2]) if w > 3]
        captions = [
            (*words, EOS)
            for n in range(max_length)
            for words in itertools.product(allowed, repeat=n)
        ]
        captions += list(itertools.product(allowed, repeat=max_length))
        return max(captions, key=lambda words: self.score(image, words))


@pytest.fixture
def markov(rng):
    log_probs = np.log(rng.dirichlet(np.full(8, 0.5), size=(4, 8)))
    return Markov(log_probs)


def encoded(model, images):
    return model.encode(model.read(images))


def words_of(tokens):
    return [int(token) for token in np.array(tokens) if token != PAD]


def test_wide_beams_find_the_best_caption_of_all(markov):
    tokens, scores = beam_search(markov, None, Decoding(beam_size=100, max_length=4))
    for image in range(4):
        best = markov.best(image, 4)
        assert words_of(tokens[image, 0]) == list(best)
        np.testing.assert_allclose(
            scores[image, 0], markov.score(image, best), atol=1e-5
        )
        captions = [tuple(words_of(caption)) for caption in tokens[image]]
        real = np.array(scores[image]) > -1e8
        assert len(set(captions)) >= real.sum()  # never the same one twice


@pytest.mark.parametrize("size", [40, 160, 167])
def test_best_tokens_are_the_first_of_the_best(size, rng):
    scores = rng.integers(0, 9, (6, size)).astype("float32")
    # The best token of the first row is a special one, which the others forbid.
    special = np.zeros((6, 16), "float32")
    scores[:, 3], special[1:, 3] = 10, -1e9
    best, tokens = map(ops.convert_to_numpy, best_tokens(Scores(scores, special), 5))
    scores[:, :16] += special
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(best, np.take_along_axis(scores, expected, axis=1))


def test_logarithms_of_sums_of_exponentials(rng):
    # The last row's exponentials overflow, and the one before has one token left.
    logits = rng.normal(0, 5, (4, 167)).astype("float32")
    logits[2, 1:] = -1e9
    logits[3] += 500
    expected = np.log(np.sum(np.exp(logits.astype("float64")), axis=1))
    np.testing.assert_allclose(log_sum_exp(logits), expected, rtol=1e-6)


def test_beam_scores_are_log_probabilities_best_first(captioner, rng):
    images = random_images(rng, batch=4)
    tokens, scores = beam_search(
        captioner, encoded(captioner, images), Decoding(max_length=9)
    )
    tokens, scores = np.array(tokens), np.array(scores)
    assert (np.diff(scores, axis=1) <= 0).all()
    shown = np.concatenate([np.full((4, 3, 1), BOS), tokens[..., :-1]], axis=-1)
    log_probs = np.array(
        ops.log_softmax(captioner({**images, "tokens": shown.astype("int32")}))
    )
    of_words = np.take_along_axis(log_probs, tokens[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose((of_words * (tokens != PAD)).sum(-1), scores, atol=1e-4)


def test_beam_of_one_is_greedy(captioner, rng):
    memory = encoded(captioner, random_images(rng, batch=4))
    tokens, scores = beam_search(captioner, memory, Decoding(beam_size=1, max_length=9))
    greedy, greedy_scores = greedy_search(captioner, memory, Decoding(max_length=9))
    np.testing.assert_array_equal(tokens[:, 0], greedy)
    np.testing.assert_allclose(scores[:, 0], greedy_scores, atol=1e-4)


def test_search_stops_when_all_captions_have_ended():
    log_probs = np.full((2, 8, 8), -9.0)
    log_probs[:, BOS, 5] = log_probs[:, 5, EOS] = -0.01
    decoder = Markov(log_probs)
    tokens, _ = greedy_search(decoder, None, Decoding(max_length=50))
    assert words_of(tokens[0]) == [5, EOS]
    assert decoder.steps <= 3  # two steps, and one more where a graph is traced


def test_beams_continue_until_every_example_is_finished():
    log_probs = np.full((2, 8, 8), -9.0)
    log_probs[0, BOS, 5] = log_probs[0, 5, EOS] = -0.01  # ends after one word
    for token, following in itertools.pairwise([BOS, 4, 5, 6, 7, EOS]):
        log_probs[1, token, following] = -0.01
    options = Decoding(beam_size=2, max_length=10)
    tokens, _ = beam_search(Markov(log_probs), None, options)
    assert words_of(tokens[0, 0]) == [5, EOS]
    assert words_of(tokens[1, 0]) == [4, 5, 6, 7, EOS]


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_the_best_alone_is_that_of_the_beam_in_fewer_steps(penalty, rng):
    probabilities = rng.dirichlet(np.full(8, 0.5), size=(4, 8))
    probabilities[:, 4:, EOS] += 0.5  # after a first token
    log_probs = np.log(probabilities / 1.5)
    options = Decoding(beam_size=4, max_length=12, length_penalty=penalty)
    steps, found = {}, {}
    for only_best in (False, True):
        decoder = Markov(log_probs)
        found[only_best] = make_beam(decoder, options, None, None, only_best).run(None)
        steps[only_best] = decoder.steps
    for whole, alone in zip(found[False], found[True], strict=True):
        np.testing.assert_array_equal(whole[:, 0], alone[:, 0])
    assert steps[True] < steps[False]


def test_forbidden_words_are_never_generated(rng):
    log_probs = np.log(rng.dirichlet(np.ones(8), size=(2, 8)))
    log_probs[:, :, [PAD, BOS, 3]] = -1e-3
    decoder = Markov(log_probs)
    numbers = rng.random((2, 6)).astype("float32")
    for tokens in (
        greedy_search(decoder, None, Decoding(max_length=6))[0],
        beam_search(decoder, None, Decoding(max_length=6))[0][:, 0],
        sample(decoder, None, numbers, Decoding(max_length=6, temperature=1.0))[0],
    ):
        for caption in np.array(tokens):
            assert not {BOS, 3} & set(words_of(caption))
            length = len(words_of(caption))
            assert (caption[:length] != PAD).all()


def test_where_no_token_is_left_there_is_no_sequence(rng):
    decoder = Markov(np.log(rng.dirichlet(np.ones(8), size=(2, 8))))
    forbidden = {"forbidden": np.int32([[[4], [5], [6], [7]], [[4]] * 4])}
    options = {"max_length": 6, "min_length": 3}
    numbers = rng.random((2, 6)).astype("float32")
    hot, cold = (Decoding(**options, temperature=x) for x in (1e9, 1e-37))
    found = [
        greedy_search(decoder, None, Decoding(**options), forbidden),
        beam_search(decoder, None, Decoding(**options), forbidden),
        *(sample(decoder, None, numbers, x, forbidden) for x in (cold, hot)),
    ]
    for tokens, scores in found:
        tokens = np.array(tokens).reshape(2, -1, 6)
        scores = np.array(scores).reshape(2, -1)
        assert (tokens[0] == PAD).all()
        assert (scores[0] == -1e9).all()
        assert (scores[1] > -100).all()
        for sequence in tokens[1]:
            assert {*words_of(sequence)} <= {EOS, 5, 6, 7}
            assert len(words_of(sequence)) > 3
    np.testing.assert_array_equal(found[0][0], found[2][0])


def test_length_penalty_prefers_longer_captions():
    log_probs = np.full((1, 8, 8), -20.0)
    log_probs[0, BOS, 4], log_probs[0, 4, EOS] = -0.7, -0.2
    log_probs[0, BOS, 5], log_probs[0, 5, 6], log_probs[0, 6, 7] = -0.7, -0.1, -0.1
    log_probs[0, 7, EOS] = -0.2
    decoder = Markov(log_probs)
    captions = {
        alpha: words_of(
            beam_search(decoder, None, Decoding(max_length=6, length_penalty=alpha))[0][
                0, 0
            ]
        )
        for alpha in (0.0, 2.0)
    }
    assert captions == {0.0: [4, EOS], 2.0: [5, 6, 7, EOS]}


def test_fewer_captions_than_beams(captioner, rng):
    images = random_images(rng)
    memory = encoded(captioner, images)
    tokens, scores = beam_search(
        captioner, memory, Decoding(beam_size=50, max_length=1, no_repeat_ngram=3)
    )
    possible = np.array(scores) > -1e8
    assert possible.sum(1).tolist() == [31] * 3  # 30 words, or the end at once
    assert (np.array(tokens)[~possible] == PAD).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_ngrams_do_not_come_twice(size, rng):
    log_probs = np.log(rng.dirichlet(np.full(8, 0.3), size=(3, 8)))
    log_probs[:, :, EOS] = -30.0
    decoder = Markov(log_probs)

    def ngrams(no_repeat_ngram):
        length = 15 if size > 1 else 4
        options = Decoding(max_length=length, no_repeat_ngram=no_repeat_ngram)
        for caption in np.array(beam_search(decoder, None, options)[0][:, 0]):
            yield [tuple(caption[i : i + size]) for i in range(length + 1 - size)]

    assert any(len(set(of_one)) < len(of_one) for of_one in ngrams(0))
    assert all(len(set(of_one)) == len(of_one) for of_one in ngrams(size))


def test_samples_follow_the_probabilities(rng):
    row = np.log([1e-9, 1e-9, 0.1, 1e-9, 0.4, 0.2, 0.2, 0.1])
    decoder = Markov(np.tile(row, (1, 8, 1)))
    decoder.log_probs = np.repeat(decoder.log_probs, 5000, axis=0)
    numbers = rng.random((5000, 1)).astype("float32")

    once = {"max_length": 1, "temperature": 1.0}

    def frequencies(**changed):
        tokens, scores = sample(decoder, None, numbers, Decoding(**{**once, **changed}))
        chosen = np.array(tokens)[:, 0]
        np.testing.assert_allclose(scores, row[chosen], atol=1e-5)
        return np.bincount(chosen, minlength=8) / 5000

    np.testing.assert_allclose(frequencies(), np.exp(row), atol=0.02)
    cold = np.exp(2 * row) / np.exp(2 * row).sum()
    np.testing.assert_allclose(frequencies(temperature=0.5), cold, atol=0.02)
    assert frequencies(top_k=1)[4] == 1.0


def test_generate_offers_every_search(captioner, rng):
    images = random_images(rng)
    memory = encoded(captioner, images)
    tokens, scores = captioner.generate_tokens(images, beam_size=2, max_length=7)
    expected = beam_search(captioner, memory, Decoding(beam_size=2, max_length=7))
    np.testing.assert_array_equal(tokens, expected[0][:, 0])
    np.testing.assert_allclose(scores, expected[1][:, 0], atol=1e-4)
    greedy, _ = captioner.generate_tokens(images, beam_size=1, max_length=7)
    np.testing.assert_array_equal(
        greedy, greedy_search(captioner, memory, Decoding(max_length=7))[0]
    )
    sampled = {"temperature": 1.0, "max_length": 7}
    first, again, other = (
        captioner.generate_tokens(images, seed=seed, **sampled)[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    captions = captioner.generate(images, beam_size=2, max_length=7)
    assert captions == [captioner.vocabulary.decode(row) for row in tokens]


def test_xla_generates_the_same_in_few_shapes(vocabulary, rng, monkeypatch):
    model = kc.models.create("ngsan", vocabulary=vocabulary, **tiny("ngsan"))
    images = random_images(rng, 5, regions=7)
    options = {"n": 2, "attention": True, "max_length": 6, "no_repeat_ngram": 2}
    sampled = {"temperature": 1.0, "seed": 3, "max_length": 6}
    expected = model.generate(images, **options)
    samples = model.generate(images, **sampled)
    shapes = []

    def compile_noting(function, variables, jit_compile):
        assert jit_compile

        def call(feed):
            regions = feed["inputs"]["regions"]
            shapes.append((len(regions), regions.shape[1]))
            return compiled(feed)

        compiled = compile_function(function, variables, jit_compile)
        return call

    monkeypatch.setattr(compiled_searches, "compile_function", compile_noting)
    model.jit_compile = True
    for example, wanted in zip(
        model.generate(images, **options), expected, strict=True
    ):
        for found, one in zip(example, wanted, strict=True):
            assert found[0] == one[0]
            np.testing.assert_allclose(found[1], one[1], atol=1e-4)
            np.testing.assert_allclose(found[2], one[2], atol=1e-5)
    assert model.generate(images, **sampled) == samples
    fewer = {name: x[:, :6] for name, x in images.items()}
    fewer["region_mask"] = fewer["region_mask"] & True
    model.generate(fewer, **options)
    assert {*shapes} == {(8, 8)}  # of 5 images with 7 or 6 regions


@pytest.mark.parametrize(
    "kind", ["areas", "ensemble", "samples", "diverse", "required", "wide"]
)
def test_shapes_that_change_change_no_result(
    kind, captioner, vocabulary, rng, monkeypatch
):
    """In TensorFlow's own graphs alone, caches grow, hypotheses of narrow beams share
    theirs, and finished examples leave.
    """
    if kind == "areas":
        model = kc.models.create(
            "transformer_tiny",
            source_size=20,
            target_size=9,
            num_layers=1,
            model_dim=8,
            num_heads=2,
            feedforward_dim=8,
            output_area=3,
        )
        inputs, batches = {"source": rng.integers(4, 20, (3, 5))}, (3, 1)
    else:
        model, inputs, batches = captioner, random_images(rng, 3), (3,)
    if kind == "ensemble":
        sizes = tiny("aoanet", num_layers=1)
        other = kc.models.create("aoanet", vocabulary=vocabulary, **sizes)
        model = kc.models.Ensemble([captioner, other])
    options, numbers, required = Decoding(beam_size=3, max_length=7), None, None
    kept, hypotheses = {3, 2, 1}, 3  # examples of a batch of 3 in its parts
    if kind == "samples":
        options = Decoding(temperature=1.0, max_length=7)
        numbers = rng.random((9, 7)).astype("float32")  # of three samples of each
    elif kind == "diverse":
        options = Decoding(beam_size=6, groups=2, diversity=0.3, max_length=7)
        batches, hypotheses = (3, 1), 6
    elif kind == "required":
        required, hypotheses = required_phrases([[5, 6]]), 9
    elif kind == "wide":
        options = Decoding(beam_size=17, max_length=7)
        hypotheses = 17
    limits = np.array([2, 7, 4], "int32")
    caches, rows, step = [], [], TransformerDecoderBlock.step

    def note(x):
        rows.append(len(x))
        return x

    def noting(self, x, items, cache, index):
        is_shared = isinstance(cache, SharedCache)
        caches.append((type(cache), cache.ancestors.shape[1] if is_shared else 1))
        if is_shared or isinstance(cache, GrowingCache):
            x = ops.reshape(tf.numpy_function(note, [x], x.dtype), (-1, 1, x.shape[2]))
        return step(self, x, items, cache, index)

    monkeypatch.setattr(TransformerDecoderBlock, "step", noting)

    def find(inputs, limits):
        inputs = model.read(inputs)
        search = model.search(options, inputs, numbers=numbers, required=required)
        search.per_example = {"limits": limits}
        return search.run(model.encode(inputs))

    def find_in_constant_shapes(inputs, limits):
        with constant_shapes():
            return find(inputs, limits)

    functions = [
        compile_function(function, model.variables)
        for function in (find, find_in_constant_shapes)
    ]
    for batch in batches:
        part = {name: ops.convert_to_tensor(x[:batch]) for name, x in inputs.items()}
        (tokens, scores), (expected, others) = (
            function(part, ops.convert_to_tensor(limits[:batch]))
            for function in functions
        )
        np.testing.assert_array_equal(tokens, expected)
        np.testing.assert_allclose(scores, others, atol=1e-5)
        examples = kept if batch == 3 else {1}
        assert {*rows} == {hypotheses * n for n in examples}
        rows.clear()
    places = {"ensemble": 3, "diverse": 3, "required": 9}.get(kind, 1)
    growing = GrowingCache if kind == "areas" else SharedCache
    assert {*caches} == {(growing, places), (tuple, 1)}


def test_a_network_is_compiled_when_it_is_called_again():
    runs = []  # of the code: of an eager call of one example, and of its tracing

    def double(x):
        runs.append(x)
        return 2 * x

    for size, eager in (1, [True, False]), (2, [False]):
        runs.clear()
        function = compile_from_second_call(double, [])
        results = [np.asarray(function(ops.full((size,), 4))) for _ in range(3)]
        assert np.all(np.array(results) == 8)
        assert [hasattr(x, "numpy") for x in runs] == eager


def test_other_batch_sizes_and_numbers_of_regions(captioner, rng):
    images = random_images(rng, batch=4, regions=9)
    whole = captioner.generate(images)
    one_by_one = [
        captioner.generate({name: x[i : i + 1, : 9 - i] for name, x in images.items()})[
            0
        ]
        for i in range(4)
    ]
    assert whole == one_by_one


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_the_same_without_tensorflow(backend, vocabulary, rng, tmp_path):
    """Layers, models, decoding and rewards on another backend alone."""
    import json
    import subprocess
    import sys

    from conftest import PROJECT, QUICK_JAX

    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    images = random_images(rng)
    images["frames"] = rng.normal(size=(3, 4, 6)).astype("float32")
    images["frame_mask"] = np.arange(4) < np.array([[4], [3], [1]])
    references = rng.integers(4, 9, (3, 2, 6)).astype("int32")
    np.savez(tmp_path / "images.npz", **images, references=references)
    of_videos = tiny("video_aoa", num_layers=1, frame_dim=6)
    del of_videos["region_dim"]
    models = [
        kc.models.create(name, vocabulary=vocabulary, **sizes)
        for name, sizes in (
            ("ngsan", tiny("ngsan", num_layers=1)),
            ("video_aoa", of_videos),
            ("aoanet", tiny("aoanet", num_layers=1)),
        )
    ]
    widths = {"ngsan": (1, 3), "video_aoa": (1,), "aoanet": (3,)}
    for model in models:
        model.save(tmp_path / f"{model.name}.keras")
    program = """
import json, sys
for name in ("tensorflow", "tensorflow_text", "tensorflow_datasets"):
    sys.modules[name] = None
import keras, numpy as np, keras_caption as kc
assert keras.backend.backend() == sys.argv[2]
images = dict(np.load(sys.argv[1] + "/images.npz"))
for name, widths in json.loads(sys.argv[3]).items():
    model = keras.models.load_model(f"{sys.argv[1]}/{name}.keras")
    for width in widths:
        tokens = model.generate_tokens(images, beam_size=width)[0]
        np.save(f"{sys.argv[1]}/{name}_{width}.npy", tokens)
assert len(model.generate_tokens(images, temperature=1.0)[0]) == 3
from keras_caption.commands.run import check_backend
fine = {"strategy": "one_device", "deterministic": False}
check_backend(fine, ["cross-entropy"])
of_torch = (
    lambda: kc.training.SelfCritical(model, None),
    lambda: check_backend(fine, ["cross-entropy", "self-critical"]),
)
for refused in (
    lambda: check_backend({**fine, "strategy": "mirrored"}, []),
    lambda: check_backend({**fine, "deterministic": True}, []),
    *(of_torch if sys.argv[2] == "torch" else ()),
):
    try:
        refused()
    except kc.InputError as error:
        assert "needs the TensorFlow " in str(error)
    else:
        raise AssertionError
model.compile(keras.optimizers.SGD(0.1), kc.training.SequenceCrossEntropy())
before = model.get_weights()
x, y, weights = kc.text.teacher_forcing({**images, "tokens": np.full((3, 4), 4)})
seeds = kc.training.EpochSeeds(2**31)
history = model.fit(
    x, y, sample_weight=weights, batch_size=3, verbose=0, callbacks=[seeds]
).history
assert np.isfinite(kc.training.ValidationLoss(model, [(x, y, weights)])())
assert np.isfinite(history["loss"]).all()
assert any((a != b).any() for a, b in zip(model.get_weights(), before))
model.save(f"{sys.argv[1]}/trained.keras")
sentences = {"source": np.full((3, 2), 5), "tokens": np.full((3, 4), 4)}
x, y, weights = kc.text.teacher_forcing(sentences)
model = kc.models.create(
    "lstm_256_area", source_size=7, target_size=6, model_dim=4, num_layers=1
)
model.compile(keras.optimizers.SGD(0.1), kc.training.SequenceCrossEntropy(0.1))
losses = model.fit(x, y, 3, epochs=2, sample_weight=weights, verbose=0).history["loss"]
assert losses[1] < losses[0]
reward = kc.rewards.CiderD.from_references(images["references"])
scores = reward(images["references"][:, 0], images["references"])
lengths, ratios = np.arange(1001), np.arange(1, 301) / 100
limits = [kc.decoding.length_limits(lengths, ratio) for ratio in ratios]
np.save(sys.argv[1] + "/limits.npy", np.stack(limits))
np.save(sys.argv[1] + "/scores.npy", keras.ops.convert_to_numpy(scores))
"""
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), backend, json.dumps(widths)],
        cwd=PROJECT,
        check=True,
        env={"KERAS_BACKEND": backend, "PATH": "", **QUICK_JAX},
    )
    for model in models:
        for width in widths[model.name]:
            np.testing.assert_array_equal(
                np.load(tmp_path / f"{model.name}_{width}.npy"),
                model.generate_tokens(images, beam_size=width)[0],
            )
    limits = np.maximum(np.arange(1, 301)[:, None] * np.arange(1001) // 100, 1)
    np.testing.assert_array_equal(np.load(tmp_path / "limits.npy"), limits)
    reward = kc.rewards.CiderD.from_references(references)
    scores = reward(references[:, 0], references)
    np.testing.assert_allclose(np.load(tmp_path / "scores.npy"), scores, rtol=1e-5)


def test_length_limits_are_exact_in_decimals():
    lengths, hundredths = np.arange(1001), np.arange(1001)
    expected = np.maximum(hundredths[:, None] * lengths // 100 + 3, 1)
    for number, row in zip(hundredths, expected, strict=True):
        limits = length_limits(lengths, number / 100, 3)
        np.testing.assert_array_equal(limits, row)
    some = [1, 29, 210, 333, 9999]
    compiled = compile_function(
        lambda x: [length_limits(x, number / 100) for number in some], []
    )
    for number, limits in zip(some, compiled(lengths), strict=True):
        np.testing.assert_array_equal(limits, np.maximum(number * lengths // 100, 1))
    assert np.array(length_limits([30], np.float32(2.1))) == [63]
    assert np.array(length_limits([3000], 1 / 3)) == [1000]


class Extractor:
    """Makes regions of numbers in place of photos, and counts those of each batch."""

    variables = ()

    def __init__(self, images):
        self.images = images
        self.sizes = []

    def to_pixels(self, photos):
        self.sizes.append(len(photos))
        return np.array(photos)

    def __call__(self, numbers):
        return {name: ops.take(x, numbers, axis=0) for name, x in self.images.items()}


def test_any_number_of_examples_is_decoded_in_batches(captioner, rng, monkeypatch):
    images = random_images(rng, batch=5)
    options = {"beam_size": 2, "max_length": 7}
    expected = captioner.generate_tokens(images, **options)
    best = captioner.generate(images, n=2, **options)
    sampled = {"temperature": 1.0, "seed": 1, "max_length": 7}
    samples, _ = captioner.generate_tokens(images, **sampled)
    tensors = {name: ops.convert_to_tensor(x) for name, x in images.items()}
    extractor = Extractor(images)
    monkeypatch.setattr(captioner, "extractor", extractor)
    for raw in (images, tensors, [0, 1, 2, 3, 4]):
        found = captioner.generate_tokens(raw, batch_size=2, **options)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert extractor.sizes == [2, 2, 2]  # read when their turn comes
    found = captioner.generate(images, n=2, batch_size=2, **options)
    assert [[text for text, _ in row] for row in found] == [
        [text for text, _ in row] for row in best
    ]
    found, _ = captioner.generate_tokens(images, batch_size=2, **sampled)
    np.testing.assert_array_equal(found, samples)
    assert captioner.generate([0, 1, 2], batch_size=2, **options) == [
        text for (text, _), *_ in best[:3]
    ]


def test_faults_in_later_batches_are_named_before_any_is_decoded(
    captioner, rng, monkeypatch
):
    images = random_images(rng, batch=5)
    images["regions"][4, 0, 0] = np.nan
    monkeypatch.setattr(captioner.backend, "compiled", None)
    with pytest.raises(kc.InputError, match="Image 4 of the batch"):
        captioner.generate_tokens(images, batch_size=2)
    images["boxes"] = images["boxes"][:3]
    with pytest.raises(kc.InputError, match=r"differ in their number of images: .*: 3"):
        captioner.generate_tokens(images, batch_size=2)
    with pytest.raises(kc.InputError, match="`batch_size`: Input should be greater"):
        captioner.generate_tokens(images, batch_size=0)
