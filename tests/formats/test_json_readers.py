"""Faults of JSON files are reported in one sentence that names file and record."""

import gzip
import json
import os

import pytest
import readers

import keras_caption as kc
from keras_caption.formats import json_files
from keras_caption.formats.coco import read_captions, read_instances
from keras_caption.formats.infos import read_infos
from keras_caption.formats.items import read_items
from keras_caption.formats.json_files import read_json
from keras_caption.formats.question_rows import read_question_rows
from keras_caption.formats.text_lines import lines
from keras_caption.formats.torch_files import read_torch
from keras_caption.formats.vqa import find_vqa, read_vqa

MISSING = object()


def spoil(path, keys, value):
    """Replaces a value of a JSON file by JSON text, or removes it."""
    content = json.loads(path.read_text())
    container = content
    for key in keys[:-1]:
        container = container[key]
    if value is MISSING:
        del container[keys[-1]]
    else:
        container[keys[-1]] = "HERE"
    path.write_text(
        json.dumps(content).replace('"HERE"', value if value is not MISSING else "")
    )


@pytest.mark.parametrize(
    ("name", "keys", "value", "message"),
    [
        ("captions", ["images"], MISSING, r"images: Field required"),
        ("captions", ["images", 2, "id"], "12.0", r"images\[2\]\.id: .* 64 bits, rec"),
        ("captions", ["images", 2, "id"], "true", r"images\[2\]\.id: .*ed True"),
        ("captions", ["images", 2, "id"], "9" * 19, r"images\[2\]\.id: .* of 64 bits"),
        ("captions", ["images", 2, "id"], "9" * 5000, "number out of range"),
        ("captions", ["images", 2, "id"], "[" * 200_000, "recursion limit exceeded"),
        (
            "captions",
            ["images", 2, "id"],
            "11",
            r"images\[2\]\.id is 11, as in .*\[1\]",
        ),
        ("captions", ["annotations", 7], "null", r"annotations\[7\]: .* object"),
        (
            "captions",
            ["annotations", 7, "caption"],
            "null",
            r"\[7\]\.caption: .* string",
        ),
        ("captions", ["annotations", 7, "image_id"], "9", r"\[7\] belongs to image 9"),
        ("instances", ["images", 1, "width"], "0", r"images\[1\]\.width: .* than 0"),
        ("instances", ["images", 1, "width"], "1e400", r"images\[1\]\.width: .*ed inf"),
        ("instances", ["images", 1, "height"], "NaN", r"images\[1\]\.height: .*ed nan"),
        (
            "instances",
            ["annotations", 3, "bbox", 2],
            "NaN",
            r"\[3\]\.bbox\[2\]: .* finite",
        ),
        (
            "instances",
            ["annotations", 3, "bbox"],
            "[1, 2, 3]",
            r"\[3\]\.bbox: .* 4 items",
        ),
        (
            "instances",
            ["annotations", 3, "bbox", 0],
            "600",
            r"\[3\].* exceeds the image",
        ),
        ("instances", ["annotations", 3, "bbox", 3], "0", r"\[3\] .* is empty"),
        ("instances", ["annotations", 3, "category_id"], "77", r"\[3\] .* category 77"),
        ("instances", ["categories", 1, "id"], "1", r"categories\[1\]\.id is 1, as in"),
        ("split", ["images"], "[]", "at least 1 item"),
        (
            "split",
            ["images", 3, "split"],
            '"dev"',
            r"images\[3\]\.split: .*'val' or 'te",
        ),
        ("split", ["images", 3, "cocoid"], MISSING, r"images\[3\]\.cocoid: Field req"),
        ("split", ["images", 3, "cocoid"], "10", r"images\[3\]\.cocoid is 10, as in"),
        (
            "karpathy",
            ["images", 3, "cocoid"],
            "10",
            r"images\[3\]\.cocoid is 10, as in",
        ),
        ("karpathy", ["images", 3, "imgid"], "null", r"images\[3\]\.imgid: "),
        ("karpathy", ["images", 2, "filename"], '"0.jpg"', "'part0/0.jpg', as in"),
        (
            "karpathy",
            ["images", 2, "filename"],
            '"../0.jpg"',
            r"\[2\]\.filename: .* wit",
        ),
        (
            "karpathy",
            ["images", 2, "filepath"],
            '"/etc"',
            r"\[2\]\.filepath: .* within",
        ),
        ("coco_listing", ["images", 2, "file_name"], '"a/../b"', r"\[2\].* within"),
        ("coco_listing", ["images", 2, "file_name"], '"./11.jpg"', r"'11.jpg', as in"),
        ("test_server_listing", ["images", 2, "id"], "11", r"id is 11, as in"),
        ("results", [1], "null", r"\[1\]: .* object"),
        ("results", [1, "caption"], "null", r"\[1\]\.caption: .* string"),
        ("results", [1, "image_id"], "0", r"\[1\]\.image_id is 0, as in \[0\]"),
        ("run", ["objective"], "3", r"config\.json: objective: "),
        ("vqa", ["annotations", 1, "answers"], "[]", r"\[1\]\.answers: .* 10 items"),
        (
            "vqa",
            ["annotations", 1, "question_id"],
            "9",
            r"\[1\] is of question 9, which is not in .*questions_train\.json\.gz",
        ),
        (
            "vqa",
            ["annotations", 1, "image_id"],
            "9",
            r"\[1\] says that question 21 is about image 9; in .* about image 8",
        ),
        ("vqa", ["annotations", 2, "question_id"], "21", r"is 21, as in .*\[1\]"),
        ("vqa_results", [2, "question_id"], "0", r"\[2\]\.question_id is 0, as in"),
        (
            "coco_qa",
            ["questions", 1, "question"],
            '"?"',
            r"\[1\]\.question: .*one word",
        ),
        ("coco_qa", ["questions", 1, "answer"], '""', r"\[1\]\.answer: .*1 character"),
        ("vsr", ["statements", 1, "label"], "2", r"\[1\]\.label: .* less than"),
    ],
)
def test_a_wrong_record_is_named(tmp_path, name, keys, value, message):
    reader = readers.READERS[name]
    reader.write(tmp_path)
    path = sorted(tmp_path.glob("*.json"))[name == "karpathy"]
    spoil(path, keys, value)
    with pytest.raises(kc.InputError, match=message) as raised:
        reader.read(tmp_path)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def test_files_that_are_not_json_are_named(tmp_path):
    path = tmp_path / "results.json"
    for content, message in {
        b"null": "content: .* valid array, received None",
        b"PK\3\4": r"not valid JSON: it begins with 'PK\\x03\\x04'",
        b"[{": "not valid JSON, or truncated: EOF",
        b'["\xff"]': "not valid JSON, or truncated: invalid unicode",
    }.items():
        path.write_bytes(content)
        with pytest.raises(kc.InputError, match=rf"results\.json: {message}"):
            kc.evaluation.read_results(path)
    with pytest.raises(kc.InputError, match="cannot be read: Is a directory"):
        kc.evaluation.read_results(tmp_path)


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_json(path, dict),
        lambda path: next(lines(path)),
        read_question_rows,
        read_torch,
        read_infos,
    ],
)
def test_a_pipe_is_not_waited_for(read, tmp_path):
    os.mkfifo(tmp_path / "pipe.pkl")
    with pytest.raises(kc.InputError, match=r"pipe\.pkl is a pipe or a device"):
        read(tmp_path / "pipe.pkl")


