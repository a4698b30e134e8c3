import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from few_sentences import (
    EVIDENCE,
    FEW,
    LAID,
    LEFT,
    ON_IT,
    RIGHT,
    SENTENCES,
    TALL,
    WIDE,
    captioner_of_few,
    images_of,
    possible,
    ranked,
)
from keras import ops
from keras_caption.objects import CATEGORIES, ObjectEvidence

import keras_caption as kc
from keras_caption.apps.objects.evidence_table import NOUNS, read_table
from keras_caption.apps.objects.object_words import (
    LONGEST_FIRST,
    NOUN,
    mentions,
    said_several,
)
from keras_caption.base.errors import NoTextError
from keras_caption.decoding import Decoding
from keras_caption.export.engine_cache import engine_of
from keras_caption.export.signatures import endpoints_of
from keras_caption.text import BOS, EOS, PAD, UNK

UNSUPPORTED = ("green", "window", "behind", "running")
TEXTS = " ".join(row.word.strip("(").replace(")", "") for row in read_table())
WORDS = sorted({*TEXTS.lower().split(), *UNSUPPORTED})


@pytest.fixture(scope="module")
def words():
    return kc.text.Vocabulary(WORDS)


@pytest.fixture(scope="module")
def evidence(words):
    return ObjectEvidence(words)


@pytest.fixture(scope="module")
def model(words):
    model = captioner_of_few(words)
    model.decoding = Decoding()
    return model


class Liked(kc.decoding.Hook):
    """Raises the scores of some words by 2."""

    def __init__(self, vocabulary, words):
        self.bonus = 2.0 * np.isin(vocabulary.words, words.split())

    def read(self, inputs):
        return {}

    def __call__(self, scores, tokens, index, state):
        return scores + self.bonus


CAT = [("cat", TALL)]
TWO = [("giraffe", LEFT), ("giraffe", RIGHT)]
RIDING = [("person", TALL), ("surfboard", (0.3, 0.8, 0.7, 0.95))]
PARTS = [("cat", WIDE), ("cat", (0.2, 0.6, 0.5, 0.9))]  # one, found twice
NESTED = [*TWO, ("giraffe", (0.05, 0.4, 0.25, 0.8))]  # two or three
FAR = [("person", (0.0, 0.0, 0.4, 0.4)), ("cell phone", (0.9, 0.9, 0.95, 0.95))]
LIVING = [("couch", WIDE), ("tv", ON_IT), ("person", TALL)]
GLASSES = [("wine glass", LEFT), ("wine glass", RIGHT)]
APART = [("person", (0.0, 0.1, 0.1, 0.4)), ("chair", (0.8, 0.7, 0.9, 0.9))]


