"""The accuracy of VQA, against exact fractions over all subsets of nine."""

import collections
import itertools
import json
import random
from fractions import Fraction

import pytest
from conftest import data_folder

import keras_caption as kc
from keras_caption.commands import main
from keras_caption.formats.question import Question
from keras_caption.formats.vqa import find_vqa, read_vqa
from keras_caption.text.answers import CONTRACTIONS

# Worked by the official code.
NORMALIZED = {
    "1,000 men": "1000 men",
    "1,000/2": "10002",
    "5,5": "55",
    "yes,no": "yes no",
    "black/white": "black white",
    "black, white": "black white",
    "t-shirt": "t shirt",
    "St. Louis": "st louis",
    "U.S.A.": "usa",
    "1.": "1",
    "3.5": "3.5",
    ".5": ".5",
    "10:30": "10:30",
    "$5": "$5",
    "10,000 (ten)": "10000 10",
    "The": "",
    "none": "0",
    "dont know": "don't know",
    "Im": "im",
    "let's": "let's",
    "somebody'd": "somebodyd",
    "ow's'at": "'ow's'at",
    "yall'd've": "y'all'd've",
}


@pytest.mark.parametrize("answer", NORMALIZED)
def test_answers_are_normalized_as_by_the_official_code(answer):
    assert kc.text.normalize_answer(answer) == NORMALIZED[answer]


def test_the_table_of_contractions_is_complete():
    # 120 in the official table; four are unreachable, two change nothing.
    assert len(CONTRACTIONS) == 114


def exact(answer, known):
    """The accuracy by its definition, as a fraction."""
    if len(set(known)) > 1:
        normalize = kc.text.normalize_answer
        known, answer = [normalize(other) for other in known], normalize(answer)
    subsets = list(itertools.combinations(known, 9))
    credits = [min(Fraction(subset.count(answer), 3), 1) for subset in subsets]
    return sum(credits) / len(subsets)


def test_the_accuracy_is_that_of_all_subsets_of_nine():
    rng = random.Random(0)
    texts = ["yes", "Yes.", "no", "the no", "2", "two", "maybe"]
    for _ in range(300):
        known = tuple(rng.choices(texts[: rng.randint(1, 7)], k=10))
        for answer in texts:
            found = kc.evaluation.answer_accuracy(answer, known)
            assert found == pytest.approx(float(exact(answer, known)))


@pytest.mark.parametrize(
    ("answer", "known", "accuracy"),
    [  # of GT-Vision-Lab/VQA since a013f00
        ("2", ["two"] * 7 + ["2"] * 3, 1.0),
        ("two", ["two"] * 10, 1.0),
        ("2", ["two"] * 10, 0.0),
        (" yes\n", ["yes "] * 10, 1.0),
        ("sofa", ["sofa"], 1.0),
        ("a sofa", ["sofa"], 0.0),  # one answer: exact match
    ],
)
def test_answers_are_normalized_if_annotators_differ(answer, known, accuracy):
    assert kc.evaluation.answer_accuracy(answer, tuple(known)) == accuracy


def test_means_are_over_the_questions_of_a_type():
    questions = [
        Question(1, 5, "a?", ("x",), "x", "what", "other"),
        Question(2, 5, "b?", ("y",), "y", "what", "number"),
        Question(3, 5, "c?", ("z",), "z", "is", "other"),
    ]
    scores = kc.evaluation.score_answers({1: "x", 2: "z", 3: "z"}, questions)
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["kinds"] == {"what": 0.5, "is": 1.0}
    assert scores["answer_types"] == {"other": 1.0, "number": 0.0}
    with pytest.raises(kc.InputError, match="Question 2 has no answer"):
        kc.evaluation.score_answers({1: "x"}, questions)
    with pytest.raises(kc.InputError, match="answer to question 4 is not known"):
        kc.evaluation.score_answers({4: "x"}, [Question(4, 5, "d?")])


def test_one_answer_to_all_is_half_right_in_balance():
    known = ["yes", "yes", "yes", "no", "red"]
    questions = [Question(i, 5, "?", (x,), x) for i, x in enumerate(known)]

    def score(*answers):
        return kc.evaluation.score_answers(dict(enumerate(answers)), questions)

    for constant, share in ("yes", 1.0), ("no", 0.0):
        assert score(*[constant] * 4, "red")["yes_no"] == {
            "balanced accuracy": 0.5,
            "share of yes": share,
            "share of yes, people": 0.75,
        }
    scores = score("yes", "no", "red", "no", "yes")["yes_no"]
    assert scores["balanced accuracy"] == pytest.approx((1 / 3 + 1) / 2)
    assert scores["share of yes"] == 0.25
    del questions[3]  # nobody says no
    assert "yes_no" not in kc.evaluation.score_answers(
        dict.fromkeys(range(5), "yes"), questions
    )


# What the official code at a013f00 prints for the test questions: accuracy over all,
# and over answers of the types yes/no, number and other.
OFFICIAL = {
    "most common": [96.74, 100.0, 96.37, 93.71],
    "first annotator": [87.7, 96.62, 87.65, 78.42],
    "yes": [22.37, 64.1, 0.06, 0.83],
}


def test_scores_on_real_questions(tmp_path, capsys):
    files = find_vqa(data_folder("vqa_v2_60k"))["test"]
    questions = read_vqa(*files)
    answered = {
        "most common": {q.question_id: q.main_answer for q in questions},
        "first annotator": {q.question_id: q.answers[0] for q in questions},
        "yes": {q.question_id: "yes" for q in questions},
    }
    for name, answers in answered.items():
        path = tmp_path / "results.json"
        kc.evaluation.write_vqa_results(path, answers)
        scores = kc.evaluation.score_vqa_files(*files, path)
        types = [scores["answer_types"][x] for x in ("yes/no", "number", "other")]
        rounded = [round(100 * x, 2) for x in (scores["accuracy"], *types)]
        assert rounded == OFFICIAL[name]
        kinds = collections.defaultdict(list)
        for q in questions:
            kinds[q.kind].append(exact(answers[q.question_id], q.answers))
        expected = {kind: float(sum(x) / len(x)) for kind, x in kinds.items()}
        assert scores["kinds"] == pytest.approx(expected)
    assert json.loads(path.read_text())[0].keys() == {"question_id", "answer"}
    command = ["score", str(files[1]), str(path), f"--questions={files[0]}"]
    with pytest.raises(SystemExit) as end:
        main(command)
    assert not end.value.code
    printed = " ".join(capsys.readouterr().out.split())
    assert "| all | 22.37 |" in printed
    assert "| yes/no | 64.10 |" in printed
    assert "| balanced accuracy | 50.00 |" in printed
    assert "| share of yes | 100.00 |" in printed
    with pytest.raises(SystemExit, match="no other option"):
        main([*command, "--spice"])
    answers.pop(questions[3].question_id)
    kc.evaluation.write_vqa_results(path, answers | {7: "yes"})
    with pytest.raises(kc.InputError, match="answers question 7, which is not in"):
        kc.evaluation.score_vqa_files(*files, path)
    kc.evaluation.write_vqa_results(path, answers)
    with pytest.raises(kc.InputError, match=r"results\.json has no answer to 1 of the"):
        kc.evaluation.score_vqa_files(*files, path)
