"""Validation by pydantic, shared by files and arguments."""

import functools

from pydantic import TypeAdapter

adapter = functools.cache(TypeAdapter)  # building one takes milliseconds


def describe(error):
    """The first problem of a `ValidationError`, with the place of the record."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return f"not valid JSON, or cut short: {first['ctx']['error']}"
    place = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]
    )
    message = f"{place.removeprefix('.') or 'content'}: {first['msg']}"
    if first["type"] == "missing":
        return message
    received = repr(first["input"])
    return f"{message}, received {received[:60]}{'...' * (len(received) > 60)}"
