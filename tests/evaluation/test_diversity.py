"""Diversity of several captions of an image, and the domains of nocaps."""

import json

import numpy as np
import pytest

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.evaluation import caption_diversity, metric, metrics
from keras_caption.evaluation.caption_diversity import inverse_frequencies, self_cider

REFERENCES = {
    1: ["A dog runs on grass.", "A brown dog plays."],
    2: ["Two cats sleep on a bed.", "Cats sleeping."],
    3: ["A bus on a street.", "A red bus stops."],
}
SAME = {i: ["a dog on grass"] * 3 for i in REFERENCES}
OTHER = {
    i: ["a dog runs fast", "two cats sleep there", "red bus it stops"] for i in SAME
}


def plain_words(captions):
    return {i: [x.lower().strip(".") for x in texts] for i, texts in captions.items()}


def test_equal_captions_have_no_diversity_and_others_have_all(capsys):
    found = kc.evaluation.diversity(SAME, REFERENCES)
    assert found["mBLEU-4"] == pytest.approx(1)
    assert found["Self-CIDEr"] == pytest.approx(0, abs=1e-6)
    assert found["Div-1"] == pytest.approx(4 / 12)
    assert found["Div-2"] == pytest.approx(3 / 12)
    found = kc.evaluation.diversity(OTHER, REFERENCES)
    assert found["mBLEU-4"] == pytest.approx(0, abs=1e-6)
    assert found["Self-CIDEr"] == pytest.approx(1)
    assert found["Div-1"] == pytest.approx(1)
    assert found["Div-2"] == pytest.approx(9 / 12)
    with pytest.raises(kc.InputError, match="image 2 has 1"):
        kc.evaluation.diversity({1: ["a", "b"], 2: ["a"]}, REFERENCES)
    with pytest.raises(kc.InputError, match="image 1 has 2, image 2 has 3"):
        kc.evaluation.diversity({1: ["a", "b"], 2: ["a", "b", "c"]}, REFERENCES)
    with pytest.raises(kc.InputError, match=r"\[1\]: 'str' instances are not"):
        kc.evaluation.diversity({1: "a dog"}, REFERENCES)


def test_self_cider_is_that_of_the_singular_values():
    """Wang and Chan's equations: the values of the matrix of tf-idf vectors."""
    weights = inverse_frequencies(plain_words(REFERENCES))
    captions = ["a dog runs on grass", "a dog on a street", "a red bus on grass here"]
    columns = []
    for text in captions:
        words, column = text.split(), []
        for n in range(1, 5):
            grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
            known = sorted(
                {
                    tuple(t.split()[k : k + n])
                    for t in captions
                    for k in range(len(t.split()) - n + 1)
                }
            )
            part = [grams.count(g) * weights.get(g, np.log(3)) for g in known]
            column += list(np.array(part) / np.linalg.norm(part) / 2)
        columns.append(column)
    values = np.linalg.svd(np.array(columns), compute_uv=False)
    expected = -np.log(values[0] / values.sum()) / np.log(3)
    assert self_cider(captions, weights, np.log(3)) == pytest.approx(expected)


def test_the_command_scores_domains_and_chosen_metrics(tmp_path, monkeypatch, capsys):
    domains = "in-domain", "near-domain", "out-domain"
    images = [
        {"id": i, "open_images_id": f"{i:016x}", "file_name": f"{i}.jpg", "domain": x}
        for i, x in zip(REFERENCES, domains, strict=True)
    ]
    annotations = [
        {"image_id": i, "id": 9, "caption": text}
        for i, x in REFERENCES.items()
        for text in x
    ]
    nocaps, results = tmp_path / "nocaps_val.json", tmp_path / "results.json"
    nocaps.write_text(json.dumps({"images": images, "annotations": annotations}))
    rows = [{"image_id": i, "caption": x} for i, xs in OTHER.items() for x in xs]
    results.write_text(json.dumps(rows))
    monkeypatch.setattr(metric, "meteor", lambda references, captions: 0.5)
    for module in metrics, caption_diversity:
        monkeypatch.setattr(module, "tokenize", plain_words)
    with pytest.raises(SystemExit, match=r"^$"):
        main(["score", str(nocaps), str(results), "--metrics=BLEU-1,Div-1,mBLEU-4"])
    table = [
        line.split("|")[1:-1]
        for line in capsys.readouterr().out.splitlines()
        if "|" in line
    ]
    names = [row[0].strip() for row in table]
    assert names[2:] == [*(f"nocaps_val, {x}" for x in domains), "nocaps_val"]
    assert [cell.strip() for cell in table[0][1:]] == ["BLEU-1", "Div-1", "mBLEU-4"]
    assert [float(row[2]) for row in table[2:]] == [100.0] * 4
    bleu = [float(row[1]) for row in table[2:]]
    assert bleu[0] > bleu[1]
    rows = [
        {"image_id": i, "caption": "dog " * length}
        for i, length in zip(REFERENCES, (9, 10, 26), strict=True)
    ]
    results.write_text(json.dumps(rows))
    command = ["score", str(nocaps), str(results), "--metrics=BLEU-1", "--by_length"]
    with pytest.raises(SystemExit, match=r"^$"):
        main(command)
    names = [x.split("|")[1] for x in capsys.readouterr().out.splitlines() if "|" in x]
    lengths = "1-9 words (1)", "10-14 words (1)", "26 or more words (1)"
    labels = [*(f"nocaps_val, {x}" for x in lengths), "nocaps_val"]
    assert [name.strip() for name in names[2:]] == labels
    with pytest.raises(SystemExit, match=r"no metric 'CIDEr'\. Did you mean CIDEr-D"):
        main(["score", str(nocaps), str(results), "--metrics=CIDEr"])
    with pytest.raises(SystemExit, match=r"CLIPScore needs a preset of CLIP"):
        main(["score", str(nocaps), str(results), "--metrics=CLIPScore"])
