"""The command `answer`, as a person runs it."""

import gzip
import re

import keras
import numpy as np
import pytest
import region_files
from conftest import PROJECT, random_boxes, tiny
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.commands import main

ANSWERS = ["yes", "no", "two", "red"]
TOKENIZER = kc.text.QuestionTokenizer(["is", "it", "red"])
QUESTIONS = ["is it, red?", "", "It?"]


def make(folder, question=TOKENIZER, **more):
    keras.utils.set_random_seed(0)
    sizes = tiny("mcan", num_layers=1, pooling_dim=8, fusion_dim=12, **more)
    model = kc.models.create("mcan", answers=ANSWERS, question=question, **sizes)
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
    options = ["--model", tmp_path, "--questions", tmp_path / "questions.csv.gz"]
    options += ["--regions", tmp_path / "regions.tsv"]
    path = tmp_path / "answers.txt"
    code, _, errors = call(capsys, *options, "--output", path)
    assert code == 1
    assert "regions.tsv has no image '9'" in errors
    best = [
        model.answer_n_best({"regions": features[i][0][None]}, [question], 2)[0]
        for i, question in zip((7, 8, 7), QUESTIONS, strict=True)
    ]
    first = [f"{row[0][0]} ({row[0][1]:.0%})" for row in best]
    assert path.read_text().splitlines() == [*first[:2], "", first[2]]
    whole = path.read_bytes()
    code, _, _ = call(capsys, *options, "--output", path)
    assert "answers.txt exists already and is not replaced" in code
    assert path.read_bytes() == whole
    code, _, _ = call(capsys, *options, "--n_best", 5)
    assert "knows 4 answers, not 5" in code
    _, printed, _ = call(capsys, *options, "--n_best", 2)
    rows = [line.split("\t") for line in printed.splitlines()]
    assert [row[0] for row in rows] == list("112244")
    assert [row[2] for row in rows] == [pair[0] for row in best for pair in row]
    scores = [pair[1] for row in best for pair in row]
    np.testing.assert_allclose([float(row[1]) for row in rows], scores, atol=1e-4)

    of_model = "--model", tmp_path
    code, _, _ = call(capsys, "--model", "unread", "photo.jpg", "is it?")
    assert code == "error: There is no file photo.jpg."
    code, _, _ = call(capsys, *of_model, path, "is it?")
    assert "has no extractor" in code
    assert "--regions should name features of the images" in code
    (tmp_path / "q.csv").write_text("7,red,x\n")
    code, _, _ = call(capsys, *of_model, "--questions", tmp_path / "q.csv")
    assert "q.csv, line 1, has 3 columns; it should have two" in code
    code, _, _ = call(capsys, *of_model, *options[2:], "--detector", "x.keras")
    assert "--regions names features, which need no --detector" in code
    code, _, _ = call(capsys, *of_model, "photo.jpg")
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
    code, printed, _ = call(capsys, "--model", tmp_path, path, *QUESTIONS)
    assert code == 0
    best = model.answer_n_best([path] * 3, QUESTIONS, 1)
    assert printed.splitlines() == [f"{a} ({p:.0%})" for [(a, p)] in best]
    code, _, _ = call(capsys, "--model", tmp_path, path, "?", "--detector=x.keras")
    assert "extracts features of photos by itself: it takes no detector" in code


@pytest.mark.parametrize("coloured", [False, True])
def test_a_detector_finds_what_is_asked_about(tmp_path, capsys, coloured):
    white_yolox(image_size=None).save(tmp_path / "yolox.keras")
    Image.fromarray(photo(416, 208, [(3, 4), (9, 9)])).save(tmp_path / "photo.png")
    detector = kc.objects.load_detector(
        str(tmp_path / "yolox.keras"), coloured=coloured
    )
    reads = list(detector.dimensions)
    model = make(tmp_path, categories=reads, region_dim=len(reads), threshold=0.25)
    inputs = detector(detector.to_pixels([tmp_path / "photo.png"] * 3))
    best = [row[0] for row in model.answer_n_best(inputs, QUESTIONS, 1)]
    model.threshold = sum(sorted(p for _, p in best)[:2]) / 2  # the least is below
    model.save(tmp_path / "best.keras")
    code, printed, _ = call(
        *(capsys, tmp_path / "photo.png", *QUESTIONS, "--model", tmp_path),
        *("--detector", tmp_path / "yolox.keras"),
    )
    assert code == 0
    assert printed.splitlines() == [
        f"{answer} ({p:.0%}){'' if p >= model.threshold else ' (unsure)'}"
        for answer, p in best
    ]
    assert printed.count("unsure") == 1


