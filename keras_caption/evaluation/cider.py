from pycocoevalcap.cider.cider import Cider

from keras_caption.evaluation.captions import check_captions
from keras_caption.text import split_words


def cider(captions, references):
    """CIDEr-D of captions, computed without Java, for use during training.

    It differs from the `CIDEr-D` of `score` in the tokenizer only: words are split by
    `keras_caption.text.split_words` instead of a Java program, which is fast enough
    for every epoch.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, for these images at least.

    Returns:
        float, the mean over images.

    Raises:
        InputError: If there are no captions, or an image has no references.
    """
    check_captions(captions, references)

    def words(text):
        return " ".join(split_words(text))

    generated = {i: [words(caption)] for i, caption in captions.items()}
    true = {i: [words(reference) for reference in references[i]] for i in captions}
    return float(Cider().compute_score(true, generated)[0])
