"""Mutations of files: of their bytes, and of the structure of JSON."""

import copy
import json

# Replacements of values, as JSON text: wrong types, sizes and names.
ODD_VALUES = (
    *("null", "true", "0", "-1", "3.0", "1e400", "NaN", "-Infinity", "9" * 5000),
    *("9" * 400, "9223372036854775808", '""', '" . "', '"\\u0000"', '"\\ud800"'),
    *('"../up.jpg"', '"/up.jpg"', f'"{"x" * 300}"', "[]", "{}", "[null]", '["a"]'),
    *('{"": null}', "[" * 200_000, "[[1, 2], [3, 4]]", '"train"'),
)
ODD_TEXTS = (
    *(b"-1", b"null", b"true", b"1e99", b"9" * 30, b"[]", b"{}", b'""', b"\0", b"\xff"),
)
MARK = "value to replace"


def mutate_bytes(rng, content):
    """Makes one to three changes: replaces, inserts, removes, repeats, truncates."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        start = rng.integers(len(content) + 1)
        end = start + (1, 2, 4, 8, 100)[rng.integers(5)]
        match rng.integers(7):
            case 0:
                content[start:end] = rng.bytes(end - start)
            case 1:
                content[start:end] = ODD_TEXTS[rng.integers(len(ODD_TEXTS))]
            case 2:
                content[start:start] = rng.bytes(end - start)
            case 3:
                del content[start:end]
            case 4:
                content[start:start] = content[start:end]
            case 5:
                del content[start:]
            case 6 if start < len(content):
                content[start] ^= 1 << rng.integers(8)
    return bytes(content)


def mutate_json(rng, content):
    """Replaces, removes, copies or repeats a value anywhere in JSON."""
    content = json.loads(content)
    places = list(places_of(content))
    container, key = places[rng.integers(len(places))]
    kind = rng.integers(4)
    if kind == 0:
        del container[key]
    elif kind == 1:
        other, other_key = places[rng.integers(len(places))]
        container[key] = copy.deepcopy(other[other_key])
    elif kind == 2 and isinstance(container, list):
        container.append(copy.deepcopy(container[key]))
    else:
        container[key] = MARK
    odd = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    return json.dumps(content).replace(json.dumps(MARK), odd).encode()


def places_of(content):
    """All pairs of a list or dict and a key of it, at any depth."""
    if isinstance(content, dict | list):
        keys = content if isinstance(content, dict) else range(len(content))
        for key in keys:
            yield content, key
            yield from places_of(content[key])