def test_questions_need_their_annotations(tmp_path):
    readers.write_vqa(tmp_path)
    annotations = tmp_path / "annotations_train.json"
    content = json.loads(annotations.read_text())
    content["annotations"].pop(2)
    annotations.write_text(json.dumps(content))
    with pytest.raises(kc.InputError, match="question 22 has no annotation in"):
        read_vqa(*find_vqa(tmp_path)["train"])
    assert len(read_vqa(tmp_path / "questions_train.json.gz")) == 4
    (tmp_path / "v2_train_questions.json").touch()
    with pytest.raises(kc.InputError, match="has several files of train questions"):
        find_vqa(tmp_path)
    for path in tmp_path.glob("*question*"):
        path.unlink()
    with pytest.raises(kc.InputError, match="has no file of questions beside it"):
        find_vqa(tmp_path)
    annotations.unlink()
    (tmp_path / "annotations_val.json").unlink()
    with pytest.raises(kc.InputError, match="has no questions and annotations for 'tr"):
        find_vqa(tmp_path)


def test_the_commonest_answer_is_the_main_one_of_ok_vqa(tmp_path):
    readers.write_ok_vqa(tmp_path)
    first, *_ = read_vqa(*find_vqa(tmp_path)["train"])
    assert first.main_answer == "yes"
    assert first.answers == ("no",) * 4 + ("yes",) * 6


