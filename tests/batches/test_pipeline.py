import itertools

import coco_files
import numpy as np
import pytest

import keras_caption as kc
from keras_caption.text import BOS, EOS, PAD


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coco")
    coco_files.write(folder, *coco_files.contents(images=40))
    builder = kc.datasets.load("coco_objects", folder, data_dir=folder / "tfds")
    return kc.datasets.read(builder, "train")


@pytest.fixture(scope="module")
def vocabulary(examples):
    captions = itertools.chain(*kc.datasets.references(examples).values())
    return kc.text.Vocabulary.build(captions, min_count=1)


def take(examples, vocabulary, count, first_epoch=0, **options):
    """The inputs of some batches, with all their tokens."""
    batches = kc.batches.train_batches(
        *(examples, vocabulary, 4, kc.batches.BatchOptions(**options)),
        first_epoch=first_epoch,
    )
    taken = list(batches.take(count).as_numpy_iterator())
    for inputs, targets, weights in taken:
        np.testing.assert_array_equal(targets[..., :-1], inputs["tokens"][..., 1:])
        np.testing.assert_array_equal(weights, targets != PAD)
        inputs["tokens"] = np.concatenate([inputs["tokens"][..., :1], targets], -1)
    return [inputs for inputs, _, _ in taken]


def test_batches_hold_the_captions_and_regions_of_their_images(examples, vocabulary):
    truth = {
        tuple(sorted(map(vocabulary.decode, map(vocabulary.encode, texts))))
        for texts in kc.datasets.references(examples).values()
    }
    for batch in take(examples, vocabulary, 5):
        assert batch["tokens"].dtype == "int32"
        assert batch["tokens"].shape[:2] == (4, 5)
        assert (batch["tokens"][:, :, 0] == BOS).all()
        assert ((batch["tokens"] == EOS).sum(-1) == 1).all()
        assert (batch["tokens"][:, :, -1] != PAD).any()
        for captions in batch["tokens"]:
            assert tuple(sorted(map(vocabulary.decode, captions))) in truth
        valid = batch["region_mask"]
        assert (batch["regions"].sum(-1)[valid] == 1).all()
        assert not batch["regions"][~valid].any()
        assert not batch["boxes"][~valid].any()
        assert valid.sum(1).max() == valid.shape[1]


@pytest.mark.parametrize("cache", [True, False])
def test_every_epoch_shows_every_image_once_in_its_own_order(
    examples, vocabulary, cache
):
    per_epoch = len(examples) // 4
    first, second = (
        take(examples, vocabulary, per_epoch, first_epoch=epoch, cache=cache)
        for epoch in (0, 1)
    )

    def boxes(batches):
        return [row[0].tobytes() for b in batches for row in b["boxes"]]

    assert len(set(boxes(first))) == 4 * per_epoch
    assert set(boxes(first)) == set(boxes(second))
    assert boxes(first) != boxes(second)


def test_resumed_epochs_are_those_of_an_uninterrupted_run(examples, vocabulary):
    per_epoch = len(examples) // 4
    whole = take(examples, vocabulary, 3 * per_epoch, seed=5)
    resumed = take(examples, vocabulary, per_epoch, seed=5, first_epoch=2)
    for a, b in zip(whole[2 * per_epoch :], resumed, strict=True):
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
    other = take(examples, vocabulary, per_epoch, seed=6, first_epoch=2)
    assert any(
        a["boxes"].tobytes() != b["boxes"].tobytes()
        for a, b in zip(resumed, other, strict=True)
    )


def test_captions_are_cut_and_rotated(examples, vocabulary):
    epochs = [
        take(examples, vocabulary, 1, captions_per_image=2, max_words=3, first_epoch=e)
        for e in range(2)
    ]
    for (batch,) in epochs:
        assert batch["tokens"].shape == (4, 2, 5)


def test_too_few_examples_for_a_batch_are_refused(examples, vocabulary):
    with pytest.raises(kc.InputError, match="3 examples do not make a batch of 4"):
        kc.batches.train_batches(examples.take(3), vocabulary, 4)


def test_arguments_of_another_kind_are_named(examples, vocabulary):
    data = kc.datasets.from_arrays({"regions": np.zeros((1, 2, 3))}, [["A dog."]])
    batches = kc.batches
    for make, message in (
        (lambda: batches.train_batches(data, vocabulary, 1), "Received: ArrayDataset"),
        (
            lambda: batches.image_batches(data, 1),
            "as that of `keras_caption.datasets.r",
        ),
        (lambda: batches.reference_batches(data, vocabulary, 1), "Examples must be a"),
        (lambda: batches.reference_tokens(data, vocabulary), "Examples must be a"),
        (lambda: batches.reference_tokens(examples, ["a"]), "Tokenizer`. Received: li"),
        (lambda: batches.image_batches(examples, 0), "`batch_size`: Input should be"),
        (lambda: batches.reference_batches(examples, vocabulary, 0), "`batch_size`: I"),
        (
            lambda: batches.train_batches(examples, vocabulary, 1, {"seed": 1}),
            "`options`: Input should be an instance of BatchOptions",
        ),
        (
            lambda: batches.train_batches(examples, vocabulary, 1, keep=["box"]),
            "The examples have no 'box'. Did you mean boxes",
        ),
    ):
        with pytest.raises(kc.InputError, match=message):
            make()


def test_batches_of_few_shapes_hold_the_same(examples, vocabulary):
    plain = take(examples, vocabulary, 5, max_words=9)
    padded = take(examples, vocabulary, 5, max_words=9, few_shapes=True)
    for batch, wider in zip(plain, padded, strict=True):
        for name, values in batch.items():
            inner = tuple(slice(size) for size in values.shape)
            np.testing.assert_array_equal(wider[name][inner], values)
            assert np.count_nonzero(wider[name]) == np.count_nonzero(values)
        assert wider["tokens"].shape == (4, 5, 9 + 2)
        assert wider["references"].shape == (4, 8, 9 + 1)
        assert wider["regions"].shape[1] in (1, 2, 4, 8)
    batches = kc.batches.reference_batches(
        examples.take(5), vocabulary, 4, max_words=9, few_shapes=True
    )
    *_, (inputs, targets, weights) = batches
    assert len(inputs["regions"]) == 4  # of one image
    assert not weights[1:].numpy().any()
    assert not targets[1:].numpy().any()
