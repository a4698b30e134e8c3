import base64
import io
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import Field

from keras_caption.base.arguments import check
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.registration import serializable
from keras_caption.text.normalization import canonical, canonical_in_graph
from keras_caption.text.tokenizer import (
    BOS,
    EOS,
    PAD,
    SPECIAL_TOKENS,
    UNK,
    Tokenizer,
    check_strings,
)

BYTES = 256
# SentencePiece needs at least one further piece, and its numbers have 32 bits.
VocabularySize = Annotated[int, Field(gt=len(SPECIAL_TOKENS) + BYTES, lt=2**31)]


@serializable
class SubwordTokenizer(Tokenizer):
    """Tokenizer of subwords by byte-pair encoding, a SentencePiece model.

    SentencePiece normalizes text: Unicode's NFKC, and single spaces.
    Characters that were not in the training text are tokenized as bytes, so that
    nothing is unknown.

    Args:
        model: str, the SentencePiece model in base64, with the ids of special tokens
            as here. `build` makes one.
        size: int, number of tokens. Later pieces of the model become UNK, such as those
            without an embedding in a converted model. Defaults to `None`, all pieces.

    Raises:
        InputError: If `model` is not a SentencePiece model with these special tokens.

    Example:

    ```python
    tokenizer = SubwordTokenizer.build(sentences, vocabulary_size=8000)
    tokens = tokenizer.encode("A playhouse.")    # [1, 262, 1803, 507, 7919, 2]
    sentence = tokenizer.decode(tokens)          # "A playhouse."
    ```

    Reference:
        Kudo, Richardson, "SentencePiece", EMNLP 2018; Sennrich, Haddow, Birch,
        "Neural Machine Translation of Rare Words with Subword Units", ACL 2016.
    """

    asset = "model", "vocabulary.spm"

    def __init__(self, model: str, size: int | None = None):
        from sentencepiece import SentencePieceProcessor

        self.model = model
        self.size = size
        self._traced: Any = None  # a `tf.Module`
        try:
            self._proto = base64.b64decode(model, validate=True)
            self._processor = SentencePieceProcessor(model_proto=self._proto)
            ids = self._processor
            special = [ids.pad_id(), ids.bos_id(), ids.eos_id(), ids.unk_id()]
        except (RuntimeError, TypeError, ValueError):
            special = None
        if special != [PAD, BOS, EOS, UNK]:
            raise InputError(
                "The model of a SubwordTokenizer is no SentencePiece model with PAD 0, "
                "BOS 1, EOS 2 and UNK 3."
            )

    @classmethod
    def build(cls, texts: Iterable[str], vocabulary_size: int = 8000) -> Self:
        """Learns subwords from text.

        Args:
            texts: Iterable of str.
            vocabulary_size: int, number of subwords, with the 4 special tokens and
                256 bytes.

        Raises:
            InputError: If the text is empty, or too small for so many subwords.
        """
        from sentencepiece import SentencePieceTrainer

        check(VocabularySize, vocabulary_size=vocabulary_size)
        model = io.BytesIO()
        try:
            SentencePieceTrainer.train(
                sentence_iterator=map(canonical, check_strings(texts, "Texts")),
                model_writer=model,
                model_type="bpe",
                vocab_size=vocabulary_size,
                character_coverage=1.0,
                byte_fallback=True,
                pad_id=PAD,
                bos_id=BOS,
                eos_id=EOS,
                unk_id=UNK,
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error).rpartition("] ")[2] or "it is empty."
            raise InputError(
                f"The text does not yield {vocabulary_size} subwords: {reason}"
            ) from None
        return cls(base64.b64encode(model.getvalue()).decode())

    def __len__(self) -> int:
        return self.size or self._processor.get_piece_size()

    def to_ids(self, text: str) -> list[int]:
        ids = self._processor.encode(canonical(text))
        return [i if i < len(self) else UNK for i in ids]

    def is_known(self, token: int) -> bool:
        is_byte = self._processor.is_byte(token)
        return token > UNK and not is_byte and not self.is_space(token)

    def is_space(self, token: int) -> bool:
        is_byte = self._processor.is_byte(token)
        return token > UNK and not is_byte and not self._processor.decode([token])

    def shares_ids(self, other: Tokenizer) -> bool:
        return isinstance(other, SubwordTokenizer) and self._pieces() == other._pieces()

    def _pieces(self):
        return [self._processor.id_to_piece(i) for i in range(len(self))]

    def to_text(self, ids: list[int]) -> str:
        return self._processor.decode(ids)

    def tokenize(self, texts: Any) -> Any:
        import tensorflow as tf

        ids = self._in_graph().tokenize(canonical_in_graph(texts))
        if self.size is None:
            return ids
        return tf.ragged.map_flat_values(lambda i: tf.where(i < len(self), i, UNK), ids)

    def join_pieces(self, ids: Any) -> Any:
        return self._in_graph().detokenize(ids)

    def trackables(self) -> Any:
        # A `tf.Module` tracks its list; saving traces functions, which append to it.
        if self._traced is None:
            import tensorflow as tf

            self._traced = tf.Module()
            self._traced.tokenizers = []
        return self._traced

    def _in_graph(self):
        """Makes a TensorFlow tokenizer, which is kept if a graph captures it.

        It is not cached: setting TensorFlow's random seed destroys the resource of an
        earlier tokenizer, which a kernel owns.
        """
        with missing_extras():
            import tensorflow as tf
            import tensorflow_text

        with tf.init_scope():
            tokenizer = tensorflow_text.SentencepieceTokenizer(model=self._proto)
        if not tf.executing_eagerly():
            self.trackables().tokenizers.append(tokenizer)
        return tokenizer

    def get_config(self) -> dict[str, Any]:
        return {"model": self.model, **({"size": self.size} if self.size else {})}