@pytest.mark.parametrize(
    ("objects", "prefix", "admissible", "excluded"),
    [
        (CAT, "", "a", "two people the window"),
        (CAT, "a", "cat", "dog cats group street green"),
        (CAT, "a cat", "", "sitting standing on with and is next"),
        (TWO, "", "two a giraffes", "three several people"),
        (TWO, "a", "giraffe", "group giraffes"),
        (TWO, "two giraffes standing next to", "each", "a"),
        ([TWO[0]], "a giraffe", "standing is", "next"),
        (NESTED, "", "giraffes a", "two three several"),
        (NESTED, "a", "giraffe", "couple group"),
        (NESTED, "two", "", "giraffes"),
        (LAID, "a cup on top", "of", "a table with"),
        (LIVING, "a person in a", "living", "room"),
        (LIVING, "a person in a living", "room", "and with"),
        (TWO, "a giraffe standing", "", "next"),  # what is said of one
        (LAID, "a cup", "on sitting with", "in at under"),
        (LAID, "a cup on a", "table dining", "cup"),
        (LAID, "a table", "with and", "on sitting"),
        (RIDING, "a person", "riding on in surfing", "holding playing"),
        (RIDING, "a person riding a", "surfboard wave", "person street"),
        ([RIDING[1]], "a", "surfboard", "wave surfer person"),
        (APART, "a person", "and", "on with sitting holding next"),
        ([("toilet", TALL)], "a", "toilet bathroom", "kitchen"),
        ([("toilet", LEFT), ("person", RIGHT)], "a person and a", "toilet", "bathroom"),
        ([("mouse", LEFT), ("person", RIGHT)], "a person and a", "mouse desk", "game"),
        ([("hot dog", TALL)], "a", "hot", "dog"),
        ([("hot dog", TALL)], "a hot", "dog", "and cat"),
        ([("hot dog", LEFT), ("dog", RIGHT)], "a hot dog and a", "dog", "hot"),
        ([("elephant", TALL)], "", "an", "a"),
        ([("sheep", x) for x in (TALL, LEFT, RIGHT)], "a herd of", "sheep", "cow"),
        (PARTS, "", "a", "two cats"),
        (PARTS, "a cat", "", "next with and"),
        ([("cat", TALL)] * 2, "", "a", "two cats"),
        (FAR, "a person", "and", "holding with"),
        (GLASSES, "a wine", "glass", "glasses"),
        (GLASSES, "two wine", "glasses", "glass"),
    ],
)
def test_words_need_evidence(evidence, words, objects, prefix, admissible, excluded):
    inputs = images_of(objects)
    tokens = np.zeros((1, 12), "int32")
    ids = words.to_ids(prefix)
    tokens[0, : len(ids)] = ids
    read = evidence.read(inputs)
    allowed = np.array(evidence.admissible(tokens, len(ids), read))[0]
    candidates = {words.words[i] for i in np.flatnonzero(allowed)}
    assert {*admissible.split()} <= candidates
    assert not {*excluded.split()} & candidates
    nouns = {text.split()[-1] for text in NOUN}
    ends = bool(ids) and prefix.split()[-1] in nouns | {"standing"}
    assert allowed[EOS] == ends
    assert not allowed[[PAD, BOS, UNK]].any()


def test_random_captions_end_and_name_what_is_there(evidence, words, rng):
    images = [
        [
            (CATEGORIES[i], np.sort(rng.random((2, 2)), axis=0).ravel())
            for i in rng.choice(len(CATEGORIES), size=4)[rng.integers(4, size=6)]
        ]
        for _ in range(200)
    ]
    found = evidence.read(images_of(*images))
    step = tf.function(evidence.admissible)
    tokens, unfinished = (
        np.zeros((len(images), 16), "int32"),
        np.ones(len(images), bool),
    )
    for i in range(tokens.shape[1]):
        allowed = np.array(step(tokens, tf.constant(i), found))
        for row in np.flatnonzero(unfinished):
            choices = np.flatnonzero(allowed[row])
            assert len(choices), words.decode(tokens[row, :i])
            tokens[row, i] = rng.choice(choices)
            unfinished[row] = tokens[row, i] != EOS
    assert unfinished.mean() < 0.2
    for objects, row in zip(images, tokens, strict=True):
        caption, there = words.decode(row), [category for category, _ in objects]
        # Who plays baseball names no ball.
        named = [x for noun, x in mentions(caption) if noun != "baseball"]
        assert {*named} <= {*there}, caption
        assert all(there.count(x) > 1 for x in said_several(caption)), caption


COLUMNS = "word,kind,names,condition,after,share right,photos"
PARTS_TABLE = """
THINGS,set,,screw nut,,,
a,a,,,,,
the,the,,,,,
two,number,,2 objects,,,
screw,one,screw,,,,
screws,several,screw,,,,
nut,one,nut,,,,
steel plate,one,steel plate,,,,
on,preposition,on,above: THINGS / steel_plate,,,
in,preposition,in,,,,
workshop,place,workshop,screw + nut,in,,
"""


def sentences_of(evidence, vocabulary, regions, boxes):
    """All that may be said of an image of three objects, a set of str."""
    inputs = {"regions": regions, "boxes": boxes, "region_mask": regions.any(axis=-1)}
    read = evidence.read({name: np.array(x)[None] for name, x in inputs.items()})
    begun, found = np.zeros((1, 8), "int32"), set()
    for i in range(begun.shape[1]):
        rows = {name: np.repeat(x, len(begun), axis=0) for name, x in read.items()}
        allowed = np.array(evidence.admissible(begun, i, rows))
        found |= {vocabulary.decode(row) for row in begun[allowed[:, EOS]]}
        allowed[:, EOS] = False
        places, tokens = np.nonzero(allowed)
        begun = begun[places]
        begun[:, i] = tokens
        if not len(begun):
            return found
    raise AssertionError("There are captions that do not end.")


