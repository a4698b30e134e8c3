"""Damage to files: of their bytes, and of the structure of JSON."""

import copy
import json

# Values in place of others, as JSON text: wrong types, sizes and names.
ODD_VALUES = (
    *("null", "true", "0", "-1", "3.0", "1e400", "NaN", "-Infinity", "9" * 5000),
    *("9" * 400, "9223372036854775808", '""', '" . "', '"\\u0000"', '"\\ud800"'),
    *('"../up.jpg"', '"/up.jpg"', f'"{"x" * 300}"', "[]", "{}", "[null]", '["a"]'),
    *('{"": null}', "[" * 200_000, "[[1, 2], [3, 4]]", '"train"'),
)
MARK = "value to replace"


def mutate_bytes(rng, content):
    """Changes, cuts, repeats or inserts some bytes."""
    start, end = sorted(rng.integers(0, len(content) + 1, 2))
    some = rng.bytes(rng.integers(1, 9))
    cut = content[start : min(end, start + int(rng.integers(1, 50)))]
    return [
        content[:start] + some + content[start + len(some) :],
        content[:start] + some + content[start:],
        content[:start] + content[start + len(cut) :],
        content[:start] + cut + content[start:],
        content[:start],
    ][rng.integers(5)]


def mutate_json(rng, content):
    """Replaces, removes, copies or doubles a value anywhere in JSON."""
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
