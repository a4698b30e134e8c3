"""The pieces and special tokens of SentencePiece models, to read and to change."""

import functools
from typing import Any

from keras_caption.errors import missing_extras

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = range(1, 6)  # types of pieces
# Fields of sentencepiece_model.proto, by message: name, number and type. Protobuf keeps
# all other fields unchanged.
FIELDS = {
    "Model": (("pieces", 1, "Piece"), ("trainer_spec", 2, "Trainer")),
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
REPEATED = ("pieces",)
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
    """Builds the class of the message `Model`.

    SentencePiece's own class, in `sentencepiece_model_pb2`, is generated for a version
    of protobuf, and cannot be imported with an older one.
    """
    with missing_extras():
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="subwords.proto", package="subwords")
    for message_name, fields in FIELDS.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind in fields:
            label = "REPEATED" if name in REPEATED else "OPTIONAL"
            message.field.add(
                name=name,
                number=number,
                label=f"LABEL_{label}",
                type=f"TYPE_{'MESSAGE' if kind in FIELDS else kind.upper()}",
                type_name=f".subwords.{kind}" if kind in FIELDS else None,
                default_value=str(DEFAULTS[name]) if name in DEFAULTS else None,
            )
    pool = descriptor_pool.DescriptorPool()  # the default one may hold SentencePiece's
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("subwords.Model")
    return message_factory.GetMessageClass(descriptor)