@pytest.mark.usefixtures("eagerly")
def test_a_detector_of_other_categories_needs_a_table_only(tmp_path):
    table = tmp_path / "parts.csv"
    table.write_text(COLUMNS + PARTS_TABLE)
    text = "a the two screw screws nut steel plate on in workshop"
    words, parts = kc.text.Vocabulary(text.split()), ["screw", "nut", "steel plate"]
    evidence = ObjectEvidence(words, parts, table)
    sizes = tiny("ngsan", num_layers=1, region_dim=3)
    model = kc.models.create(
        "ngsan",
        vocabulary=words,
        categories=parts,
        evidence_table=[x.split(",") for x in PARTS_TABLE.strip().splitlines()],
        **sizes,
    )
    model = type(model).from_config(model.get_config())
    two = {"regions": [[[1, 0, 0], [0, 0, 1]]], "boxes": [[ON_IT, WIDE]]}
    two = {name: np.array(x, "float32") for name, x in two.items()}
    two["region_mask"] = np.ones((1, 2), "bool")
    tokens, _ = model.generate_tokens(two, n=3, evidence=True, max_length=8)
    assert {words.decode(x) for x in tokens[0]} == {
        *("a screw", "a steel plate", "a screw on a steel plate")
    }
    screw, nut, plate = np.eye(3, dtype="float32")
    for objects, boxes, sentences in (
        (
            [screw, plate],
            [ON_IT, WIDE],
            "a screw|a steel plate|a screw on a steel plate",
        ),
        ([screw, screw], [LEFT, RIGHT], "a screw|screws|two screws"),
        (
            [screw, nut],
            [LEFT, RIGHT],
            "a screw|a nut|a workshop|a screw in a workshop|a screw in the workshop|"
            "a nut in a workshop|a nut in the workshop",
        ),
    ):
        found = sentences_of(evidence, words, np.stack(objects), boxes)
        assert found == {*sentences.split("|")}


def test_nouns_of_the_table_are_understood_alike_in_captions():
    rows = read_table()
    for row in (x for x in rows if x.kind in NOUNS):
        assert mentions(row.word)[0][1] == row.names
        assert said_several(row.word) == (
            {row.names} if row.kind == "several" else set()
        )
    words = {x.word for x in rows} | {"teddy"}  # which the table has in "teddy bear"
    assert {noun for noun, _ in LONGEST_FIRST} <= words


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("screw,one,screw", "line 13: the columns must be word, kind, names"),
        ("bolt,noun,screw,,,,", "line 13: 'noun' is no kind of words"),
        ("a,one,bolt,,,,", "line 13: the condition '', or what 'a' names"),
        ("small flat nut,one,nut,,,,", "'small flat nut' has more than two words"),
        ("at,preposition,at,near: nut / nut,,,", "'near: nut / nut' is no relation"),
        ("on,preposition,on,beside: nut / nut,,,", "boxes of 'on' are above others"),
        ("a,place,a,bolt,,,", "line 13: 'bolt' is neither a category nor a set"),
        ("a,be,,of three,,,", "line 13: the condition 'of three'"),
    ],
)
def test_faults_of_a_table_are_named(tmp_path, row, message):
    table = tmp_path / "parts.csv"
    table.write_text(COLUMNS + PARTS_TABLE + row)
    with pytest.raises(kc.InputError, match=message):
        ObjectEvidence(
            kc.text.Vocabulary(["a"]), ("screw", "nut", "steel plate"), table
        )


