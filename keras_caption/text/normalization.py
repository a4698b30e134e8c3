from typing import Any

# What separates words in a graph: hyphen, slash and all that `str.isspace` calls space.
SPACES = r"\s\pZ\x{0b}\x{1c}-\x{1f}\x{85}"
SEPARATORS = rf"[-/{SPACES}]"


def split_words(caption: str) -> list[str]:
    """Splits a caption into normalized words.

    Words are in lower case; hyphens and slashes separate words; other characters that
    are neither letters nor digits are dropped, so that `"man's"` becomes `"mans"`. The
    `tokens` of Karpathy's split files follow the same rule.

    Args:
        caption: str.

    Returns:
        A list of str, empty if the caption has no words.
    """
    caption = caption.lower().replace("-", " ").replace("/", " ")
    return "".join(c for c in caption if c.isalnum() or c.isspace()).split()


def normalize_in_graph(texts: Any) -> Any:
    """Normalizes texts in a graph: spaces separate the words of `split_words`.

    Args:
        texts: string `(batch,)`, TensorFlow tensor in UTF-8.

    Returns:
        string `(batch,)`.
    """
    import tensorflow as tf

    texts = tf.strings.lower(texts, "utf-8")
    texts = tf.strings.regex_replace(texts, SEPARATORS, " ")
    return tf.strings.regex_replace(texts, r"[^\pL\pN ]", "")
