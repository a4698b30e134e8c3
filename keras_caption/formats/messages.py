from typing import Any

from keras_caption.base.errors import missing_extras

Fields = tuple[tuple[str, int, str], ...]
REPEATED = "repeated "


def message_class(
    messages: dict[str, Fields], name: str, defaults: dict[str, Any] | None = None
) -> Any:
    """Makes the class of a protobuf message, without a file that protoc generates.

    Such a file is generated for a version of protobuf, and cannot be imported with an
    older one. Fields that are not named are kept as they are, and not read.

    Args:
        messages: dict from the name of each message to its fields: name, number and
            type, a scalar type of protobuf or a message, after `repeated ` if there are
            several.
        name: str, the message of a whole file.
        defaults: dict from the name of a field to its default, if that is not 0.

    Returns:
        Class of protobuf, with `FromString`.

    Raises:
        InputError: If the package of protobuf is missing.
    """
    with missing_extras():
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    defaults = defaults or {}
    file = descriptor_pb2.FileDescriptorProto(name="read.proto", package="read")
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        for field, number, kind in fields:
            label = "REPEATED" if kind.startswith(REPEATED) else "OPTIONAL"
            kind = kind.removeprefix(REPEATED)
            message.field.add(
                name=field,
                number=number,
                label=f"LABEL_{label}",
                type=f"TYPE_{'MESSAGE' if kind in messages else kind.upper()}",
                type_name=f".read.{kind}" if kind in messages else None,
                default_value=str(defaults[field]) if field in defaults else None,
            )
    pool = descriptor_pool.DescriptorPool()  # the default one may have the same names
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"read.{name}"))
