"""OpenAI's chat completions, as far as models of images and sentences answer them."""

import json
import re
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import pydantic

from keras_caption.errors import InputError
from keras_caption.predict import Prediction
from keras_caption.serving.rest_values import DATA, from_base64
from keras_caption.validation import describe

IMAGE = "The image of a chat"


class ImageUrl(pydantic.BaseModel):
    """The address of an image, which is the image itself: a data URI."""

    url: str


class TextPart(pydantic.BaseModel):
    """A text in a message."""

    type: Literal["text"]
    text: str


class ImagePart(pydantic.BaseModel):
    """An image in a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


Part = Annotated[TextPart | ImagePart, pydantic.Field(discriminator="type")]


class Message(pydantic.BaseModel):
    """A message of a chat."""

    role: str
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """The texts of the message."""
        if isinstance(self.content, list):
            texts = (part.text for part in self.content if isinstance(part, TextPart))
            return " ".join(texts)
        return self.content or ""

    @property
    def images(self) -> list[str]:
        """The addresses of the images of the message."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.image_url.url for part in parts if isinstance(part, ImagePart)]


class ChatRequest(pydantic.BaseModel):
    """A request of a chat completion. Other fields of OpenAI's are ignored.

    Attributes:
        model: str, name of a served model.
        messages: list of `Message`, the oldest first.
        n: int, number of texts.
        stream: bool, whether the answer comes as server-sent events.
    """

    model: str
    messages: Annotated[list[Message], pydantic.Field(min_length=1)]
    n: int | None = None
    stream: bool | None = False


def read_chat(content: bytes) -> ChatRequest:
    """Reads the body of a request.

    Raises:
        InputError: If it is no chat.
    """
    try:
        return ChatRequest.model_validate_json(content)
    except pydantic.ValidationError as error:
        raise InputError(f"The request is no chat: {describe(error)}.") from None


def record_of(chat: ChatRequest, reads: Sequence[str]) -> dict[str, Any]:
    """The record that a model is to answer.

    A photo is the newest image of the user's messages, so that a chat may continue
    about it. A question about it, or a sentence to translate, is the text of the
    user's last message; a captioner ignores texts.

    Args:
        chat: `ChatRequest`.
        reads: Sequence of str, names that a record of the model may have.

    Raises:
        InputError: If there is no image for a model of images, there are several, or
            one is no data URI.
    """
    messages = [message for message in chat.messages if message.role == "user"]
    text = messages[-1].text if messages else ""
    if "source" in reads:
        return {"source": text}
    with_images = [message.images for message in messages if message.images]
    if not with_images:
        raise InputError("The chat has no image, which the model reads.")
    if len(with_images[-1]) > 1:
        raise InputError("The last message with images has several: send one.")
    [address] = with_images[-1]
    if not re.match(DATA, address):
        raise InputError(
            f"{IMAGE} should be a data URI, data:image/jpeg;base64,...: no address is "
            "fetched."
        )
    record = {"photo": from_base64(IMAGE, address)}
    return {**record, "question": text} if "question" in reads else record


def texts_of(found: Prediction) -> list[str]:
    """The texts of a prediction, the best first; one that is empty if it has none."""
    return [text for text, _ in found.best] or [found.text]


def completion(chat: ChatRequest, texts: Iterable[str]) -> dict[str, Any]:
    """The answer to a chat, for JSON."""
    return described(
        chat,
        "chat.completion",
        [
            {
                "index": i,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop",
            }
            for i, text in enumerate(texts)
        ],
    )


def events(chat: ChatRequest, texts: Iterable[str]) -> bytes:
    """The answer to a chat as server-sent events.

    A beam has no text before its search ends, so that each text is one event.
    """
    choices = []
    for i, text in enumerate(texts):
        delta = {"role": "assistant", "content": text}
        choices.append({"index": i, "delta": delta, "finish_reason": None})
        choices.append({"index": i, "delta": {}, "finish_reason": "stop"})
    chunk = described(chat, "chat.completion.chunk", [])
    lines = [json.dumps({**chunk, "choices": [choice]}) for choice in choices]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


def described(
    chat: ChatRequest, kind: str, choices: list[dict[str, Any]]
) -> dict[str, Any]:
    """An object of OpenAI's that has choices."""
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": chat.model,
        "choices": choices,
    }


def model_entry(name: str) -> dict[str, Any]:
    """A model in OpenAI's list of them."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "keras_caption"}


def error_body(status: int, message: str) -> dict[str, Any]:
    """The body of a request that is refused."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