SEARCHES = [
    {"n": 12},
    {"n": 3},
    {"n": 12, "max_length": 3},
    {"n": 12, "min_length": 3},
    {"n": 12, "prefix": "a", "required": ["cup"], "forbidden": ["and"]},
    {"n": 12, "prefix": "dog"},
    {"n": 12, "forbidden": ["dog", "cup"], "repetition_penalty": 100.0},
    {"n": 12, "required": ["and a"], "no_repeat_ngram": 2},
    {"n": 12, "required": ["green"]},
    {"n": 1, "beam_size": 1},
    {"n": 5, "groups": 2, "diversity": 50.0},  # a beam of six
    {"n": 4, "temperature": 1e6, "seed": 1},
    {"n": 4, "temperature": 5.0, "seed": 2, "top_k": 2, "top_p": 0.5, "prefix": "a"},
]


@pytest.fixture
def eagerly():
    """Tiny searches take longer to trace than to run step by step."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def small():
    return captioner_of_few()


@pytest.mark.parametrize("options", SEARCHES)
@pytest.mark.usefixtures("eagerly")
def test_searches_find_what_is_admissible_and_nothing_else(small, options):
    images = {
        objects: possible(sentences, options)
        for objects, sentences in SENTENCES.items()
    }
    if without := [objects for objects, texts in images.items() if not texts]:
        with pytest.raises(NoTextError, match="`evidence` and a `max_"):
            small.generate(images_of(without[0]), **options)
    images = {objects: texts for objects, texts in images.items() if texts}
    if not images:
        return
    inputs, n = images_of(*images), options["n"]
    generated = small.generate(inputs, **options)
    for found, expected in zip(generated, images.values(), strict=True):
        texts = [text for text, _ in found]
        assert {*texts} <= expected
        if "temperature" not in options:
            assert len(texts) == len({*texts})
            least = 1 if "groups" in options else min(n, len(expected))
            assert len(texts) >= least
    for i, (found, expected) in enumerate(zip(generated, images.values(), strict=True)):
        image = {name: x[i : i + 1] for name, x in inputs.items()}
        best = ranked(small, image, expected)
        scores = dict(best)
        np.testing.assert_allclose(
            [x for _, x in found], [scores[text] for text, _ in found], atol=1e-4
        )
        if {*options} <= {"n", "prefix", "required", "forbidden"} and n == 12:
            assert [text for text, _ in found] == [text for text, _ in best]


def test_the_package_has_its_captioner_for_litert_with_this_evidence(rng):
    names = "person", "baseball bat", "baseball glove", "toilet", "bus", "boat", "tv"
    categories = rng.choice([CATEGORIES.index(x) for x in names], (200, 6))
    boxes = np.sort(rng.random((200, 6, 2, 2)), axis=2).reshape(200, 6, 4)
    objects = {
        "regions": np.eye(len(CATEGORIES), dtype="float32")[categories],
        "boxes": boxes.astype("float32"),
    }
    of_keras, of_litert = (
        kc.models.load(x).generate(objects)
        for x in ("ngsan_coco", engine_of("ngsan_coco", "litert"))
    )
    assert of_litert == of_keras


@pytest.mark.usefixtures("eagerly")
def test_exports_and_ensembles_return_what_is_admissible(small):
    inputs, wide = images_of(*SENTENCES), Decoding(beam_size=12, **EVIDENCE)
    several = {name: inputs[name] for name in ("regions", "boxes")}
    endpoints = endpoints_of(small, wide)

    def check(name, **options):
        endpoint = endpoints[name]
        given = {n: x.tensor for n, x in endpoint.inputs.items() if x.has_default}
        given |= {n: tf.constant([x], given[n].dtype) for n, x in options.items()}
        answer = endpoint.function(**several, **given)
        scores = np.reshape(answer["scores"], (len(SENTENCES), -1))
        texts = np.reshape(answer["captions"], scores.shape)
        given = {**options, "forbidden": options.get("forbidden", "").split(",")}
        for row, row_scores, sentences in zip(
            texts, scores, SENTENCES.values(), strict=True
        ):
            found = [x.decode() for x in row[np.isfinite(row_scores)]]
            assert not any(row[np.isneginf(row_scores)])
            expected = possible(sentences, given)
            assert {*found} <= expected
            if name != "sample":
                assert len(found) == len(expected)

    check("n_best")
    check("search", prefix="dog", repetition_penalty=100.0)
    check("search", forbidden="cat,and", min_length=2)
    check("sample", temperature=1e6, top_k=3, seed=1)
    ensemble = kc.models.Ensemble([small, small])
    for model in ensemble, small:
        tokens, scores = model.generate_tokens(inputs, n=12)
        for row, row_scores, sentences in zip(
            tokens, scores, SENTENCES.values(), strict=True
        ):
            assert {FEW.decode(x) for x in row if x.any()} == sentences
            assert (row_scores > -1e8).sum() == len(sentences)


def test_compiled_searches_heed_it(model, rng):
    inputs = images_of(CAT, TWO, LAID, RIDING)
    expected = model.generate(inputs, evidence=True, max_length=8)
    assert expected[0] == "a cat"
    for text, objects in zip(expected, (CAT, TWO, LAID, RIDING), strict=True):
        assert {x for _, x in mentions(text)} <= {x for x, _ in objects}
    for options in ({"beam_size": 1}, {"temperature": 2.0, "seed": 1}):
        texts = model.generate(inputs, evidence=True, max_length=8, **options)
        assert texts[0] == "a cat"
    model.jit_compile = True
    assert model.generate(inputs, evidence=True, max_length=8) == expected
    model.jit_compile = False
    # Where nothing is detected, nothing is known of words.
    nothing = images_of([("cat", TALL)])
    nothing["regions"][:] = 0.0
    [text] = model.generate(nothing, evidence=True, max_length=8)
    assert [text] == model.generate(nothing, max_length=8)


def test_self_critical_training_samples_only_what_it_admits(model, rng, monkeypatch):
    """The gradient is that of log p among admissible tokens, in float64."""
    monkeypatch.setattr(model, "decoding", Decoding(evidence=True))
    monkeypatch.setitem(model.hooks, "liked", Liked(model.vocabulary, "a of"))
    inputs = images_of(CAT, TWO, LAID, RIDING)
    references = np.full((4, 1, 6), EOS, "int32")
    reward = kc.rewards.CiderD.from_references(references)
    samples, length = 3, 6
    trainer = kc.training.SelfCritical(
        model, reward, samples=samples, temperature=2.0, max_length=length
    )
    seen, loss_of = {}, trainer.loss_of

    def seeing(memory, tokens, advantages, states):
        seen.update(tokens=tokens, **states)
        loss, logs = loss_of(memory, tokens, ops.ones_like(advantages), states)
        return seen.setdefault("loss", loss), logs

    monkeypatch.setattr(trainer, "loss_of", seeing)
    trainer.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    trainer.train_on_batch({**inputs, "references": references})
    tokens = np.array(seen["tokens"])
    logits = model.logits(
        np.pad(tokens[:, :-1], [(0, 0), (1, 0)], constant_values=BOS),
        model.encode(model.read(inputs)),
    )
    scores = np.array(logits, "float64") + model.hooks["liked"].bonus
    scores = scores / 2.0
    of_rows = {n: np.repeat(x, samples, axis=0) for n, x in seen["evidence"].items()}
    log_p = []
    for index in range(length):
        begun = np.where(np.arange(length) < index, tokens, PAD)
        admissible = np.array(model.evidence.admissible(begun, index, of_rows))
        admissible[:, [PAD, BOS, UNK]] = False
        for row, token in enumerate(tokens[:, index]):
            if token != PAD:
                assert admissible[row, token]
                values = np.exp(scores[row, index])
                log_p.append(np.log(values[token] / values[admissible[row]].sum()))
    np.testing.assert_allclose(float(seen["loss"]), -np.mean(log_p), rtol=1e-5)


def test_it_is_saved(model, captioner, tmp_path, rng):
    inputs = images_of(CAT, TWO, LAID, RIDING)
    expected = model.generate(inputs, evidence=True, max_length=8)
    before, model.decoding = model.decoding, Decoding(evidence=True, max_length=8)
    model.save(tmp_path / "model.keras")
    model.decoding = before
    loaded = kc.models.load(tmp_path / "model.keras")
    assert loaded.generate(inputs) == expected
    assert kc.models.Ensemble([loaded]).generate(inputs) == expected
    with pytest.raises(
        kc.InputError, match="'ngsan' does not caption detected objects"
    ):
        captioner.generate(random_images(rng), evidence=True)
