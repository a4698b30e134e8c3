"""The command `caption` on a folder of photos, as a person runs it."""

import csv
import json

import keras
import pytest
import tensorflow as tf
from conftest import PROJECT, data_folder
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc
from keras_caption.commands import main


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model of objects, a detector, and photos, one of them broken."""
    folder = tmp_path_factory.mktemp("caption")
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    vocabulary = kc.text.Vocabulary(["dog", "a", "two"])
    model = kc.models.create("ngsan", vocabulary=vocabulary, region_dim=80, **sizes)
    model.save(folder / "model.keras")
    white_yolox(image_size=None).save(folder / "yolox.keras")
    (folder / "photos" / "more").mkdir(parents=True)
    for i in range(9):
        pixels = photo(416, 208, [(i, i), (30, 20)][: i % 3])
        Image.fromarray(pixels).save(folder / "photos" / f"{i}.png")
    Image.fromarray(photo(30, 50, [])).save(folder / "photos" / "more" / "<b>.jpg")
    (folder / "photos" / "broken.jpg").write_bytes(b"no photo")
    (folder / "empty").mkdir()
    return folder


def call(capsys, folder, *arguments, detector="yolox.keras"):
    with pytest.raises(SystemExit) as end:
        main(
            [
                "caption",
                *map(str, arguments),
                f"--model={folder / 'model.keras'}",
                f"--detector={folder / detector}",
                "--max_length=4",
            ]
        )
    return end.value.code, *capsys.readouterr()


def test_a_folder_is_captioned_and_continued(files, tmp_path, capsys):
    outputs = [tmp_path / name for name in ("c.csv", "c.jsonl", "c.html")]
    flags = [f"--output={path}" for path in outputs]
    code, printed, errors = call(capsys, files, files / "photos", *flags)
    assert code == 1
    assert "Captioned 10 of 11 files; 1 cannot be read" in printed
    assert errors.count("error: ") == 1
    assert "broken.jpg is not an image" in errors
    assert "11/11 files (100%)" in errors
    rows = {}
    for line in outputs[1].read_text().splitlines():
        row = json.loads(line)
        rows[row["photo"]] = row
    assert len(rows) == 10
    two = rows[str(files / "photos" / "2.png")]
    boxes = sorted(item["box"] for item in two["objects"])
    expected = [[2 / 26, 2 / 52, 3 / 26, 3 / 52], [20 / 26, 30 / 52, 21 / 26, 31 / 52]]
    for box, place in zip(boxes, expected, strict=True):
        assert box == pytest.approx(place, abs=1e-3)
    model = kc.models.load(files / "model.keras")
    model.extractor = kc.features.load_detector(str(files / "yolox.keras"))
    assert [two["caption"]] == model.generate([two["photo"]], max_length=4)
    with open(outputs[0], newline="") as file:
        table = {row["photo"]: row for row in csv.DictReader(file)}
    assert table.keys() == rows.keys()
    assert table[two["photo"]]["caption"] == two["caption"]
    assert table[two["photo"]]["objects"].count("dog 0.9") == 2
    sheet = outputs[2].read_text()
    assert sheet.count("<img ") == 10
    assert "more/&lt;b&gt;.jpg" in sheet

    whole = [path.read_bytes() for path in outputs]
    for path, content in zip(outputs, whole, strict=True):  # killed while writing
        path.write_bytes(content[: len(content) * 2 // 3])
    code, printed, _ = call(capsys, files, files / "photos", *flags)
    assert code == 1
    assert "of them before" in printed
    for path, content in zip(outputs, whole, strict=True):
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())


def test_the_model_of_the_repository_captions_what_is_detected(tmp_path):
    model = kc.models.load(PROJECT / "saved_models" / "ngsan_coco.keras")
    assert model.input_specs["regions"].shape[-1] == len(kc.features.CATEGORIES)
    model.extractor = kc.features.Yolox(white_yolox(), image_size=64)
    pixels = photo(64, 48, [(1, 1)])
    [caption] = model.generate([pixels], beam_size=2)
    assert "dog" in caption.split()
    kc.serving.export(model, tmp_path / "1", beam_size=2)
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["photos"]
    found = served(image_bytes=tf.constant([tf.io.encode_png(pixels).numpy(), b""]))
    assert found["captions"].numpy().tolist() == [caption.encode(), b""]


def test_a_real_photo_is_captioned_without_naming_a_model(capsys):
    detector = data_folder("yolox_nano") / "yolox_nano.keras"
    path = data_folder("coco_mini") / "val2017" / "000000463690.jpg"
    with pytest.raises(SystemExit) as end:
        main(["caption", str(path), f"--detector={detector}"])
    assert end.value.code == 0
    caption = capsys.readouterr().out.removeprefix(f"{path}: ").rpartition(" (")[0]
    assert len(caption.split()) > 3


def test_mistakes_are_one_sentence(files, tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    (tmp_path / "mine.html").write_text("<p>mine")
    first = files / "photos" / "0.png"
    for arguments, message in [
        ([files / "empty"], f"There is no image in {files / 'empty'}"),
        ([tmp_path / "*.jpg"], "No file is called"),
        ([files / "empt?"], "No file is called"),  # but a folder
        ([first, f"--output={tmp_path / 'mine.csv'}"], "is another file than"),
        ([first, f"--output={tmp_path / 'mine.html'}"], "is another file than"),
        ([first, f"--output={tmp_path / 'c.txt'}"], "should end in .csv, .jsonl"),
        ([first, "--confidence=30"], "--confidence: 30 is not between 0 and 1"),
        ([first, "--confidence=nan"], "--confidence: nan is not between 0 and 1"),
    ]:
        code, printed, _ = call(capsys, files, *arguments)
        assert message in code
        assert not printed
    assert (tmp_path / "mine.csv").read_text() == "a,b\n1,2\n"
    assert not (tmp_path / "c.txt").exists()
    code, _, _ = call(capsys, files, first, detector="none.keras")
    assert "There is no saved model" in code
    code, printed, errors = call(capsys, files, first, files / "empty")
    assert code == 1
    assert printed.startswith(f"{first}: ")
    assert "There is no image in" in errors
