"""The answers that a model chooses from, and how right each is."""

import collections
from collections.abc import Iterable

from keras_caption.arguments import Count, check
from keras_caption.errors import InputError
from keras_caption.formats.question import Question
from keras_caption.text.answers import normalize_answer, share_of_credit


def build_answers(questions: Iterable[Question], min_count: int = 1) -> list[str]:
    """Builds the list of answers that a model chooses from.

    Counts the main answer of every question; those of VQA, which ten annotators
    answered, are normalized first. For VQA, answers that occur more than 8 times in
    train and val (`min_count=9`) are the 3,129 of MCAN.

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
    """How right each answer to a question is.

    Args:
        question: `keras_caption.formats.question.Question`.

    Returns:
        dict from answer to its score: 1 for the only answer; or, if ten annotators
        answered, from each of their normalized answers to 0.3, 0.6, 0.9 or 1, for one,
        two, three or more of them, which is its accuracy.
    """
    if len(question.answers) == 1:
        return {question.answers[0]: 1.0}
    counts = collections.Counter(map(normalize_answer, question.answers))
    return {answer: share_of_credit(count) for answer, count in counts.items()}