@pytest.mark.parametrize(
    ("name", "file", "keys", "where"),
    [
        ("captions", "captions.json", ["annotations", 7, "caption"], "annotations[7]"),
        (
            *("karpathy", "dataset.json", ["images", 2, "sentences", 0, "raw"]),
            "images[2].sentences[0]",
        ),
        (
            *("video_lists", "videodatainfo.json", ["sentences", 0, "caption"]),
            "sentences[0] of video m0",
        ),
        (
            *("video_lists", "vatex_training_v1.0.json", [1, "enCap", 1]),
            "video v1: caption 2",
        ),
        ("video_lists", "captions.json", [0, "captions", 0], "video c0: caption 1"),
    ],
)
def test_captions_without_words_are_skipped(tmp_path, capsys, name, file, keys, where):
    reader = readers.READERS[name]
    reader.write(tmp_path)
    spoil(tmp_path / file, keys, '" . "')
    reader.read(tmp_path)
    printed = capsys.readouterr().out
    assert f"skipped: {tmp_path / file}: {where}" in printed
    assert "has no words: '.'." in printed


def test_annotations_that_do_not_count_are_passed_over(tmp_path, capsys):
    """As VizWiz and COCO mark them."""
    readers.READERS["captions"].write(tmp_path)
    path = tmp_path / "captions.json"
    content = json.loads(path.read_text())
    marks = [{"is_rejected": True}, {"is_precanned": 1}, {"is_spam": True}]
    of_image = [{"image_id": 10, "caption": "a dog", **mark} for mark in marks]
    more = {"image_id": 10, "caption": "a cat", "is_rejected": False}
    content["annotations"] = [*of_image, {**more, "is_precanned": None}]
    path.write_text(json.dumps(content))
    captions = read_captions(path)
    assert captions[10] == ["a cat"]
    printed = capsys.readouterr().out
    counts = "1 of 4 captions; 1 rejected, 1 precanned, 1 spam"
    assert printed == f"{path}: {counts}\n"
    readers.READERS["instances"].write(tmp_path)
    path = tmp_path / "instances.json"
    _, before = read_instances(path)
    spoil(path, ["annotations", 0, "ignore"], "1")
    _, after = read_instances(path)
    assert sum(map(len, after.values())) == sum(map(len, before.values())) - 1


def test_a_message_names_the_branch_of_a_union_that_was_meant(tmp_path):
    path = tmp_path / "items.json"
    for value, message in {
        '[[0.5, "x"]]': r"score\[0\]\[1\]: Input should be a valid number, rec.* 'x'",
        '["x"]': r"score\[0\]: Input should be a valid number or a valid array, rec",
    }.items():
        path.write_text(f'{{"ids": [1], "score": {value}}}')
        with pytest.raises(kc.InputError, match=rf"items\.json: {message}"):
            read_items(path)


def test_a_packed_file_claims_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(json_files, "UNPACKED_BYTES", 1000)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * 998 + b"]"))
    assert kc.evaluation.read_vqa_results(path) == {}
    path.write_bytes(gzip.compress(b"[" + b" " * 999 + b"]"))
    with pytest.raises(kc.InputError, match="has more than 1,000 bytes unpacked"):
        kc.evaluation.read_vqa_results(path)
