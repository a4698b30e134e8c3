import json

import numpy as np
import pytest
from conftest import random_images

import keras_caption as kc
from keras_caption.formats.caption_pairs import read_caption_pairs

CAPTIONS = ["w1 w2 w3", "w4", "w5 w5 w6 w7 w8", "w9 w1"]


def log_probabilities(captioner, images):
    """Per token, float `(3, captions)`, in float64 from the logits on."""
    ids = [captioner.vocabulary.encode(caption) for caption in CAPTIONS]
    tokens = np.array([row + [0] * (7 - len(row)) for row in ids])
    tokens = np.tile(tokens, (3, 1, 1))
    logits = np.array(captioner({**images, "tokens": tokens[..., :-1]}), "float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probs, tokens[..., 1:, None], axis=-1)[..., 0]
    valid = tokens[..., 1:] != 0
    return (chosen * valid).sum(-1) / valid.sum(-1)


def test_the_caption_of_the_greater_log_probability_per_token_is_preferred(
    captioner, rng
):
    images = {**random_images(rng, 3), "image_id": np.array([7, 8, 9])}
    batches = [
        {name: x[rows] for name, x in images.items()}
        for rows in (slice(0, 2), slice(2, 3))
    ]
    pairs = [
        {"image_id": i, "caption": a, "negative_caption": b, "kind": f"kind {k % 2}"}
        for k, (i, a, b) in enumerate(
            (i, a, b) for i in (8, 9) for a in CAPTIONS for b in CAPTIONS if a != b
        )
    ]
    unknown = {"caption": "unheard w1", "negative_caption": "unseen w1"}
    pairs.append({"image_id": 7, **unknown, "kind": "unknown"})
    pairs.append({"image_id": 1, **unknown, "kind": "of no image"})
    expected = {"kind 0": [], "kind 1": []}
    scores = log_probabilities(captioner, images)
    for pair in pairs[:-2]:
        ours, negative = (
            scores[pair["image_id"] - 7, CAPTIONS.index(pair[name])]
            for name in ("caption", "negative_caption")
        )
        expected[pair["kind"]].append(ours > negative)
    found = kc.evaluation.preference(captioner, batches, pairs)
    assert found["unknown"] == (0.5, 1)
    for kind, outcomes in expected.items():
        assert found[kind] == (pytest.approx(np.mean(outcomes)), 12)
        assert 0 < np.mean(outcomes) < 1
    assert found["all"] == (pytest.approx(0.5), 25)  # each pair in both orders
    assert list(found) == ["kind 0", "kind 1", "unknown", "all"]
    with pytest.raises(kc.InputError, match="None of the pairs"):
        kc.evaluation.preference(captioner, batches, pairs[-1:])


def test_a_file_of_pairs_is_validated(tmp_path):
    path = tmp_path / "pairs.json"
    pair = {"image_id": 3, "caption": "A dog.", "negative_caption": "A cat."}
    path.write_text(json.dumps({"pairs": [{**pair, "kind": "replace_obj", "more": 1}]}))
    assert read_caption_pairs(path) == [{**pair, "kind": "replace_obj"}]
    for content, message in (
        ({"pairs": []}, "at least 1 item"),
        ({"pairs": [pair]}, r"pairs\[0\]\.kind: Field required"),
        (
            {"pairs": [{**pair, "kind": "x", "caption": " "}]},
            r"\[0\].caption: .* one word",
        ),
    ):
        path.write_text(json.dumps(content))
        with pytest.raises(kc.InputError, match=message):
            read_caption_pairs(path)
