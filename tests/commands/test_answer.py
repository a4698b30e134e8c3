"""The command `answer`, as a person runs it."""

import gzip

import keras
import numpy as np
import pytest
import region_files
from conftest import random_boxes, tiny
from PIL import Image

import keras_caption as kc
from keras_caption.commands import main

ANSWERS = ["yes", "no", "two", "red"]
TOKENIZER = kc.text.QuestionTokenizer(["is", "it", "red"])
QUESTIONS = ["is it, red?", "", "It?"]


def make(folder, **more):
    keras.utils.set_random_seed(0)
    sizes = tiny("mcan", num_layers=1, pooling_dim=8, fusion_dim=12, **more)
    model = kc.models.create("mcan", answers=ANSWERS, question=TOKENIZER, **sizes)
    model.save(folder / "best.keras")
    return model


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["answer", *map(str, arguments)])
    return end.value.code, *capsys.readouterr()


def test_questions_of_a_file_are_answered(tmp_path, capsys, rng):
    model = make(tmp_path)
    features = {
        i: (rng.normal(size=(n, 6)).astype("float32"), random_boxes(rng, n))
        for i, n in ((7, 5), (8, 2))
    }
    region_files.write_tsv(tmp_path / "regions.tsv", features)
    lines = ["image,question", '7,"is it, red?"', "8,", "9,red", "7,It?"]
    with gzip.open(tmp_path / "questions.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    options = ["--questions", tmp_path / "questions.csv.gz"]
    options += ["--regions", tmp_path / "regions.tsv"]
    path = tmp_path / "answers.txt"
    code, _, errors = call(capsys, tmp_path, *options, "--output", path)
    assert code == 1
    assert "regions.tsv has no image '9'" in errors
    best = [
        model.answer_n_best({"regions": features[i][0][None]}, [question], 2)[0]
        for i, question in zip((7, 8, 7), QUESTIONS, strict=True)
    ]
    first = [row[0][0] for row in best]
    assert path.read_text().splitlines() == [*first[:2], "", first[2]]
    whole = path.read_bytes()
    code, _, _ = call(capsys, tmp_path, *options, "--output", path)
    assert "answers.txt exists already and is not replaced" in code
    assert path.read_bytes() == whole
    code, _, _ = call(capsys, tmp_path, *options, "--n_best", 5)
    assert "knows 4 answers, not 5" in code
    _, printed, _ = call(capsys, tmp_path, *options, "--n_best", 2)
    rows = [line.split("\t") for line in printed.splitlines()]
    assert [row[0] for row in rows] == list("112244")
    assert [row[2] for row in rows] == [pair[0] for row in best for pair in row]
    scores = [pair[1] for row in best for pair in row]
    np.testing.assert_allclose([float(row[1]) for row in rows], scores, atol=1e-4)

    code, _, _ = call(capsys, tmp_path, "photo.jpg", "is it?")
    assert "no extractor of photos: --regions should name features" in code
    (tmp_path / "q.csv").write_text("7,red,x\n")
    code, _, _ = call(capsys, tmp_path, "--questions", tmp_path / "q.csv")
    assert "q.csv, line 1, has 3 columns; it should have two" in code
    code, _, _ = call(capsys, tmp_path, "photo.jpg")
    assert "give a photo and questions about it, or --questions" in code


def test_questions_about_a_photo_are_answered(tmp_path, capsys, rng):
    extractor = kc.features.Extractor(
        image_size=32, levels=(1, 2), arguments={"alpha": 0.25}
    )
    dim = extractor.grid_shape[-1]
    model = make(tmp_path, extractor=extractor, region_dim=dim)
    pixels = rng.integers(0, 256, (40, 50, 3)).astype("uint8")
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    code, printed, _ = call(capsys, tmp_path, path, *QUESTIONS)
    assert code == 0
    assert printed.splitlines() == model.answer([path] * 3, QUESTIONS)
