"""The one loop between records and answers, of whatever engine."""

import itertools
import re

import keras
import numpy as np
import pytest
from conftest import PROJECT, random_images, tiny

import keras_caption as kc
from keras_caption.base.errors import NoTextError
from keras_caption.predict import Columns, Example, Fault, Prediction, RecordPredictor
from keras_caption.predict import batches as loop

ANSWERING = ("models", "serving", "commands", "bulk", "demo", "predict")


class Sums(RecordPredictor):
    """An engine whose text is the sum of a record's numbers, and its place."""

    def __init__(self, reads=("numbers",)):
        super().__init__()
        self.names = reads
        self.batches = []

    @property
    def reads(self):
        return self.names

    def read(self, record, place=0):
        if record is None:
            raise kc.InputError(f"Record {place} is none.")
        name = "long" if len(record) > 5 else "numbers"
        return Example(place, {name: np.array(record)}, has_words=bool(record))

    def run(self, inputs, places, n, attention, options):
        [numbers] = inputs.values()
        self.batches.append(numbers.shape)
        if (numbers == 13).any():
            raise NoTextError(f"record {places[0]}", "13 leaves none")
        return [
            Prediction(f"{x.sum()} {place}")
            for x, place in zip(numbers, places, strict=True)
        ]

    def check_options(self, n, options):
        if options:
            raise kc.InputError("There are no options.")

    def fill(self, count, batch_size):
        return batch_size if count > 1 else 1


def test_a_stream_keeps_the_order_and_isolates_faults():
    predictor = Sums()
    records = [[1], [1, 2, 3], None, [], [13], [1, 1], [7] * 9]
    found = [*predictor.stream(iter(records), batch_size=4)]
    assert [getattr(x, "text", x.__class__) for x in found] == [
        *("1 0", "6 1", Fault, "", Fault, "2 5", "63 6")
    ]
    assert [(x.place, x.reason) for x in found if isinstance(x, Fault)] == [
        (2, "Record 2 is none."),
        (4, "There is no text: 13 leaves none."),
    ]
    # In the order of sizes, and of their own shapes: each alone after the fault.
    assert predictor.batches == [(4, 3), (1, 1), (1, 1), (1, 2), (1, 3), (1, 9)]
    with pytest.raises(NoTextError, match="record 0"):
        predictor([[13]])
    with pytest.raises(kc.InputError, match="There are no options"):
        next(predictor.stream([], beam_size=2))
    with pytest.raises(kc.InputError, match=r"`batch_size`.* 1"):
        next(predictor.stream([], batch_size=0))


@pytest.mark.parametrize(("name", "window"), [("numbers", 6), ("photo", 4)])
def test_a_stream_is_read_as_far_as_needed(monkeypatch, name, window):
    monkeypatch.setattr("keras_caption.predict.predictor.WINDOW", 6)
    begun = []

    def records():
        for i in itertools.count():
            begun.append(i)
            yield [i]

    predictor = Sums(reads=(name,))
    found = predictor.stream(records(), batch_size=4)
    monkeypatch.setattr(predictor, "run", lambda x, places, *_: [*map(str, places)])
    ahead = window * (2 if name == "photo" else 1)  # the next are read meanwhile
    assert next(found) == "0"
    assert len(begun) == ahead
    assert [*itertools.islice(found, 29)] == [str(i) for i in range(1, 30)]
    assert len(begun) <= 30 + ahead
    found.close()
    large = predictor.stream(records(), size_of=lambda x: loop.WINDOW_BYTES)
    begun.clear()
    assert next(large) == "0"
    assert len(begun) == ahead // window  # one at once


def test_batches_of_a_group_have_one_size():
    examples = Columns({"x": np.arange(7)}, 7, first=100)
    found = [
        (batch.indices.tolist(), batch.count) for batch in loop.batches_of(examples, 3)
    ]
    assert found == [([0, 1, 2], 3), ([3, 4, 5], 3), ([6, 6, 6], 1)]
    places = [place for _, place in loop.run_batches(examples, lambda x, p: p, 3)]
    assert places == [*range(100, 107)]
    assert not [*loop.batches_of(Columns({}, 0), 3)]


def test_a_sample_follows_from_its_record_alone(vocabulary, rng):
    model = kc.models.create("san", vocabulary=vocabulary, **tiny("san"))
    [image] = random_images(rng, 1)["regions"]
    images = {"regions": np.stack([image] * 40)}
    options = {"temperature": 2.0, "seed": 1, "max_length": 6}
    samples = model.generate(images, **options)
    assert len({*samples}) > 20  # also of examples that are 32 apart
    assert model.generate(images, batch_size=7, **options) == samples
    assert model.generate({"regions": image[None]}, **options) == samples[:1]
    several = model.generate(images, n=2, **options)
    assert [row[0][0] for row in several] == samples
    parts = [{"regions": x} for x in np.split(images["regions"], [3, 11])]
    assert model.generate(iter(parts), **options) == samples
    predictor = kc.serving.Predictor(model)
    record = {"regions": image}
    found = predictor([record] * 40, **options)
    assert [x.text for x in found] == samples
    # A server joins the first records of several requests, and others of theirs.
    joined = [predictor.read(record, place) for place in (0, 3, 0, 39)]
    found = predictor.answer(joined, **options)
    assert [x.text for x in found] == [samples[i] for i in (0, 3, 0, 39)]
    keras.utils.set_random_seed(0)
    del options["seed"]
    found = predictor.answer([predictor.read(record)] * 20, **options)
    assert len({x.text for x in found}) > 10


def test_translations_are_sampled_by_their_sentences():
    words = kc.text.Vocabulary(["a", "dog", "runs"])
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    model = kc.models.create("transformer_tiny", source=words, target=words, **sizes)
    sentences = ["a dog", "", "a", "dog runs a", "a dog"] * 8
    options = {"temperature": 2.0, "seed": 1, "max_length": 5}
    expected = model.translate(sentences, **options)
    assert model.translate(sentences, batch_size=3, **options) == expected
    found = kc.serving.Predictor(model)([{"source": x} for x in sentences], **options)
    assert [x.text for x in found] == expected
    assert len({*expected}) > 10


def test_one_place_says_how_many_run_at_once():
    folders = [PROJECT / "keras_caption" / name for name in ANSWERING]
    constants = {
        path.relative_to(PROJECT).as_posix(): names
        for folder in folders
        for path in folder.rglob("*.py")
        if (
            names := re.findall(
                r"^(\w*(?:BATCH|WINDOW)\w*) = \d", path.read_text(), re.M
            )
        )
    }
    names = ["BATCH_SIZE", "WINDOW", "WINDOW_BYTES"]
    assert constants == {"keras_caption/predict/batches.py": names}
