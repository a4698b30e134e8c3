"""Text as people's editors and spreadsheets save it, in every reader of text."""

import gzip
import io
import json

import pytest

import keras_caption as kc
from keras_caption.formats import text_lines
from keras_caption.formats.caption_rows import read_caption_rows
from keras_caption.formats.caption_texts import read_caption_texts
from keras_caption.formats.glove import read_glove
from keras_caption.formats.json_files import read_json
from keras_caption.formats.question_rows import read_question_rows
from keras_caption.formats.text_lines import lines, lines_of

SAVED = {
    "plain": b"a dog\n\n two\n",
    "a mark of the byte order": b"\xef\xbb\xbfa dog\n\n two\n",
    "Windows": b"\xef\xbb\xbfa dog\r\n\r\n two\r\n",
    "an old Mac": b"a dog\r\r two\r",
    "no end of the last line": b"a dog\n\n two",
    "an old Mac, no end of the last line": b"a dog\r\r two",
    "a CR within a line": b"a\rdog\n\n\rtwo\n",
}


@pytest.mark.parametrize("content", SAVED.values(), ids=SAVED)
def test_lines_are_the_same_however_they_were_saved(content, tmp_path):
    (tmp_path / "text").write_bytes(content)
    (tmp_path / "text.gz").write_bytes(gzip.compress(content))
    for path in tmp_path.iterdir():
        assert list(lines(path)) == ["a dog", "", " two"]
    assert list(lines_of(lambda: io.BytesIO(content), "it")) == ["a dog", "", " two"]


def test_a_mark_within_text_and_other_separators_stay():
    content = "\ufeffa\u2028b\x85\x0bc\x0c\n\ufeffd\n".encode()
    found = lines_of(lambda: io.BytesIO(content), "it")
    assert list(found) == ["a\u2028b\x85\x0bc\x0c", "\ufeffd"]


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_long_lines_are_read_up_to_the_limit(end, monkeypatch):
    monkeypatch.setattr(text_lines, "LINE_BYTES", 8)
    text = ["1234567", "1", "", "123456", "1234567"]
    content = end.join([line.encode() for line in text]) + end
    assert list(lines_of(lambda: io.BytesIO(content), "it")) == text
    content += b"123456789" + end
    with pytest.raises(kc.InputError, match="it, line 6, is longer than 8 bytes"):
        list(lines_of(lambda: io.BytesIO(content), "it"))


QUESTIONS = {
    "plain": b"image,question\n7,is it red?\n8,is it red?\n",
    "bom": b"\xef\xbb\xbfimage,question\r\n7,is it red?\r\n8,is it red?\r\n",
    "break": b'image,question\n7,is it red?\n8,"is it\nred?"\n',
    "break in Windows": b'image,question\r\n7,is it red?\r\n8,"is it \r\n\r\nred?"\r\n',
    "blank": b"image,question\n7,is it red?\n8,is it red?\n\n",
    "blank cells": b"image,question\n7,is it red?\n , \n8,is it red?\n,\n",
    "spaced": b"Image, Question\n7,is it red?\n8,is it red?\n",
    "spaced cells": b' 7 , is it red?\n8, "is it red?" \n',
    "old Mac": b"image,question\r7,is it red?\r8,is it red?\r",
    "blank first": b"\xef\xbb\xbf\n,\nimage,question\n7,is it red?\n8,is it red?\n",
    "semicolons": b"image;question\n7;is it red?\n8;is it red?\n",
    "Excel": b"\xef\xbb\xbfsep=;\r\nimage;question\r\n7;is it red?\r\n8;is it red?\r\n",
    "another header": b"photo;question\n7;is it red?\n8;is it red?\n",
    "reversed": b"question,image\nis it red?,7\nis it red?,8\n",
    "no header": b"7,is it red?\n8,is it red?",
    "quoted header": b'\xef\xbb\xbf"image","question"\n7,is it red?\n8,is it red?\n',
}


@pytest.mark.parametrize("content", QUESTIONS.values(), ids=QUESTIONS)
def test_csv_is_the_same_however_it_was_saved(content, tmp_path):
    path = tmp_path / "questions.csv"
    path.write_bytes(content)
    assert read_question_rows(path) == [("7", "is it red?"), ("8", "is it red?")]
    if b"sti" in content:  # a header
        path.write_bytes(content.lower().replace(b"question", b"caption"))
        photos, _ = read_caption_rows(path)
        found = {photo.file_name: photo.captions for photo in photos}
        assert found == {"7": ["is it red?"], "8": ["is it red?"]}


ASKED = [{"image": "7", "question": "is it red?"}]
ASKED += [{"question": "is it red?", "question_id": 1, "image_id": 8, "image": "8"}]
OF_JSON = {
    "list": json.dumps(ASKED, indent=1),
    "one line": json.dumps(ASKED) + "\n",
    "VQA": json.dumps({"info": {}, "questions": ASKED}),
    "GQA": json.dumps(
        {i: {**x, "imageId": x.pop("image")} for i, x in enumerate(map(dict, ASKED))}
    ),
    "lines": "\n" + "\n\n".join(map(json.dumps, ASKED)),
}


@pytest.mark.parametrize("name", OF_JSON)
def test_questions_are_read_from_json_of_any_layout(name, tmp_path, monkeypatch):
    path = tmp_path / "questions.JSON.GZ"
    path.write_bytes(gzip.compress(OF_JSON[name].encode("utf-8-sig")))
    assert read_question_rows(path) == [("7", "is it red?"), ("8", "is it red?")]
    if name != "lines":  # a file in one line is no text of lines
        monkeypatch.setattr(text_lines, "LINE_BYTES", 20)
        assert len(read_question_rows(path)) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"image": "7"}]', r"q\.csv: \[0\] has no question: JSON of questions is"),
        ('{"questions": [{"question": "a"}]}', r"questions\[0\] has no image: JSON"),
        ('{"9": {"imageId": 7, "question": 1}}', "question 9 has no question: JSON"),
        ('{"image": 7, "question": "a"}\n{"image": ""}', "line 2 has no image: JSON"),
        ('{"image": 7, "question": "a"}\n{"image"', "line 2: not valid JSON, or trunc"),
        ('[{"image": 7', r"q\.csv: not valid JSON, or truncated"),
        ("[]", "has no questions"),
        ("[7]", r"\[0\] has no image"),
    ],
)
def test_faults_of_questions_in_json_are_named(content, message, tmp_path):
    path = tmp_path / "q.csv"
    path.write_text(content)
    with pytest.raises(kc.InputError, match=message):
        read_question_rows(path)


def test_every_reader_of_text_skips_the_mark(tmp_path):
    (tmp_path / "glove").write_text("a 1 2\ne\u0301 3 4\n", encoding="utf-8-sig")
    vectors = read_glove(tmp_path / "glove", {"a", "é"}, 2)
    assert {word: list(x) for word, x in vectors.items()} == {
        "a": [1, 2],
        "é": [3, 4],
    }
    (tmp_path / "a.txt").write_text("a dog\n\n", encoding="utf-8-sig")
    assert read_caption_texts(tmp_path)[0][0].captions == ["a dog"]
    (tmp_path / "ids.json").write_text("[7, 8]", encoding="utf-8-sig")
    assert read_json(tmp_path / "ids.json", list[int]) == [7, 8]
