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
