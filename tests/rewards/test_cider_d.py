import numpy as np
import pytest
import tensorflow as tf
from conftest import read_oracle
from keras import ops

import keras_caption as kc
from keras_caption.rewards import CiderD, DocumentFrequencies
from keras_caption.text import EOS, PAD


def words_of(row):
    return [str(token) for token in row if token != PAD]


def pycocoevalcap_scores(captions, references):
    """Scores of captions `(B, T)` by the standard metric, with tokens as words."""
    from pycocoevalcap.cider.cider import Cider

    truth = {
        i: [" ".join(words_of(row)) for row in rows if row.any()]
        for i, rows in enumerate(references)
    }
    generated = {i: [" ".join(words_of(row))] for i, row in enumerate(captions)}
    return Cider().compute_score(truth, generated)[1]


def random_captions(rng, shape, length=12, words=9):
    """Samples captions of 0 to `length` tokens, few of them distinct."""
    tokens = rng.integers(4, 4 + words, (*shape, length))
    lengths = rng.integers(0, length + 1, (*shape, 1))
    return np.where(np.arange(length) < lengths, tokens, PAD).astype("int32")


@pytest.mark.parametrize("method", ["plain", "any shape", "xla"])
def test_equals_pycocoevalcap(rng, method):
    images = 60
    references = random_captions(rng, (images, 7))
    for image in range(images):
        references[image, 1 + image % 7 :] = PAD  # one to seven references
        references[image, 0, 0] = 5  # the first is never empty
    captions = random_captions(rng, (images,))
    captions[0] = references[0, 0]
    captions[1] = PAD
    captions[2] = [7] + [PAD] * 11
    captions[3] = 7  # longer than its references, one token repeated
    captions[4] = [90, 91, 92, 93] + [PAD] * 8  # tokens that no reference has
    references[3, :, 6:] = PAD
    reward = CiderD.from_references(references, include_eos=False)
    if method == "any shape":
        signature = [tf.TensorSpec((None,) * rank, tf.int32) for rank in (2, 3)]
        reward = tf.function(reward, input_signature=signature)
    elif method == "xla":
        reward = tf.function(reward, jit_compile=True)
    scores = np.array(reward(captions, references))
    expected = pycocoevalcap_scores(captions, references)
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert scores.max() > 3  # the caption that is a reference


def test_eos_counts_only_with_include_eos(rng):
    references = random_captions(rng, (20, 5))
    references[:, :, 0] = 5
    captions = random_captions(rng, (20,), length=11)

    def with_eos(rows):
        rows = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, 1)])
        ends = (rows == PAD).argmax(axis=-1)
        np.put_along_axis(rows, ends[..., None], EOS, axis=-1)
        return rows

    without = pycocoevalcap_scores(captions, references)
    counted = pycocoevalcap_scores(with_eos(captions), with_eos(references))
    for include_eos, expected in ((False, without), (True, counted)):
        reward = CiderD.from_references(with_eos(references), include_eos)
        scores = np.array(reward(with_eos(captions), with_eos(references)))
        np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert not np.allclose(without, counted)


def test_several_captions_of_an_image(rng):
    references, captions = random_captions(rng, (6, 5)), random_captions(rng, (6, 3))
    reward = CiderD.from_references(references)
    together = np.array(reward(captions.reshape(18, -1), references)).reshape(6, 3)
    for c in range(3):
        np.testing.assert_allclose(
            together[:, c], reward(captions[:, c], references), atol=1e-6
        )


