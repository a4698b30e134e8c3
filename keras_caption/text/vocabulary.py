import collections

import keras

from keras_caption.text.normalization import split_words

PAD, BOS, EOS, UNK = range(4)
SPECIAL_WORDS = ("<pad>", "<bos>", "<eos>", "<unk>")


@keras.saving.register_keras_serializable("keras_caption")
class Vocabulary:
    """The words that a model knows, and their token ids.

    Ids 0 to 3 are PAD, BOS (begin), EOS (end) and UNK (any other word); the words
    follow in the order given. `len` counts all of them.

    Args:
        words: Distinct words, without the special ones.

    Raises:
        ValueError: If a word occurs twice.

    Example:

    ```python
    vocabulary = Vocabulary.build(captions, min_count=5)
    tokens = vocabulary.encode("A dog on a beach.")    # [1, 4, 9, ..., 2]
    caption = vocabulary.decode(tokens)                # "a dog on a beach"
    ```
    """

    def __init__(self, words):
        self.words = [*SPECIAL_WORDS, *words]
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) < len(self.words):
            counts = collections.Counter(self.words)
            raise ValueError(
                "Words of a vocabulary must be distinct. "
                f"More than once: {[w for w, n in counts.items() if n > 1][:5]}"
            )

    @classmethod
    def build(cls, captions, min_count=5):
        """Builds the vocabulary of a set of captions.

        Keeps the words that occur at least `min_count` times, the most frequent
        first, words of one frequency in alphabetical order.

        Which images the captions are of decides how many words there are:
        `keras_caption.data.build_vocabulary` counts those of the training images, or
        of all images, as the published vocabularies of COCO do.

        Args:
            captions: Iterable of str.
            min_count: int, least number of occurrences of a word.
        """
        counts = collections.Counter()
        for caption in captions:
            counts.update(split_words(caption))
        frequent = [word for word, count in counts.items() if count >= min_count]
        return cls(sorted(frequent, key=lambda word: (-counts[word], word)))

    def encode(self, caption, max_words=None):
        """Token ids of a caption, from BOS to EOS.

        Args:
            caption: str.
            max_words: Cut the caption after so many words.

        Returns:
            A list of int.
        """
        words = split_words(caption)[:max_words]
        return [BOS, *(self._ids.get(word, UNK) for word in words), EOS]

    def decode(self, tokens):
        """The caption of token ids: the words between BOS and EOS.

        Args:
            tokens: Sequence of int; what follows the first EOS is ignored.

        Returns:
            str.

        Raises:
            ValueError: If a token is not in the vocabulary.
        """
        words = []
        for token in tokens:
            if not 0 <= token < len(self):
                raise ValueError(
                    f"Token {token} is not one of the {len(self)} of this vocabulary; "
                    "it comes from another one."
                )
            if token == EOS:
                break
            if token not in (PAD, BOS):
                words.append(self.words[token])
        return " ".join(words)

    def __len__(self):
        return len(self.words)

    def __eq__(self, other):
        return isinstance(other, Vocabulary) and self.words == other.words

    __hash__ = None

    def get_config(self):
        return {"words": self.words[len(SPECIAL_WORDS) :]}

    @classmethod
    def from_config(cls, config):
        return cls(**config)
