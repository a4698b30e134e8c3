"""Dictionaries from tokens or answers to ids, in the format of MCAN's code."""

import os

from keras_caption.base.errors import InputError
from keras_caption.formats.json_files import read_json


def read_token_ids(path: str | os.PathLike) -> dict[str, int]:
    """Reads the ids of tokens.

    Args:
        path: Path of a JSON file, `{"PAD": 0, "UNK": 1, "what": 2, ...}`.

    Returns:
        dict from token to id.

    Raises:
        InputError: If the file is missing or has other content.
    """
    return read_json(path, dict[str, int])


def read_answers(path: str | os.PathLike) -> list[str]:
    """Reads answers, in the order of their ids.

    Args:
        path: Path of a JSON file: a list of a dict from answer to id and its inverse,
            such as MCAN's `answer_dict.json`, or the first dict alone.

    Returns:
        List of str.

    Raises:
        InputError: If the file is missing or has other content, or the ids are not 0, 1
            and so on.
    """
    content = read_json(path, dict[str, int] | list[dict[str, int | str]])
    ids = content if isinstance(content, dict) else (content or [{}])[0]
    by_id = {i: answer for answer, i in ids.items()}
    answers = [by_id[i] for i in range(len(ids)) if i in by_id]
    if not answers or len(answers) < len(ids):
        raise InputError(
            f"{path}: the ids of its {len(ids):,} answers should be 0, 1 and so on."
        )
    return answers
