"""The words of the captions of scenes, for writing and for judging them."""

NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}

SIZE_WORDS = {"large": ("large", "big"), "small": ("small", "little")}

RELATION_PHRASES = {
    "inside": ("inside", "within"),
    "around": ("around",),
    "on top of": ("on top of", "resting on"),
    "next to": ("next to", "beside"),
    "left of": ("left of", "to the left of"),
    "right of": ("right of", "to the right of"),
    "above": ("above", "over"),
    "below": ("below", "under"),
    "far from": ("far from", "far away from"),
    "larger than": ("larger than", "bigger than"),
    "smaller than": ("smaller than",),
}


def plural(kind: str) -> str:
    return f"{kind}es" if kind == "cross" else f"{kind}s"


def article(words: str) -> str:
    return "an" if words[0] in "aeiou" else "a"
