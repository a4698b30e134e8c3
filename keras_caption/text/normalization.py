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