def test_the_model_in_the_box_answers_about_a_photo(tmp_path, capsys):
    white_yolox(image_size=None).save(tmp_path / "yolox.keras")
    Image.fromarray(photo(416, 416, [(30, 40)])).save(tmp_path / "photo.png")
    questions = ["What colour is the dog?", "Why?"]
    of_presence = ["Is there a giraffe?", "Do you see a dog here?"]
    code, printed, _ = call(
        *(capsys, tmp_path / "photo.png", *questions, "Is it raining?", *of_presence),
        *("--detector", tmp_path / "yolox.keras"),
    )
    assert code == 0
    *lines, raining, giraffe, dog = printed.splitlines()
    assert raining.endswith("(unsure)")  # the model knows nothing of yes and no
    assert re.fullmatch(r"no \(8\d%\)", giraffe)
    assert dog == "yes (100%)"
    assert all(re.fullmatch(r"[\w ]+ \(\d+%\)( \(unsure\))?", line) for line in lines)
    assert [line.endswith(" (unsure)") for line in lines] == [False, True]
    code, printed, _ = call(
        *(capsys, tmp_path / "photo.png", *questions, "--n_best=2"),
        *("--detector", tmp_path / "yolox.keras"),
    )
    rows = [line.split("\t") for line in printed.splitlines()]
    model = kc.models.load(PROJECT / "saved_models" / "mcan_photos.keras")
    assert model.threshold["yes/no"] == 1.0
    assert model.extractor is None
    for line, (_, probability, answer) in zip(lines, rows[::2], strict=True):
        assert line.startswith(f"{answer} ({float(probability):.0%})")
        unsure = float(probability) < model.threshold["other"]
        assert line.endswith("(unsure)") == unsure


def test_objects_are_counted_and_contradict(tmp_path, capsys):
    white_yolox(image_size=None).save(tmp_path / "yolox.keras")
    for name, cells in ("two", [(3, 4), (9, 9)]), ("none", []):
        Image.fromarray(photo(416, 208, cells)).save(tmp_path / f"{name}.png")
    detector = kc.objects.load_detector(str(tmp_path / "yolox.keras"))
    found = detector(detector.to_pixels([tmp_path / "two.png"]))
    [name, _] = [x["category"] for x in detector.objects_of(found, 0)]
    words = kc.text.QuestionTokenizer(["how", "many", "what", "is", "it", f"{name}s"])
    make(tmp_path, words, categories=list(detector.dimensions), region_dim=80)
    model = kc.models.load(tmp_path / "best.keras")
    predictor = kc.serving.Predictor(model, str(tmp_path / "yolox.keras"))
    content = (tmp_path / "two.png").read_bytes()

    def ask(question, answers, **more):
        predictor.model.members[0].answers = answers
        [answer] = predictor([{"photo": content, "question": question}], **more)
        assert answer.unsure or not answer.doubt
        return answer.text, answer.unsure

    for answer in "two", "2":  # whatever is most probable
        assert ask(f"How many {name}s?", [answer] * 4) == (answer, False)
    assert ask(f"How many {name}s?", ["3"] * 4) == ("2", True)
    assert ask("What is it?", ["zebra"] * 4) == ("zebra", True)
    # Of each answer, the model gives the opposite; it knows no giraffes.
    assert ask(f"Is there a {name}?", ["no"] * 4) == ("yes", False)
    assert ask("Do you see any giraffes here?", ["yes"] * 4) == ("no", True)
    assert ask("How many giraffes are there?", ["2"] * 4) == ("2", True)
    assert ask("Is the giraffe red?", ["yes"] * 4) == ("yes", True)
    assert ask("Is the giraffe red?", ["no"] * 4) == ("no", False)
    predictor.model.members[0].recall = {"giraffe": 0.9}
    assert ask("Is there a giraffe?", ["yes"] * 4) == ("no", False)
    record = {"photo": content, "question": "Is this a giraffe?"}
    predictor.model.members[0].answers = ["yes", "red", "no", "two"]
    [answer] = predictor([record], n=4)
    assert [text for text, _ in answer.best[:2]] == ["no", "yes"]
    assert {text for text, _ in answer.best[2:]} == {"red", "two"}
    assert (answer.text, answer.confidence) == answer.best[0]
    assert answer.confidence == pytest.approx(1 / 1.1)
    flags = "--model", tmp_path, "--detector", tmp_path / "yolox.keras"
    code, printed, _ = call(capsys, *flags, tmp_path / "two.png", "Any giraffes?")
    assert (code, printed) == (0, "no (50%) (unsure: what is detected is not enough)\n")
    code, printed, _ = call(capsys, *flags, tmp_path / "none.png", "is it?")
    assert (code, printed) == (0, "nothing detected that it knows\n")
