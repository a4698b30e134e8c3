"""The pieces and special tokens of SentencePiece models, to read and to change."""

import functools
from typing import Any

from keras_caption.formats.messages import message_class

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = range(1, 6)  # types of pieces
# Fields of sentencepiece_model.proto, by message: name, number and type. Protobuf keeps
# all other fields unchanged.
FIELDS = {
    "Model": (("pieces", 1, "repeated Piece"), ("trainer_spec", 2, "Trainer")),
    "Piece": (("piece", 1, "string"), ("score", 2, "float"), ("type", 3, "int32")),
    "Trainer": (
        ("vocab_size", 4, "int32"),
        *(
            (f"{token}_{field}", number, kind)
            for field, kind, first in (("id", "int32", 40), ("piece", "string", 45))
            for number, token in enumerate(("unk", "bos", "eos", "pad"), start=first)
        ),
    ),
}
DEFAULTS = {"type": NORMAL}  # of fields whose default is not 0


def parse_model(content: bytes) -> Any:
    """Parses a SentencePiece model.

    Args:
        content: bytes of a file that SentencePiece has read.

    Returns:
        protobuf message, with `pieces`, each with `piece`, `score` and `type`, and with
        `trainer_spec`.
    """
    return _model_class().FromString(content)


@functools.cache
def _model_class():
    return message_class(FIELDS, "Model", DEFAULTS)
