import itertools

import numpy as np
import pytest
import tensorflow as tf

import keras_caption as kc
from keras_caption.batches.token_batches import TokenizedPairs
from keras_caption.text import BOS, EOS, PAD

WORDS = [f"w{i}" for i in range(200)]
TOKENIZER = kc.text.WordTokenizer(WORDS)
TOKENS = 60


def make_pairs(**options):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, (200, 2))
    source = [" ".join(rng.choice(WORDS, length)) for length, _ in lengths]
    target = [f"w{i} " + " ".join(["w0"] * (n - 1)) for i, (_, n) in enumerate(lengths)]
    sentences = {"source": source, "target": target}
    dataset = tf.data.Dataset.from_tensor_slices(sentences)
    return TokenizedPairs(dataset, TOKENIZER, TOKENIZER, max_length=25, **options)


@pytest.fixture(scope="module")
def pairs():
    return make_pairs()


def epochs_of(pairs, count, **options):
    """Batches of some epochs, a list of lists."""
    steps = pairs.steps_per_epoch(TOKENS)
    batches = pairs.batches(TOKENS, **options).as_numpy_iterator()
    return [list(itertools.islice(batches, steps)) for _ in range(count)]


def numbers(epoch):
    """The number of each pair of an epoch, in order: its first target token."""
    return [int(n) for _, targets, _ in epoch for n in targets[:, 0]]


def test_every_pair_is_in_one_batch_of_an_epoch(pairs):
    first, second = epochs_of(pairs, 2)
    assert 0 < pairs.dropped == 200 - len(pairs.lengths)
    assert len(set(numbers(first))) == len(numbers(first)) == len(pairs.lengths)
    assert sorted(numbers(first)) == sorted(numbers(second))
    assert numbers(first) != numbers(second)


def test_epochs_end_with_sentences_of_any_length(pairs):
    """Weights are scored at the end of an epoch: its last batches weigh most."""
    last = [epoch[-1] for epoch in epochs_of(pairs, 8)]
    lengths = [max(x["source"].shape[1], y.shape[1]) for x, y, _ in last]
    assert min(lengths) < 17
    assert max(lengths) > 22


def test_a_batch_keeps_to_its_budget_and_holds_similar_lengths(pairs):
    (epoch,) = epochs_of(pairs, 1)
    padded = tokens = 0
    for inputs, targets, weights in epoch:
        assert max(inputs["source"].size, targets.size) <= TOKENS
        longer = np.maximum(np.sum(inputs["source"] != PAD, 1), weights.sum(1))
        assert longer.max() - longer.min() <= max(7, 0.1 * longer.max())
        padded += targets.shape[0] * max(targets.shape[1], inputs["source"].shape[1])
        tokens += longer.sum()
    assert tokens / padded > 0.85


def test_tokens_are_those_of_the_sentences(pairs):
    (epoch,) = epochs_of(pairs, 1)
    inputs, targets, weights = epoch[0]
    assert (inputs["tokens"][:, 0] == BOS).all()
    np.testing.assert_array_equal(
        inputs["tokens"][:, 1:][weights[:, 1:]], targets[:, :-1][weights[:, 1:]]
    )
    for row, weight in zip(targets, weights, strict=True):
        assert row[weight][-1] == EOS
        assert (row[~weight] == PAD).all()
    assert (np.sum(inputs["source"] == EOS, 1) == 1).all()


def test_a_resumed_run_sees_the_same_batches(pairs):
    _, second = epochs_of(pairs, 2, seed=3)
    tf.random.set_seed(99)
    (resumed,) = epochs_of(pairs, 1, seed=3, first_epoch=1)
    tf.nest.map_structure(np.testing.assert_array_equal, second, resumed)
    (other,) = epochs_of(pairs, 1, seed=4, first_epoch=1)
    assert numbers(other) != numbers(second)


@pytest.mark.parametrize("group", [4, 7])
def test_an_epoch_has_whole_groups_of_batches(pairs, group):
    steps = pairs.steps_per_epoch(TOKENS, group)
    assert pairs.steps_per_epoch(TOKENS) % group
    assert steps == -(-pairs.steps_per_epoch(TOKENS) // group)
    groups = [*pairs.batches(TOKENS, group=group).take(steps).as_numpy_iterator()]
    assert {len(batches) for batches in groups} == {group}
    found = numbers(itertools.chain(*groups))
    assert len(set(found)) == len(found) == len(pairs.lengths)


def test_each_replica_has_a_part_of_every_batch(pairs):
    steps = pairs.steps_per_epoch(2 * TOKENS, replicas=2)
    one, other, whole = (
        pairs.batches(2 * TOKENS, part=part).take(steps).as_numpy_iterator()
        for part in ((0, 2), (1, 2), (0, 1))
    )
    shared = []
    for first, second in zip(one, other, strict=True):
        assert 0 < len(first[1]) <= len(second[1]) <= len(first[1]) + 1
        shared.append(numbers([first, second]))
    whole = [numbers([batch]) for batch in whole]
    assert sorted(itertools.chain(*shared)) == sorted(itertools.chain(*whole))
    assert sum(batch not in whole for batch in shared) <= 2  # the last ones


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda pairs: pairs.steps_per_epoch(TOKENS, 1000),
            r"update of 1,000 batches .* pairs of sentences make 4\d batches of 60 t",
        ),
        (lambda pairs: pairs.batches(20), "cannot hold a pair of max_length=25"),
        (lambda pairs: pairs.batches(0), "tokens_per_batch"),
        (
            lambda pairs: pairs.steps_per_epoch(TOKENS, replicas=3),
            "cannot hold a pair of max_length=25 tokens for each of 3 replicas",
        ),
        (
            lambda pairs: TokenizedPairs(
                tf.data.Dataset.from_tensors({"source": "w1 w2", "target": "w1 w2"}),
                TOKENIZER,
                TOKENIZER,
                max_length=2,
            ),
            "None of the 1 pairs",
        ),
    ],
)
def test_impossible_batches_are_refused(pairs, make, message):
    with pytest.raises(kc.InputError, match=message):
        make(pairs)


def test_batches_of_few_shapes_are_full(pairs):
    few = make_pairs(few_shapes=True)
    batches = few.batches(TOKENS, seed=1).as_numpy_iterator()
    epoch = list(itertools.islice(batches, few.steps_per_epoch(TOKENS)))
    (plain,) = epochs_of(pairs, 1)
    assert {*numbers(epoch)} == {*numbers(plain)}
    shapes = set()
    for inputs, targets, weights in epoch:
        rows, longest = inputs["source"].shape
        assert targets.shape == weights.shape == (rows, longest)
        assert rows == max(TOKENS // longest, 1)
        shapes.add(longest)
    assert shapes <= {2, 4, 8, 12, 16, 24, 36}
    # The batch of the shortest alone has pairs of another.
    assert 0 <= len(numbers(epoch)) - len(few.lengths) < TOKENS // min(shapes)


@pytest.mark.parametrize(("group", "parts"), [(3, 1), (1, 2), (4, 2)])
def test_full_batches_make_groups_and_parts(group, parts):
    few = make_pairs(few_shapes=True)
    steps = few.steps_per_epoch(TOKENS, group, parts)
    sizes = []
    for part in range(parts):
        batches = few.batches(TOKENS, group=group, part=(part, parts))
        taken = list(itertools.islice(batches.as_numpy_iterator(), steps))
        sizes.append([tf.nest.map_structure(np.shape, batch) for batch in taken])
    assert all(x == sizes[0] for x in sizes)
