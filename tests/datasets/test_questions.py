"""Questions joined with their images: splits, answers and batches."""

import dataclasses
import json

import coco_files
import numpy as np
import pytest
import region_files
from conftest import data_folder

import keras_caption as kc
from keras_caption.datasets import Question
from keras_caption.datasets import questions as datasets
from keras_caption.formats.vqa import find_vqa, read_vqa

IMAGES = 40
INPUTS = ["regions", "boxes", "region_mask"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("questions")
    coco_files.write(folder / "coco", *coco_files.contents(images=IMAGES))
    questions = [
        {
            "question_id": 5 * image_id + number,
            "image_id": image_id,
            "question": f"what is number {number} of image {image_id} ?",
            "answer": f"answer {image_id % 3}",
            "type": "object",
        }
        for image_id in [*range(10, 10 + IMAGES), 1000]
        for number in range(2 * (image_id % 3))
    ]
    path = folder / "coco_qa.json"
    path.write_text(json.dumps({"questions": questions}))
    return folder


def load(name, path, folder):
    return kc.datasets.load_questions(
        *(name, path, "coco_objects", folder / "coco"), data_dir=folder / "tfds"
    )


@pytest.fixture(scope="module")
def data(folder):
    return load("coco_qa", folder / "coco_qa.json", folder)


def test_questions_are_split_as_their_images(data, folder):
    assert data.skipped == 2  # of image 1000
    splits = json.loads((folder / "coco" / "dataset_tiny.json").read_text())["images"]
    split_of = {i["cocoid"]: i["split"].replace("rest", "") for i in splits}
    split_of[11] = "train"  # restval
    for split, questions in data.questions.items():
        assert {split_of[q.image_id] for q in questions} == {split}
        assert {q.kind for q in questions} == {"object"}
    total = sum(map(len, data.questions.values()))
    assert total == sum(2 * (i % 3) for i in range(10, 10 + IMAGES))


def encode(data, split="train", **kinds):
    """Encoded questions, whose tokens are their id and as many more as it ends in."""
    questions = [
        dataclasses.replace(q, kind=kinds.get(f"of_{q.image_id % 3}", q.kind))
        for q in data.questions[split]
    ]
    tokens = np.zeros((len(questions), 8), "int32")
    for row, q in zip(tokens, questions, strict=True):
        row[: 1 + q.question_id % 5] = q.question_id
    answers = ["answer 0", "answer 2"]
    return kc.batches.EncodedQuestions(
        questions, tokens, answers, data.images(split), INPUTS
    )


def test_batches_join_questions_with_their_images(data):
    images = {
        int(e["image_id"]): e
        for e in kc.datasets.read(data.builder, "train").as_numpy_iterator()
    }
    by_id = {q.question_id: q for q in data.questions["train"]}
    encoded = encode(data)
    batches = encoded.train_batches(4, cache=False).take(len(encoded) // 4)
    seen = []
    for inputs, scores in batches.as_numpy_iterator():
        tokens = inputs["question"]
        assert tokens.any(axis=0).all()  # cut to the longest of the batch
        assert inputs.keys() == {*INPUTS, "question"}
        for row, question_id in enumerate(tokens[:, 0]):
            question = by_id[int(question_id)]
            seen.append(question.question_id)
            valid = inputs["region_mask"][row]
            expected = images[question.image_id]
            np.testing.assert_array_equal(
                inputs["boxes"][row][valid], expected["boxes"]
            )
            assert not inputs["regions"][row][~valid].any()
            answer = [question.image_id % 3 == 0, question.image_id % 3 == 2]
            np.testing.assert_array_equal(scores[row], np.float32(answer))
    assert len(seen) == len(set(seen)) == 4 * (len(by_id) // 4)


def test_resumed_epochs_are_those_of_an_uninterrupted_run(data):
    encoded, per_epoch = encode(data), len(data.questions["train"]) // 4

    def take(count, seed=5, **options):
        batches = encoded.train_batches(4, seed, **options).take(count)
        return [inputs["question"][:, 0] for inputs, _ in batches.as_numpy_iterator()]

    whole = take(3 * per_epoch)
    np.testing.assert_array_equal(
        whole[2 * per_epoch :], take(per_epoch, first_epoch=2)
    )
    assert not np.array_equal(whole[:per_epoch], whole[per_epoch : 2 * per_epoch])
    assert not np.array_equal(whole[:per_epoch], take(per_epoch, seed=6))


def test_a_curriculum_withholds_kinds_until_their_epochs(data):
    encoded, per_epoch = encode(data, of_2="hard"), len(data.questions["train"]) // 4
    batches = encoded.train_batches(4, curriculum={"hard": 1}).take(2 * per_epoch)
    asked = [inputs["question"][:, 0] for inputs, _ in batches.as_numpy_iterator()]
    first, second = (
        set(np.concatenate(x).tolist()) for x in np.split(np.array(asked), 2)
    )
    easy = {q.question_id for q in data.questions["train"] if q.image_id % 3 == 1}
    assert first == easy  # all of them, and again
    assert len(second) == 4 * per_epoch
    resumed = encoded.train_batches(4, first_epoch=1, curriculum={"hard": 1})
    again = [
        i["question"][:, 0] for i, _ in resumed.take(per_epoch).as_numpy_iterator()
    ]
    np.testing.assert_array_equal(again, asked[per_epoch:])


def test_a_registered_dataset_has_its_questions_and_curriculum(folder, monkeypatch):
    for known in ("QUESTIONS", "CURRICULA"):
        monkeypatch.setattr(datasets, known, dict(getattr(datasets, known)))

    def make(path, builder, split_of_image):
        asked = {split: [] for split in split_of_image.values()}
        for i, split in split_of_image.items():
            asked[split].append(Question(i, i, f"{path}?", ("yes",), "yes", "hard"))
        return asked

    kc.datasets.register_questions("mine", make, {"hard": 2})
    data = load("mine", "where", folder)
    assert data.curriculum == {"hard": 2}
    assert {q.text for q in data.questions["val"]} == {"where?"}
    assert sum(map(len, data.questions.values())) == IMAGES
    with pytest.raises(kc.InputError, match="'mine' already"):
        kc.datasets.register_questions("mine", make)


@pytest.mark.parametrize(
    ("curriculum", "message"),
    [
        ({"objet": 1}, "names 'objet', which is no kind .* Did you mean object"),
        ({"object": 1}, "leaves no question to ask in epoch 0"),
        ({"object": -1}, "curriculum.object"),
    ],
)
def test_a_wrong_curriculum_is_named(data, curriculum, message):
    with pytest.raises(kc.InputError, match=message):
        encode(data).train_batches(4, curriculum=curriculum)


def test_questions_are_answered_once(data):
    encoded, questions = encode(data, "val"), data.questions["val"]
    found = {}
    for inputs, numbers in encoded.batches(4).as_numpy_iterator():
        found |= dict(zip(numbers.tolist(), inputs["question"][:, 0], strict=True))
    assert found == {n: q.question_id for n, q in enumerate(questions)}


def test_statements_are_true_or_false(folder):
    path = folder / "vsr.json"
    statements = [
        {"image_id": i, "caption": "It is left.", "label": i % 2, "relation": "left of"}
        for i in range(10, 10 + IMAGES)
    ]
    path.write_text(json.dumps({"statements": statements}))
    found = load("vsr", path, folder)
    answers = kc.batches.build_answers(found.questions["train"])
    assert sorted(answers) == ["false", "true"]
    one = found.questions["test"][0]
    assert one.answers == (["false", "true"][one.image_id % 2],)


def test_vqa_has_splits_of_its_own(folder):
    questions, annotations = [], []
    for i, image_id in enumerate((10, 12, 13, 10, 7)):
        question = {"question_id": i, "image_id": image_id, "question": "Is it?"}
        questions.append(question)
        annotations.append(
            {
                **question,
                "question_type": "is it",
                "answer_type": "yes/no",
                "multiple_choice_answer": "yes",
                "answers": [{"answer": "Yes."}] * 3 + [{"answer": "no"}] * 7,
            }
        )
    vqa = folder / "vqa"
    vqa.mkdir()
    for split, rows in {"train": [0, 1, 4], "val2014": [2], "test2015": [3]}.items():
        content = {"questions": [questions[row] for row in rows]}
        (vqa / f"v2_{split}_questions.json").write_text(json.dumps(content))
        if split == "test2015":  # the official archive has a part of them apart
            (vqa / "v2_test-dev2015_questions.json").write_text(
                json.dumps({"questions": []})
            )
        if split != "test2015":
            content = {"annotations": [annotations[row] for row in rows]}
            (vqa / f"v2_{split}_annotations.json").write_text(json.dumps(content))
    data = load("vqa", vqa, folder)
    # Images of the dataset's splits train and val; image 7 is not there.
    assert [q.question_id for q in data.questions["train"]] == [0, 1]
    assert data.skipped == 1
    assert data.questions["test"] == data.questions["val"]
    assert [q.question_id for q in data.questions["unanswered"]] == [3]
    tokens = np.ones((2, 1), "int32")
    encoded = kc.batches.EncodedQuestions(
        data.questions["train"], tokens, ["yes", "no"], data.images("train"), INPUTS
    )
    [(_, scores)] = encoded.train_batches(2).take(1).as_numpy_iterator()
    np.testing.assert_allclose(scores, [[0.9, 1.0]] * 2)


@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("coco_qaa", None, r"no dataset of questions 'coco_qaa'. Did you mean coco_qa"),
        ("coco_qa", None, "The questions of coco_qa need the path that they are at."),
        ("scene_questions", "x", "built in, and not read from x"),
        ("scene_questions", None, "have no known objects to ask about"),
    ],
)
def test_a_wrong_dataset_is_named(folder, name, path, message):
    with pytest.raises(kc.InputError, match=message):
        load(name, path, folder)


def test_questions_without_images_are_an_error(folder):
    path = folder / "elsewhere.json"
    question = {"question_id": 1, "image_id": 5, "question": "is it"}
    question |= {"answer": "yes", "type": "object"}
    path.write_text(json.dumps({"questions": [question]}))
    with pytest.raises(
        kc.InputError,
        match=r"None of the images .* 'train' in .*else.* about 5 and so on",
    ):
        load("coco_qa", path, folder)


def vqa_question(number, answers, main=None):
    return Question(number, 1, "is it?", tuple(answers), main or answers[0])


def test_answers_are_counted_and_scored_once_normalized():
    questions = [
        vqa_question(0, ["A dog"] * 4 + ["two"] * 3 + ["2"] + ["Cat."] * 2),
        vqa_question(1, ["dog."] * 10),
        vqa_question(2, ["cat"] * 10),
        vqa_question(3, ["the"] + ["x"] * 9),
    ]
    assert kc.batches.build_answers(questions) == ["dog", "", "cat"]
    assert kc.batches.build_answers(questions, min_count=2) == ["dog"]
    with pytest.raises(kc.InputError, match=r"min_count=3 times; the greatest .* is 2"):
        kc.batches.build_answers(questions, min_count=3)
    scores = kc.batches.soft_scores(questions[0])
    assert scores == {"dog": 1.0, "2": 1.0, "cat": 0.6}
    assert kc.batches.soft_scores(questions[3]) == {"": 0.3, "x": 1.0}
    assert kc.batches.soft_scores(vqa_question(4, ["A dog"])) == {"A dog": 1.0}


def test_soft_scores_are_accuracies_of_real_answers():
    questions = read_vqa(*find_vqa(data_folder("vqa_v2_60k"))["val"])
    answers = kc.batches.build_answers(questions, min_count=9)
    assert {"yes", "no", "2"} < set(answers)
    differing = [q for q in questions if len(set(q.answers)) > 1]
    for question in differing[:500]:
        for answer, score in kc.batches.soft_scores(question).items():
            assert kc.evaluation.answer_accuracy(answer, question.answers) == score


def test_questions_name_images_as_caption_files_do(tmp_path):
    """Ids that are names stand for numbers that no question's number can meet."""
    ids = {"train": ["a", 1], "val": ["b"], "test": ["c"]}
    record = np.ones((1, 4), "float32"), np.float32([[0, 0, 1, 1]])
    every = dict.fromkeys((i for of_split in ids.values() for i in of_split), record)
    region_files.write_tsv(tmp_path / "f.tsv", every)
    listed = {
        split: [kc.prepare.ListedImage(i, f"{i}.jpg", ["A dog."]) for i in of_split]
        for split, of_split in ids.items()
    }
    sources = [kc.prepare.open_regions(tmp_path / "f.tsv")]
    kc.prepare.prepare_regions(listed, sources, tmp_path / "out")
    questions = [
        {"question_id": n, "image_id": i, "question": "What?", "answer": "dog"}
        | {"type": "object"}
        for n, i in enumerate(["a", 1, "b", "c", 0, -1, "d"])
    ]
    (tmp_path / "q.json").write_text(json.dumps({"questions": questions}))
    data = kc.datasets.load_questions(
        "coco_qa", tmp_path / "q.json", "prepared", tmp_path / "out"
    )
    assert data.skipped == 3
    assert {
        split: [q.question_id for q in x] for split, x in data.questions.items()
    } == {"train": [0, 1], "val": [2], "test": [3]}
    assert {q.image_id for x in data.questions.values() for q in x} == {
        *data.split_of_image
    }
