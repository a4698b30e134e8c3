"""Normalization and kinds of answers, as the official evaluation of VQA has them."""

import functools
import re
from collections.abc import Mapping
from typing import Literal, get_args

Kind = Literal["yes/no", "number", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Characters that are deleted or replaced by spaces, in this order.
PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
COMMA_IN_NUMBER = re.compile(r"\d,\d")
# The official expression should look at the character before the period too, but has a
# typo: only the character after it counts.
PERIOD = re.compile(r"\.(?!\d)")
MOST_PERIODS = 32  # the official code passes re.UNICODE, 32, as the count

ARTICLES = ("a", "an", "the")
NUMBERS = "zero one two three four five six seven eight nine ten"
DIGITS = {"none": "0"} | {word: str(i) for i, word in enumerate(NUMBERS.split())}

# Contractions of the official table, whose keys lack one of the apostrophes.
CONTRACTED = """
ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've
hasn't haven't he'd he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am
mightn't mightn't've might've mustn't must've needn't not've o'clock oughtn't 'ow's'at
shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's
someone'd someone'd've someone'll someone's something'd something'd've something'll
that's there'd there'd've there're there's they'd they'd've they'll they're they've
'twas wasn't we'd've we've weren't what'll what're what's what've when's where'd
where's where've who'd who'd've who'll who's who've why'll why're why's won't would've
wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""
CONTRACTIONS = {
    word[: match.start()] + word[match.end() :]: word
    for word in CONTRACTED.split()
    for match in re.finditer("'", word)
} | {"somebody'd": "somebodyd"}


@functools.lru_cache(2**16)  # a data set has millions of answers, most of them the same
def normalize_answer(answer: str) -> str:
    """Normalizes an answer as the official evaluation of VQA does.

    Punctuation is deleted or replaced by spaces; periods that no digit follows are
    deleted; letters are in lower case; numbers up to ten are digits, articles are
    dropped, and contractions have their apostrophes.

    Args:
        answer: str.

    Returns:
        str; empty if nothing is left, as for `"the"`.

    Example:

    ```python
    normalize_answer("The U.S.A.")    # "usa"
    normalize_answer("1,000 men")     # "1000 men"
    normalize_answer("dont know")     # "don't know"
    ```

    Reference:
        `vqaEval.py` of GT-Vision-Lab/VQA; the rules in words:
        visualqa.org/evaluation.
    """
    original = answer = strip_answer(answer)
    in_number = COMMA_IN_NUMBER.search(original)
    for symbol in PUNCTUATION:
        beside_space = f"{symbol} " in original or f" {symbol}" in original
        answer = answer.replace(symbol, "" if beside_space or in_number else " ")
    answer = PERIOD.sub("", answer, count=MOST_PERIODS)
    words = [DIGITS.get(word, word) for word in answer.lower().split()]
    return " ".join(CONTRACTIONS.get(w, w) for w in words if w not in ARTICLES)


def strip_answer(answer: str) -> str:
    """Puts an answer on one line, without white space at its ends."""
    return answer.replace("\n", " ").replace("\t", " ").strip()


def kind_of_answer(answer: str) -> Kind:
    """The kind of an answer, one of `KINDS`, VQA's types of answers.

    Args:
        answer: str.
    """
    normalized = normalize_answer(answer)
    if normalized in ("yes", "no"):
        return "yes/no"
    return "number" if normalized.isdecimal() else "other"


def threshold_of(threshold: float | Mapping[Kind, float], kind: Kind) -> float:
    """The threshold of answers of a kind.

    Args:
        threshold: As the argument of `keras_caption.models.Classifier`.
        kind: str, one of `KINDS`.
    """
    if isinstance(threshold, Mapping):
        return threshold.get(kind, 0.0)
    return threshold


def share_of_credit(matches: int) -> float:
    """Computes the VQA accuracy of an answer that `matches` of ten annotators gave.

    Each annotator is left out in turn. An answer scores 1 if at least three of the
    other nine gave it, and in proportion if fewer did:

        sum_i min(matches among the others / 3, 1) / 10

    which is 0, 0.3, 0.6 or 0.9 for zero to three matches, and 1 for four or more. It is
    also the soft score that models are trained on.
    """
    return min(3 * matches, 10) / 10
