from pycocoevalcap.cider.cider import Cider

from keras_caption.text import split_words


def cider(captions, references):
    """CIDEr-D of captions, for watching a training.

    It is pycocoevalcap's figure but for the tokenizer: words are split by
    `keras_caption.text.split_words` instead of a Java program, which makes it fast
    enough for every epoch, and a little different from the `CIDEr-D` of `score`.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, for these images at least.

    Returns:
        float, the mean over images.
    """

    def words(text):
        return " ".join(split_words(text))

    generated = {i: [words(caption)] for i, caption in captions.items()}
    true = {i: [words(reference) for reference in references[i]] for i in captions}
    return float(Cider().compute_score(true, generated)[0])
