"""Validation by pydantic, shared by files and arguments."""

import functools

from pydantic import TypeAdapter, ValidationError

adapter = functools.cache(TypeAdapter)  # building one takes milliseconds


def describe(error: ValidationError) -> str:
    """Describes the first problem of a `ValidationError` and names its record."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return f"not valid JSON, or truncated: {first['ctx']['error']}"
    place = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
    )
    message = f"{place.removeprefix('.') or 'content'}: {first['msg']}"
    if first["type"] == "missing":
        return message
    received = repr(first["input"])
    return f"{message}, received {received[:60]}{'...' * (len(received) > 60)}"
