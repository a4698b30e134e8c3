"""Validation by pydantic, shared by files and arguments."""

import functools
import json
import re
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

adapter = functools.cache(TypeAdapter)  # building one takes milliseconds
SHOULD = "Input should be "
UNICODE = f"{SHOULD}Unicode, without half of a surrogate pair"
BEGINNING = re.compile(r'\s*(?:[\[{"\d-]|true|false|null|$)')  # of JSON
SURROGATE = re.compile("[\ud800-\udfff]")


def is_unicode(text: Any) -> bool:
    """Whether a value is a str that UTF-8 can encode, without surrogates."""
    return isinstance(text, str) and not SURROGATE.search(text)


def describe(error: ValidationError, content: Any = None) -> str:
    """Describes the first problem of a `ValidationError` and names its record.

    If a value fits no branch of a union, the branch that got furthest into the value is
    the one that was meant; if none got into it, all are named.

    Args:
        error: `ValidationError`.
        content: What was validated: bytes or str of JSON, a dict or a list. Without it,
            names of branches, which stand in the places of errors, are printed too.
    """
    problems = error.errors(include_url=False)
    first = problems[0]
    if first["type"] == "json_invalid":
        if (place := _half_pair(content)) is not None:
            return f"{_name(place)}: {UNICODE}"
        text = (
            content.decode(errors="replace") if isinstance(content, bytes) else content
        )
        if not BEGINNING.match(text or ""):  # as of an archive or of CSV
            return f"not valid JSON: it begins with {text[:8]!r}"
        return f"not valid JSON, or truncated: {first['ctx']['error']}"
    if isinstance(content, bytes | str):
        content = from_json(content)
    places = [_place(problem, content) for problem in problems]
    of_value = [
        (place, problem)
        for place, problem in zip(places, problems, strict=True)
        if place[: len(places[0])] == places[0]
    ]
    place, first = max(of_value, key=lambda x: len(x[0]))  # the first of the longest
    same = [problem["msg"] for other, problem in of_value if other == place]
    others = [x.removeprefix(SHOULD) for x in same[1:] if x.startswith(SHOULD)]
    message = " or ".join(dict.fromkeys([first["msg"], *others]))
    message = f"{_name(place)}: {message}"
    if first["type"] == "missing":
        return message
    received = repr(first["input"])
    return f"{message}, received {received[:60]}{'...' * (len(received) > 60)}"


def _name(place):
    """The name of a value, such as `messages[0].role`."""
    name = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in place)
    return name.removeprefix(".") or "content"


def _half_pair(content):
    """The place of a text with half of a surrogate pair in JSON, or `None`."""
    try:
        return _half_pair_in(json.loads(content))  # which, unlike pydantic, reads it
    except (TypeError, ValueError, RecursionError):
        return None


def _half_pair_in(value):
    """As `_half_pair`, of a value; a dict whose key has one is the place itself."""
    texts = [value] if isinstance(value, str) else value
    if isinstance(value, dict | str) and not all(map(is_unicode, texts)):
        return ()
    if isinstance(value, dict | list):
        for key, x in value.items() if isinstance(value, dict) else enumerate(value):
            if (place := _half_pair_in(x)) is not None:
                return (key, *place)
    return None


def _place(problem, content):
    """The keys and indices to the value of a problem, without names of branches."""
    if content is None:
        return problem["loc"]
    place = []
    for key in problem["loc"]:
        if isinstance(content, dict) and key in content:
            content = content[key]
        elif isinstance(content, list) and isinstance(key, int):
            content = content[key] if key < len(content) else None
        else:
            continue
        place.append(key)
    if problem["type"] == "missing":
        place.append(problem["loc"][-1])
    return tuple(place)
