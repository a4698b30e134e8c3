import re
import unicodedata
from typing import Any

from keras_caption.errors import InputError, missing_extras

# What separates words in a graph: hyphen, slash and all that `str.isspace` calls space.
SPACES = r"\s\pZ\x{0b}\x{1c}-\x{1f}\x{85}"
SEPARATORS = rf"[-/{SPACES}]"
# All control characters but tabs, Unicode's line and paragraph separators, and
# surrogates, which UTF-8 cannot encode.
NOT_ON_A_LINE = re.compile("[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def canonical(text: str, lower: bool = False) -> str:
    """Returns a text as all tokenizers read it: in Unicode's NFC, without NUL.

    So a letter and its accent are one character, however they were typed.

    Args:
        text: str.
        lower: bool, whether to make it lower case.
    """
    if not isinstance(text, str):
        raise InputError(f"A text must be a str, received {text!r:.60}.")
    text = text.replace("\0", "")
    return unicodedata.normalize("NFC", text.lower() if lower else text)


def canonical_in_graph(texts: Any, lower: bool = False, is_nfc: bool = False) -> Any:
    """Returns texts in a graph as `canonical` does.

    Args:
        texts: string `(batch,)`, TensorFlow tensor in UTF-8.
        lower: bool, whether to make them lower case.
        is_nfc: bool, whether they are in NFC already: then the graph needs no
            TensorFlow Text.
    """
    import tensorflow as tf

    texts = tf.strings.regex_replace(texts, r"\x00", "")
    if lower:
        texts = tf.strings.lower(texts, "utf-8")
    if is_nfc:
        return texts
    with missing_extras():
        import tensorflow_text

    return tensorflow_text.normalize_utf8(texts, "NFC")


def split_words(caption: str) -> list[str]:
    """Splits a caption into normalized words.

    Words are in lower case and in Unicode's NFC; hyphens and slashes separate words;
    other characters that are neither letters nor digits, nor the marks that follow
    them, such as the vowels of Hindi, are dropped, so that `"man's"` becomes `"mans"`.
    The `tokens` of Karpathy's split files follow the same rule.

    Args:
        caption: str.

    Returns:
        A list of str, empty if the caption has no words.
    """
    caption = canonical(caption, lower=True).replace("-", " ").replace("/", " ")
    kept, in_word = [], False
    for c in caption:
        in_word = c.isalnum() or (in_word and unicodedata.category(c)[0] == "M")
        if in_word or c.isspace():
            kept.append(c)
    return "".join(kept).split()


def normalize_in_graph(texts: Any, is_nfc: bool = False) -> Any:
    """Normalizes texts in a graph: spaces separate the words of `split_words`.

    Args:
        texts: string `(batch,)`, TensorFlow tensor in UTF-8.
        is_nfc: bool, whether they are in NFC, see `canonical_in_graph`.

    Returns:
        string `(batch,)`.
    """
    import tensorflow as tf

    texts = canonical_in_graph(texts, lower=True, is_nfc=is_nfc)
    texts = tf.strings.regex_replace(texts, SEPARATORS, " ")
    return tf.strings.regex_replace(texts, r"([\pL\pN]\pM*)|[^ ]", r"\1")


def one_line(text: str) -> str:
    """Replaces characters that may end a line by spaces.

    They are those of `str.splitlines`, at which the PTB tokenizer splits lines too, and
    other control characters; a model of characters may generate them.
    """
    return NOT_ON_A_LINE.sub(" ", text)
