# What separates words in a graph: hyphen, slash and all that `str.isspace` calls space.
SPACES = r"\s\pZ\x{0b}\x{1c}-\x{1f}\x{85}"
SEPARATORS = rf"[-/{SPACES}]"


def split_words(caption):
    """The words of a caption, as models see them.

    Lower case; hyphens and slashes separate words; every other character that
    is neither a letter nor a digit is dropped, so that `"man's"` becomes
    `"mans"`. This is the rule behind the `tokens` of Karpathy's split files.

    Args:
        caption: str.

    Returns:
        A list of words, empty where the caption has none.
    """
    caption = caption.lower().replace("-", " ").replace("/", " ")
    return "".join(c for c in caption if c.isalnum() or c.isspace()).split()


def normalize_in_graph(texts):
    """Texts whose words, as `split_words` gives them, are separated by spaces.

    Args:
        texts: string `(batch,)`, TensorFlow tensor in UTF-8.

    Returns:
        string `(batch,)`.
    """
    import tensorflow as tf

    texts = tf.strings.lower(texts, "utf-8")
    texts = tf.strings.regex_replace(texts, SEPARATORS, " ")
    return tf.strings.regex_replace(texts, r"[^\pL\pN ]", "")
