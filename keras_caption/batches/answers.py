"""The answers that a model chooses from, and the soft scores of answers."""

import collections
from collections.abc import Iterable

from keras_caption.base.arguments import Count, check
from keras_caption.base.errors import InputError
from keras_caption.formats.question import Question
from keras_caption.text.answers import normalize_answer, share_of_credit


def build_answers(questions: Iterable[Question], min_count: int = 1) -> list[str]:
    """Builds the list of answers that a model chooses from.

    Counts the main answer of every question. Answers of VQA, where ten annotators
    answered each question, are normalized first; those that occur more than 8 times in
    train and val (`min_count=9`) are the 3,129 answers of MCAN.

    Args:
        questions: Iterable of `keras_caption.formats.question.Question`.
        min_count: int, at least 1, the least number of occurrences. Defaults to 1.

    Returns:
        A list of str, the most frequent first, answers of the same frequency in
        alphabetical order.

    Raises:
        InputError: If no answer occurs `min_count` times.
    """
    check(Count, min_count=min_count)
    counts = collections.Counter(
        normalize_answer(q.main_answer) if len(q.answers) > 1 else q.main_answer
        for q in questions
        if q.answers
    )
    frequent = [answer for answer, count in counts.items() if count >= min_count]
    if not frequent:
        raise InputError(
            f"No answer occurs min_count={min_count} times; the greatest count is "
            f"{max(counts.values(), default=0)}."
        )
    return sorted(frequent, key=lambda answer: (-counts[answer], answer))


def soft_scores(question: Question) -> dict[str, float]:
    """Computes the soft scores of the answers to a question.

    Args:
        question: `keras_caption.formats.question.Question`.

    Returns:
        dict from answer to score. The only answer to a question scores 1. If ten
        annotators answered, each normalized answer scores its accuracy: 0.3, 0.6, 0.9
        or 1 if one, two, three or more of them gave it.
    """
    if len(question.answers) == 1:
        return {question.answers[0]: 1.0}
    counts = collections.Counter(map(normalize_answer, question.answers))
    return {answer: share_of_credit(count) for answer, count in counts.items()}
