"""Chats in any protocol: the record that a model is to answer, and the reply."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pydantic

from keras_caption.apps.serve.rest_values import DATA, from_base64, in_utf8
from keras_caption.base.errors import InputError
from keras_caption.base.validation import describe

# Who speaks. An unknown role would hide the message of the user.
Role = Literal["user", "assistant", "system", "developer", "tool", "function"]
OF_USER = "where the role is user"  # of a field of messages


@dataclasses.dataclass(frozen=True)
class Message:
    """A message of a chat.

    Attributes:
        place: str, name of the message in the request, such as `"messages[0]"`.
        role: str, such as `"user"`.
        text: str.
        text_place: str, name of the text in the request.
        images: dict from the place of an image in the request to its address, or to its
            content in base64.
    """

    place: str
    role: str
    text: str
    text_place: str
    images: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Chat:
    """A request of texts about messages.

    Attributes:
        model: str, name of a served model.
        messages: List of `Message`, the oldest first.
        text_field: str, where the text of a user stands in requests of this form, such
            as `"messages[].content"`.
        image_field: str, where an image of a user stands.
        n: int, number of texts, or `None` for one.
        stream: bool, whether the reply comes as events.
        stream_usage: bool, whether an event has the numbers of tokens.
    """

    model: str
    messages: list[Message]
    text_field: str
    image_field: str
    n: int | None = None
    stream: bool = False
    stream_usage: bool = False


@dataclasses.dataclass(frozen=True)
class Reply:
    """What a model says in a chat.

    Attributes:
        texts: List of str, the best first.
        prompt_tokens: int, number of words of the text that the model reads.
        completion_tokens: int, number of tokens of the texts.
        seconds: float, time that the reply took.
    """

    texts: list[str]
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    @property
    def total_tokens(self) -> int:
        """Sum of both numbers of tokens."""
        return self.prompt_tokens + self.completion_tokens


@dataclasses.dataclass(frozen=True)
class ChatForm:
    """A protocol of chats.

    Attributes:
        read: Function from the body of a request to a `Chat`. It raises `InputError`.
        whole: Function from `Chat` and `Reply` to the body of the response, for JSON.
        events: Function from `Chat` and `Reply` to a response that is a stream. A beam
            has no text before its search ends, so that each text is one event.
        media_type: str, of streams.
        error: Function from a status and a sentence to the body of an error.
        loaded: Function from a `Chat` without messages, which asks whether its model is
            loaded, to the body of the response. Defaults to `None`, for protocols whose
            chats have messages.
    """

    read: Callable[[bytes], Chat]
    whole: Callable[[Chat, Reply], dict[str, Any]]
    events: Callable[[Chat, Reply], bytes]
    media_type: str
    error: Callable[[int, str], dict[str, Any]]
    loaded: Callable[[Chat], dict[str, Any]] | None = None


def read_body(content: bytes, schema: type[pydantic.BaseModel]) -> Any:
    """Reads the body of a request.

    Raises:
        InputError: If it does not follow the schema.
    """
    content = in_utf8(content)
    if not content.strip():
        raise InputError("The request has no body: it should be a JSON object.")
    try:
        return schema.model_validate_json(content, strict=True)
    except pydantic.ValidationError as error:
        raise InputError(
            f"The request is no chat: {describe(error, content)}."
        ) from None


def record_of(
    chat: Chat, reads: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The record that a model is to answer, and where its values stand in the request.

    A photo is the newest image of the user's messages, and a question about it, or a
    sentence to translate, is their newest text, whether it is in the message of the
    image, before or after it. A captioner ignores texts.

    Args:
        chat: `Chat`.
        reads: Sequence of str, names that a record of the model may have.

    Returns:
        dict of values; and dict of their places, by the same names.

    Raises:
        InputError: If there is no image or no text that the model reads, the newest
            message with images has several, or an image is not in the request itself.
    """
    messages = [message for message in chat.messages if message.role == "user"]
    with_text = [message for message in messages if message.text.strip()]
    record, places = {}, {}
    for name in "source", "question":
        if name in reads:
            if not with_text:
                raise InputError(
                    f"The chat has no text, the {name} that the model reads, in "
                    f"{chat.text_field}."
                )
            record[name] = with_text[-1].text
            places[name] = with_text[-1].text_place
    if "source" in record:
        return record, places
    with_images = [message for message in messages if message.images]
    if not with_images:
        raise InputError(
            f"The chat has no image, which the model reads, in {chat.image_field}."
        )
    newest = with_images[-1]
    if len(newest.images) > 1:
        raise InputError(
            f"{newest.place} has {len(newest.images)} images: send one, as the model "
            "reads one."
        )
    [(place, image)] = newest.images.items()
    return {"photo": photo_of(place, image), **record}, {"photo": place, **places}


def in_chat(message: str, places: dict[str, str]) -> str:
    """A message about record 0, with the places of its values in a chat.

    Args:
        message: str, of a predictor.
        places: dict of `record_of`.
    """
    for name, place in places.items():
        for value in (f"The {name} of record 0", f"`{name}` of record 0"):
            message = message.replace(value, place)
    return message.replace("Sentence 0", places.get("source", "Sentence 0"))


def photo_of(place: str, image: str) -> bytes:
    """The content of an image that is a data URI or base64.

    Raises:
        InputError: If it is neither.
    """
    try:
        return from_base64(place, image)
    except InputError:
        if DATA.match(image):
            raise
        raise InputError(
            f"{place} should be base64, or a data URI, data:image/jpeg;base64,...: no "
            "address is fetched."
        ) from None
