import collections
import functools
from collections.abc import Iterable
from typing import Any, Self

from keras_caption.base.arguments import Count, check
from keras_caption.base.errors import InputError
from keras_caption.base.registration import serializable
from keras_caption.base.validation import is_unicode
from keras_caption.text.normalization import canonical, canonical_in_graph
from keras_caption.text.tokenizer import (
    SPECIAL_TOKENS,
    Tokenizer,
    check_strings,
    static_table,
)

BYTES = [bytes([value]) for value in range(256)]
# Ids of characters follow those of the special tokens and of the bytes.
FIRST = len(SPECIAL_TOKENS) + len(BYTES)
UNKNOWN = "\ufffd"


@serializable
class CharacterTokenizer(Tokenizer):
    """Tokenizer of Unicode characters, with bytes for unknown characters.

    Ids 4 to 259 are the bytes 0 to 255; the characters follow in the order given. A
    character that is not among them becomes the bytes of its UTF-8 encoding, so that
    nothing is unknown and every text is decoded exactly, in Unicode's NFC.

    Args:
        characters: Iterable of distinct str of one character each.

    Attributes:
        words: List of str, what each token id stands for, special tokens included.

    Raises:
        InputError: If `characters` is not a list, or if an element is not a single
            character or occurs twice.

    Example:

    ```python
    tokenizer = CharacterTokenizer.build(sentences)
    tokens = tokenizer.encode("Ein Hund.")    # [1, 272, 264, ..., 2]
    sentence = tokenizer.decode(tokens)       # "Ein Hund."
    ```
    """

    def __init__(self, characters: Iterable[str]):
        if isinstance(characters, str):
            characters = list(characters)
        self.characters = list(check_strings(characters, "Characters"))
        for index, character in enumerate(self.characters):
            if not is_unicode(character) or len(character) != 1:
                raise InputError(
                    f"Element {index} of the characters must be a str of one "
                    f"character, received {character!r:.60}."
                )
        self._ids = {c: FIRST + i for i, c in enumerate(self.characters)}
        if len(self._ids) < len(self.characters):
            raise InputError("The characters of a tokenizer must be distinct.")
        known = [character.encode() for character in self.characters]
        unknown = [UNKNOWN.encode()] * len(SPECIAL_TOKENS)
        self._pieces = [*unknown, *BYTES, *known]

    @classmethod
    def build(cls, texts: Iterable[str], min_count: int = 1) -> Self:
        """Collects the characters that occur at least `min_count` times.

        Args:
            texts: Iterable of str.
            min_count: int, at least 1: least number of occurrences.
        """
        check(Count, min_count=min_count)
        counts: collections.Counter[str] = collections.Counter()
        for text in check_strings(texts, "Texts"):
            counts.update(canonical(text))
        frequent = [c for c, count in counts.items() if count >= min_count]
        return cls(sorted(frequent, key=lambda c: (-counts[c], c)))

    @property
    def words(self) -> list[str]:
        names = [f"<0x{value:02X}>" for value in range(256)]
        return [*SPECIAL_TOKENS, *names, *self.characters]

    def __len__(self) -> int:
        return FIRST + len(self.characters)

    def to_ids(self, text: str) -> list[int]:
        ids = []
        for character in canonical(text):
            if character in self._ids:
                ids.append(self._ids[character])
            else:
                encoded = character.encode("utf-8", "replace")
                ids += [len(SPECIAL_TOKENS) + byte for byte in encoded]
        return ids

    def is_known(self, token: int) -> bool:
        return token >= FIRST and not self.is_space(token)

    def is_space(self, token: int) -> bool:
        return token >= FIRST and self.characters[token - FIRST].isspace()

    def to_text(self, ids: list[int]) -> str:
        return b"".join(self._pieces[i] for i in ids).decode("utf-8", "replace")

    def tokenize(self, texts: Any) -> Any:
        import tensorflow as tf

        characters = tf.strings.unicode_split(
            canonical_in_graph(texts), "UTF-8", errors="replace"
        )
        ids = self._table.lookup(characters.values)
        # For each character, a row with its id and a row with the ids of its bytes, one
        # of which is empty.
        known = tf.ragged.boolean_mask(ids[:, None], (ids >= 0)[:, None])
        unknown = tf.where(ids >= 0, "", characters.values)
        encoded = tf.ragged.map_flat_values(byte_ids, tf.strings.bytes_split(unknown))
        return characters.with_values(tf.concat([known, encoded], axis=1)).merge_dims(
            1, 2
        )

    def join_pieces(self, ids: Any) -> Any:
        import tensorflow as tf

        pieces = tf.ragged.map_flat_values(lambda i: tf.gather(self._pieces, i), ids)
        joined = tf.strings.reduce_join(pieces, axis=-1)
        return tf.strings.unicode_transcode(joined, "UTF-8", "UTF-8", "replace")

    def trackables(self) -> Any:
        return self._table

    @functools.cached_property
    def _table(self):
        return static_table(self._pieces[FIRST:], range(FIRST, len(self)), -1)

    def get_config(self) -> dict[str, Any]:
        return {"characters": self.characters}


def byte_ids(values: Any) -> Any:
    """Converts strings of one byte each, `(N,)`, to ids, int32 `(N,)`."""
    import tensorflow as tf

    codes = tf.reshape(tf.io.decode_raw(values, "uint8"), (-1,))
    return len(SPECIAL_TOKENS) + tf.cast(codes, tf.int32)
