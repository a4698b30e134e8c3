import collections
import functools
import itertools
import re
import unicodedata
from typing import Any, Literal

from keras_caption.base.errors import InputError, missing_extras

# Separators of words in a graph: hyphen, slash and all characters of `str.isspace`.
SPACES = r"\s\pZ\x{0b}\x{1c}-\x{1f}\x{85}"
SEPARATORS = rf"[-/{SPACES}]"
# All control characters but tabs, Unicode's line and paragraph separators, and
# surrogates, which UTF-8 cannot encode.
NOT_ON_A_LINE = re.compile("[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Which characters are punctuation: those of ASCII, or all of Unicode, see `fold`.
# Vocabularies saved by version 0.1 keep `"ascii"`, and with it their tokens.
Punctuation = Literal["ascii", "unicode"]
# Letters whose lower case in a graph depends on the locale of the process: Turkish and
# Azerbaijani drop the dot of i, Lithuanian adds one.
LOCAL_LETTERS = "IJ\u00cc\u00cd\u0128\u012e\u0130"
JOINERS = "\u200c\u200d"  # within words of Bengali, Persian and other scripts
NO_WIDTH = "\u200b"  # between words of Khmer and Thai
DASHES = "\u2044\u2212\u2215"  # beside Unicode's: minus, and slashes of fractions
APOSTROPHES = "\u00b4\u02bc"  # an accent and a letter that are typed as one
FULL_WIDTH = range(0xFF01, 0xFF5F)  # of keyboards of East Asia, in the order of ASCII
MARKS = 30  # in a row, of Unicode's Stream-Safe Text Format (UAX #15)
# Planes beyond that have punctuation, or what is not seen.
REST = range(0xFF5F, 0x20000), range(0xE0000, 0xE0200)


def canonical(text: str, lower: bool = False) -> str:
    """Converts a text to the form that tokenizers read: Unicode's NFC, without NUL.

    In NFC, a letter and its accent are one character, however they were typed.

    Args:
        text: str.
        lower: bool, whether to make it lower case.
    """
    if not isinstance(text, str):
        raise InputError(f"A text must be a str, received {text!r:.60}.")
    text = text.replace("\0", "")
    return nfc(text.lower() if lower else text)


def nfc(text: str) -> str:
    """Returns a text in Unicode's NFC.

    More marks in a row than any letter has are sorted in parts: Python takes the square
    of their number for it, and lets no other thread run.

    Args:
        text: str.
    """
    if text.isascii():
        return text
    parts, start = [], 0
    for marks in _many_marks().finditer(text):
        for end in range(marks.start() + MARKS, marks.end(), MARKS):
            parts.append(text[start:end])
            start = end
    parts.append(text[start:])
    return "".join(unicodedata.normalize("NFC", part) for part in parts)


@functools.cache
def _many_marks():
    """What matches more characters in a row than `MARKS` that NFC sorts."""
    codes = [
        code
        for code in range(0x300, 0x20000)
        if unicodedata.combining(unicodedata.normalize("NFD", chr(code))[0])
    ]
    marks = "".join(f"{chr(a)}-{chr(b)}" for a, b in _ranges(codes))
    return re.compile(f"[{marks}]{{{MARKS + 1},}}")


def canonical_in_graph(texts: Any, lower: bool = False, is_nfc: bool = False) -> Any:
    """Returns texts in a graph as `canonical` does.

    Args:
        texts: string `(batch,)`, TensorFlow tensor in UTF-8.
        lower: bool, whether to make them lower case.
        is_nfc: bool, whether the texts are in NFC already; the graph then needs no
            TensorFlow Text.
    """
    import tensorflow as tf

    texts = tf.strings.regex_replace(texts, r"\x00", "")
    if lower:
        # `tf.strings.lower` follows the locale; Python's `lower` does not.
        for letter in LOCAL_LETTERS:
            texts = tf.strings.regex_replace(texts, letter, letter.lower())
        texts = tf.strings.lower(texts, "utf-8")
    if is_nfc:
        return texts
    with missing_extras():
        import tensorflow_text

    return tensorflow_text.normalize_utf8(texts, "NFC")


def split_words(caption: str, punctuation: Punctuation = "unicode") -> list[str]:
    """Splits a caption into normalized words.

    Words are in lower case and in Unicode's NFC; hyphens and slashes separate words;
    other characters that are neither letters nor digits, nor the marks and joiners that
    follow them, such as the vowels of Hindi, are dropped, so that `"man's"` becomes
    `"mans"`. The `tokens` of Karpathy's split files follow the same rule.

    Args:
        caption: str.
        punctuation: str, see `Punctuation`.

    Returns:
        A list of str, empty if the caption has no words.
    """
    joiners = ""
    if punctuation == "unicode":
        caption, joiners = fold(caption), JOINERS
    caption = canonical(caption, lower=True).replace("-", " ").replace("/", " ")
    kept, in_word = [], False
    for c in caption:
        in_word = c.isalnum() or (
            in_word and (unicodedata.category(c)[0] == "M" or c in joiners)
        )
        if in_word or c.isspace():
            kept.append(c)
    return [word.rstrip(joiners or " ") for word in "".join(kept).split()]


def normalize_in_graph(
    texts: Any, is_nfc: bool = False, punctuation: Punctuation = "unicode"
) -> Any:
    """Normalizes texts in a graph: spaces separate the words of `split_words`.

    Args:
        texts: string `(batch,)`, TensorFlow tensor in UTF-8.
        is_nfc: bool, see `canonical_in_graph`.
        punctuation: str, see `Punctuation`.

    Returns:
        string `(batch,)`.
    """
    import tensorflow as tf

    if punctuation == "ascii":
        texts = canonical_in_graph(texts, lower=True, is_nfc=is_nfc)
        texts = tf.strings.regex_replace(texts, SEPARATORS, " ")
        return tf.strings.regex_replace(texts, r"([\pL\pN]\pM*)|[^ ]", r"\1")
    texts = canonical_in_graph(fold_in_graph(texts), lower=True, is_nfc=is_nfc)
    texts = tf.strings.regex_replace(texts, SEPARATORS, " ")
    word = rf"([\pL\pN][\pM{JOINERS}]*)|[^ ]"
    texts = tf.strings.regex_replace(texts, word, r"\1")
    return tf.strings.regex_replace(texts, f"[{JOINERS}]+( |$)", r"\1")


# === Punctuation of Unicode ===


def fold(text: str) -> str:
    """Replaces Unicode punctuation by ASCII punctuation.

    Full-width forms, of letters and digits too, become ASCII, and dashes become
    hyphens. Other punctuation, such as curly quotes, becomes an apostrophe, which the
    rules of captions and questions delete. Invisible characters are deleted, except for
    joiners within words; a zero-width space becomes a space.

    Args:
        text: str.
    """
    if not isinstance(text, str) or text.isascii():
        return text
    return "".join(map(_folded, text))


@functools.lru_cache(2**14)
def _folded(character):
    code = ord(character)
    if FULL_WIDTH[0] <= code <= FULL_WIDTH[-1]:
        return chr(code - FULL_WIDTH[0] + ord("!"))
    if code < 128 or character in JOINERS:
        return character
    category = unicodedata.category(character)
    if category == "Pd" or character in DASHES:
        return "-"
    if character == NO_WIDTH:
        return " "
    if category[0] == "P" or character in APOSTROPHES:
        return "'"
    return "" if category == "Cf" else character


def fold_in_graph(texts: Any) -> Any:
    """Folds texts in a graph as `fold` does.

    Args:
        texts: string `(batch,)`, TensorFlow tensor in UTF-8.

    Returns:
        string `(batch,)`.
    """
    import tensorflow as tf

    def shift(codes):
        is_full = (codes >= FULL_WIDTH[0]) & (codes <= FULL_WIDTH[-1])
        return tf.where(is_full, codes - (FULL_WIDTH[0] - ord("!")), codes)

    codes = tf.strings.unicode_decode(texts, "UTF-8")
    codes = tf.ragged.map_flat_values(shift, codes)
    texts = tf.strings.unicode_encode(codes, "UTF-8")
    for folded, characters in _folded_classes().items():
        texts = tf.strings.regex_replace(texts, characters, folded)
    return texts


@functools.cache
def _folded_classes():
    """Maps each result of `_folded` to a regular expression of its characters.

    Not Unicode's classes: TensorFlow's tables may be of another version than Python's.
    """
    codes = collections.defaultdict(list)
    for code in itertools.chain(range(128, FULL_WIDTH[0]), *REST):
        folded = _folded(chr(code))
        if folded != chr(code):
            codes[folded].append(code)
    classes = {}
    for folded, of_folded in codes.items():
        between = "".join(rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in _ranges(of_folded))
        classes[folded] = f"[{between}]"
    return classes


def _ranges(codes):
    """The first and the last of each range of sorted codes without a gap."""
    ranges = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def one_line(text: str) -> str:
    """Replaces characters that may end a line by spaces.

    These are the line ends of `str.splitlines`, at which the PTB tokenizer splits too,
    and other control characters, which a character-level model may generate.
    """
    return NOT_ON_A_LINE.sub(" ", text)
