"""Accuracy of answers: VQA's for ten annotators, exact match for one answer."""

import collections
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_caption.base.atomic import write_json
from keras_caption.base.errors import InputError
from keras_caption.evaluation.tables import markdown_table
from keras_caption.formats.question import Question
from keras_caption.formats.vqa import read_vqa
from keras_caption.formats.vqa_results import read_vqa_results
from keras_caption.text.answers import normalize_answer, share_of_credit, strip_answer


def answer_accuracy(answer: str, known: tuple[str, ...]) -> float:
    """Computes the accuracy of an answer, from 0 to 1.

    Against one known answer, it is exact match. Against those of ten annotators, it is
    the official accuracy of VQA: `min(annotators that gave it / 3, 1)`, averaged over
    all subsets of nine.

    The official evaluation has changed over time. This is that of GT-Vision-Lab/VQA
    since its commit a013f00: if the annotators' answers are not all the same, they and
    the answer are normalized (`keras_caption.text.normalize_answer`); if they are all
    the same, neither is. Earlier versions, and MCAN's code, normalize the answer
    always, and of the annotators' answers the punctuation only.

    Args:
        answer: str.
        known: Tuple of str, one answer or those of ten annotators.
    """
    if len(known) == 1:
        return float(answer == known[0])
    answer, *others = (strip_answer(text) for text in (answer, *known))
    if len(set(others)) > 1:
        answer, *others = (normalize_answer(text) for text in (answer, *others))
    return share_of_credit(sum(other == answer for other in others))


def score_answers(
    answers: Mapping[int, str], questions: Iterable[Question]
) -> dict[str, Any]:
    """Scores answers to questions, see `answer_accuracy`.

    Args:
        answers: dict from question id to str.
        questions: Iterable of `keras_caption.formats.question.Question`, whose answers
            are known.

    Returns:
        dict of `accuracy`, from 0 to 1, the mean over all questions; and of `kinds` and
        `answer_types`, dicts from kind (VQA's question type) and answer type to the
        mean over its questions. Types that are empty are skipped. If people answer a
        question with yes and another with no, also `yes_no`, see `score_yes_no`.

    Raises:
        InputError: If there are no questions, or if a question has no answer in
            `answers` or no known answer.
    """
    outcomes: dict[str, dict[str, list[float]]] = {
        name: collections.defaultdict(list) for name in ("kinds", "answer_types")
    }
    total, pairs = [], []
    for question in questions:
        if question.question_id not in answers:
            raise InputError(f"Question {question.question_id} has no answer to score.")
        if not question.answers:
            raise InputError(
                f"The answer to question {question.question_id} is not known: it "
                "cannot be scored."
            )
        accuracy = answer_accuracy(answers[question.question_id], question.answers)
        total.append(accuracy)
        pairs.append((answers[question.question_id], question.main_answer))
        outcomes["kinds"][question.kind].append(accuracy)
        outcomes["answer_types"][question.answer_type].append(accuracy)
    if not total:
        raise InputError("There are no questions to score answers of.")
    scores = {
        name: {kind: mean(x) for kind, x in sorted(by_kind.items()) if kind}
        for name, by_kind in outcomes.items()
    }
    yes_no = score_yes_no(pairs)
    return {"accuracy": mean(total), **scores, **({"yes_no": yes_no} if yes_no else {})}


def score_yes_no(pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Scores answers to questions that people answer with yes or no.

    A model that answers all of them alike has a balanced accuracy of 0.5, whatever the
    share of yes among people's answers.

    Args:
        pairs: Sequence of pairs of str, an answer and people's most frequent one. Other
            questions are skipped.

    Returns:
        dict of `balanced accuracy`, the mean of the shares of right answers where
        people say yes and where they say no; `share of yes` among the answers; and
        `share of yes, people`. Empty unless people say both.
    """
    answers = {
        known: [answer for answer, other in pairs if other == known]
        for known in ("yes", "no")
    }
    if not all(answers.values()):
        return {}
    right = [mean([x == known for x in of]) for known, of in answers.items()]
    every = answers["yes"] + answers["no"]
    return {
        "balanced accuracy": mean(right),
        "share of yes": mean([answer == "yes" for answer in every]),
        "share of yes, people": len(answers["yes"]) / len(every),
    }


def answer_tables(questions: Sequence[Question], scores: Mapping[str, Any]) -> str:
    """Writes the scores of answers as tables in Markdown.

    Args:
        questions: Sequence of `keras_caption.formats.question.Question`.
        scores: dict, a result of `score_answers`.
    """
    columns = ["accuracy", "95 %", "questions"]

    def row(name, accuracy, count):  # with the 95 % interval of a binomial distribution
        half = 1.96 * math.sqrt(accuracy * (1 - accuracy) / count)
        return name, f"{100 * accuracy:.2f}", f"± {100 * half:.1f}", f"{count:,}"

    overall = [row("all", scores["accuracy"], len(questions))]
    tables = [markdown_table(["", *columns], overall)]
    for name, title, count_of in (
        ("answer_types", "type of the answer", lambda x: x.answer_type),
        ("kinds", "type of the question", lambda x: x.kind),
    ):
        counts = collections.Counter(map(count_of, questions))
        rows = [row(kind, x, counts[kind]) for kind, x in scores[name].items()]
        if rows:
            tables.append(markdown_table([title, *columns], rows))
    if "yes_no" in scores:
        rows = [(name, f"{100 * x:.2f}") for name, x in scores["yes_no"].items()]
        tables.append(markdown_table(["yes and no", "%"], rows))
    return "\n\n".join(tables)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def write_vqa_results(path: str | os.PathLike, answers: Mapping[int, str]) -> None:
    """Writes a results file, as VQA's evaluation server takes it.

    Args:
        path: Path of the file.
        answers: dict from question id to str.
    """
    results = [{"question_id": i, "answer": answer} for i, answer in answers.items()]
    write_json(path, results)


def score_vqa_files(
    questions: str | os.PathLike,
    annotations: str | os.PathLike,
    results: str | os.PathLike,
) -> dict[str, Any]:
    """Scores a results file against VQA's files, see `score_answers`.

    Args:
        questions, annotations: Paths, see `keras_caption.formats.vqa.read_vqa`.
        results: Path of a JSON file, a list of objects with `question_id` and
            `answer`: one for each question.

    Returns:
        dict, see `score_answers`.

    Raises:
        InputError: If a file does not follow its format, or a question has no result,
            or a result no question.
    """
    known, answers = read_vqa(questions, annotations), read_vqa_results(results)
    unknown = answers.keys() - {question.question_id for question in known}
    if unknown:
        raise InputError(
            f"{results} answers question {min(unknown)}, which is not in {questions}."
        )
    lacking = [x.question_id for x in known if x.question_id not in answers]
    if lacking:
        raise InputError(
            f"{results} has no answer to {len(lacking):,} of the {len(known):,} "
            f"questions in {questions}, such as {lacking[0]}."
        )
    return score_answers(answers, known)