def test_scores_of_the_metrics_oracle():
    data = read_oracle("ciderd")

    def tokens(captions, eos):
        rows = np.pad(captions, [(0, 0)] * (captions.ndim - 1) + [(0, 1)])
        ends = (rows == PAD).argmax(axis=-1)
        np.put_along_axis(rows, ends[..., None], EOS if eos else PAD, axis=-1)
        return rows

    for eos, name in ((True, "eos"), (False, "noeos")):
        reward = CiderD.from_references(tokens(data["train_refs"], eos))
        scores = reward(tokens(data["hyps"], eos), tokens(data["refs"], eos))
        expected = data[f"scores_cached_df_{name}"]
        np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_counting_in_chunks_changes_nothing(rng, monkeypatch):
    references = random_captions(rng, (50, 3))
    whole = DocumentFrequencies.count(references)
    monkeypatch.setattr("keras_caption.rewards.document_frequencies.CHUNK", 7)
    chunked = DocumentFrequencies.count(references)
    np.testing.assert_array_equal(chunked.keys, whole.keys)
    np.testing.assert_array_equal(chunked.counts, whole.counts)


def test_document_frequencies_are_saved_with_their_vocabulary(
    rng, tmp_path, vocabulary
):
    references = random_captions(rng, (30, 5))
    counted = DocumentFrequencies.count(references)
    counted.save(tmp_path / "df.npz", vocabulary)
    loaded = DocumentFrequencies.load(tmp_path / "df.npz", vocabulary)
    captions = random_captions(rng, (30,))
    np.testing.assert_array_equal(
        CiderD(loaded)(captions, references), CiderD(counted)(captions, references)
    )
    other = kc.text.Vocabulary(["another"])
    with pytest.raises(kc.InputError, match="are of another vocabulary, of 34 words"):
        DocumentFrequencies.load(tmp_path / "df.npz", other)
    (tmp_path / "df.npz").write_bytes(b"PK no archive")
    with pytest.raises(kc.InputError, match=r"df\.npz cannot be read"):
        DocumentFrequencies.load(tmp_path / "df.npz", vocabulary)


def test_references_may_be_missing(rng):
    references = random_captions(rng, (2, 3))
    references[1] = PAD
    reward = CiderD.from_references(references)
    scores = ops.convert_to_numpy(reward(random_captions(rng, (2,)), references))
    assert scores[1] == 0
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ([[[5, 46_340]]], "from 0 to 46,339, received 5 to 46,340"),
        ([[[5, 2**32 + 5]]], "from 0 to 46,339, received 5 to 4,294,967,301"),
        ([[[5, -1]]], "from 0 to 46,339, received -1 to 5"),
        ([[[5.0, 6.0]]], r"received float64 of shape \(1, 1, 2\)"),
        ([[5, 6]], r"received int64 of shape \(1, 2\)"),
        ([[["a"]]], "received <U1"),
        ([[[5, 6], [5]]], "these are ragged"),
        ([[[PAD, 5]]], "PAD only after their last token"),
        (np.zeros((0, 5, 3), "int32"), "There are no references"),
    ],
)
def test_invalid_references_are_refused(references, message):
    with pytest.raises(kc.InputError, match=message):
        CiderD.from_references(references)


def test_tokens_without_keys_have_no_score(rng):
    references, captions = random_captions(rng, (4, 3)), random_captions(rng, (4, 2))
    reward = CiderD.from_references(references)
    expected = np.array(reward(captions.reshape(8, -1), references))
    captions[1, 0, 3], references[2, 1, 0], captions[3, 1, 0] = 46_340, 2**30, -1
    scores = np.array(reward(captions.reshape(8, -1), references))
    wrong = [2, 4, 5, 7]
    assert np.isnan(scores[wrong]).all()
    np.testing.assert_array_equal(np.delete(scores, wrong), np.delete(expected, wrong))


def test_invalid_tokens_are_refused(rng):
    references, captions = random_captions(rng, (2, 3)), random_captions(rng, (2,))
    reward = CiderD.from_references(references)
    for wrong in (captions.astype("float32"), captions[0], references):
        with pytest.raises(kc.InputError, match="`captions` must be integer tokens"):
            reward(wrong, references)
    with pytest.raises(kc.InputError, match="`references` must be integer tokens"):
        reward(captions, captions)
