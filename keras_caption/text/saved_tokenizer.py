from typing import Any

from keras_caption.text.characters import CharacterTokenizer
from keras_caption.text.questions import QuestionTokenizer
from keras_caption.text.subwords import SubwordTokenizer
from keras_caption.text.tokenizer import Tokenizer
from keras_caption.text.vocabulary import Vocabulary
from keras_caption.text.words import WordTokenizer

KINDS = {
    f"keras_caption>{kind.__name__}": kind
    for kind in (
        CharacterTokenizer,
        QuestionTokenizer,
        SubwordTokenizer,
        Vocabulary,
        WordTokenizer,
    )
}


def tokenizer_of(described: dict[str, Any] | None) -> Tokenizer | None:
    """Makes the tokenizer of a description.

    Args:
        described: dict of `class`, a name that is registered in Keras, and `config`; or
            `None`, for no tokenizer.

    Raises:
        ValueError: If neither this package nor Keras has a tokenizer of that name.
    """
    if described is None:
        return None
    kind = KINDS.get(described["class"])
    if kind is None:
        import keras

        kind = keras.saving.get_registered_object(described["class"])
    if kind is None or not issubclass(kind, Tokenizer):
        raise ValueError(f"{described['class']!r:.60} is no tokenizer")
    return kind.from_config(described["config"])
