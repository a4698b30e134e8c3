"""The photos of the images of a caption file."""

import gzip
import json

import coco_files
import pytest
from PIL import Image

import keras_caption as kc


@pytest.fixture
def folder(tmp_path):
    """Photos of one colour each: a/1.png is 10, b/1.png is 20, a/2.png is 30."""
    for name, colour in {"a/1.png": 10, "b/1.png": 20, "a/2.png": 30}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4), (colour,) * 3).save(tmp_path / name)
    return tmp_path


def colours(folder, images):
    """Colour of the photo of every image, or the error for which it is skipped."""
    images = [
        {"imgid": i, "split": "train", "sentences": [{"raw": "A dog."}], **image}
        for i, image in enumerate(images)
    ]
    path = folder / "captions_train.json"
    path.write_text(json.dumps({"images": images}))
    outcomes = []
    for record in kc.prepare.records_of_photos(folder, [path])["train"]:
        try:
            outcomes.append(int(record.read()[0, 0, 0]))
        except kc.InputError as error:
            outcomes.append(str(error).removeprefix(f"{folder}/"))
    return outcomes


def test_filepath_distinguishes_photos_of_the_same_name(folder):
    images = [{"filepath": f, "filename": "1.png"} for f in ("b", "a")]
    assert colours(folder, images) == [20, 10]
    assert colours(folder, [{"filename": "b/1.png"}]) == [20]


@pytest.mark.parametrize("image", [{}, {"filepath": "val2014"}])
def test_an_unambiguous_name_is_sufficient(folder, image):
    assert colours(folder, [{**image, "filename": "2.png"}]) == [30]


def test_missing_and_ambiguous_photos_are_skipped(folder):
    images = [
        {"filename": "1.png"},
        {"filepath": "c", "filename": "2.png"},
        {"filepath": "d", "filename": "2.png"},
        {"filename": "3.png"},
        {"filepath": "a", "filename": "1.png", "sentences": []},
    ]
    ambiguous, *twice, missing, silent = colours(folder, images)
    assert (
        ambiguous
        == "1.png does not exist, and 1.png is the name of 2 photos and 2 images."
    )
    assert [text.split(",")[0] for text in twice] == [
        f"{f}/2.png does not exist" for f in "cd"
    ]
    assert missing == f"There is no file {folder}/3.png."
    assert silent == "captions_train.json: image 4 has no captions."


def test_one_photo_of_two_images_is_refused(folder):
    for number, name in enumerate(("captions_train.json", "captions_val.json")):
        images = [{"id": number, "file_name": "a/1.png"}]
        captions = [{"image_id": number, "caption": "A dog."}]
        content = {"images": images, "annotations": captions}
        (folder / name).write_text(json.dumps(content))
    paths = sorted(folder.glob("captions_*.json"))
    with pytest.raises(
        kc.InputError, match=r"a/1\.png is the photo of images 0 and 1\."
    ):
        kc.prepare.records_of_photos(folder, paths)
    (folder / "captions_val.json").write_text(
        (folder / "captions_train.json").read_text()
    )
    with pytest.raises(kc.InputError, match=r"val\.json: image 0 is listed in .*train"):
        kc.prepare.records_of_photos(folder, paths)


def test_photos_outside_the_folder_are_refused(folder):
    (folder / "a" / "link").symlink_to(folder / "b")
    for name in ("../a/1.png", str(folder / "b" / "1.png"), "link/../1.png"):
        with pytest.raises(kc.InputError, match=r"images\[0\]\.filename: .* within"):
            colours(folder / "a", [{"filename": name}])


@pytest.mark.parametrize(("orientation", "is_read"), [(1, True), (3, True), (6, False)])
def test_boxes_are_relative_to_the_photo_rotated_by_its_orientation(
    tmp_path, orientation, is_read
):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", (16, 12)).save(tmp_path / "10.jpg", exif=exif.tobytes())
    captions, instances, _ = coco_files.contents(images=1)  # of 640 x 480 pixels
    captions["images"][0]["file_name"] = "10.jpg"
    paths = tmp_path / "captions_train.json", tmp_path / "instances.json"
    for path, content in zip(paths, (captions, instances), strict=True):
        path.write_text(json.dumps(content))
    [record] = kc.prepare.records_of_photos(tmp_path, paths[:1], paths[1:])["train"]
    if is_read:
        assert record.read().shape == (12, 16, 3)
    else:
        with pytest.raises(kc.InputError, match=r"12 x 16 .* of 640 x 480"):
            record.read()


def test_photos_that_questions_are_about(folder, capsys):
    """Files of VQA name splits, questions of COCO-QA say them; photos name ids."""
    questions = folder / "questions"
    questions.mkdir()
    for split, image_id in (("train", 2), ("val", 7)):
        asked = {"question_id": image_id, "image_id": image_id, "question": "What?"}
        answers = {"answers": [{"answer": "dog"}] * 10, "question_type": "what"}
        annotation = {**asked, **answers, "answer_type": "other"}
        for kind, record in (("questions", asked), ("annotations", annotation)):
            with gzip.open(questions / f"{split}_{kind}.json.gz", "wt") as file:
                json.dump({kind: [record]}, file)
    Image.new("RGB", (4, 4), (40,) * 3).save(folder / "COCO_val2014_000000000009.jpg")
    record = {"question_id": 1, "image_id": 9, "question": "what is it"}
    record |= {"answer": "cat", "type": "object"}
    path = questions / "cocoqa.json"
    for split in ({"split": "test"}, {}, {"split": "train", "image_id": 7}):
        path.write_text(json.dumps({"questions": [{**record, **split}]}))
        if split == {"split": "test"}:
            records = kc.prepare.records_of_questions(folder, [questions, path])
        else:
            with pytest.raises(kc.InputError, match=r"says no split|is for train, and"):
                kc.prepare.records_of_questions(folder, [questions, path])
    printed = capsys.readouterr().out
    assert f"{folder}: photos: 1 for train, 1 for val, 1 for test" in printed
    [[train], [val], [test]] = records.values()
    assert (train.image_id, train.captions, train.read()[0, 0, 0]) == (2, [], 30)
    assert (test.image_id, test.read()[0, 0, 0]) == (9, 40)
    with pytest.raises(kc.InputError, match="has 0 photos that are called 7"):
        val.read()
