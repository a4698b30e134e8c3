"""OpenAI's chat completions, as far as models of images and sentences answer them."""

import json
import time
import uuid
from typing import Annotated, Any, Literal

import pydantic

from keras_caption.apps.serve.chat import (
    OF_USER,
    Chat,
    ChatForm,
    Message,
    Reply,
    Role,
    read_body,
)
from keras_caption.formats.fields import Records


def as_object(value: Any) -> Any:
    """The address of an image as an object: several clients send the address alone."""
    return {"url": value} if isinstance(value, str) else value


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
    image_url: Annotated[
        ImageUrl,
        pydantic.BeforeValidator(as_object, json_schema_input_type=str | ImageUrl),
    ]


Part = Annotated[TextPart | ImagePart, pydantic.Field(discriminator="type")]


class ChatMessage(pydantic.BaseModel):
    """A message of a chat."""

    role: Role
    content: str | Records[Part] | None = None


class StreamOptions(pydantic.BaseModel):
    """What a stream has beside the text."""

    include_usage: bool | None = False


class ChatRequest(pydantic.BaseModel):
    """A request of a chat completion. Other fields of OpenAI's are ignored."""

    model: str
    messages: Annotated[Records[ChatMessage], pydantic.Field(min_length=1)]
    n: int | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None


def read_chat(content: bytes) -> Chat:
    """Reads the body of a request, see `ChatForm`."""
    request = read_body(content, ChatRequest)
    messages = []
    for i, message in enumerate(request.messages):
        parts, place = message.content or [], f"messages[{i}]"
        if isinstance(parts, str):
            parts = [TextPart(type="text", text=parts)]
        text = " ".join(part.text for part in parts if isinstance(part, TextPart))
        images = {
            f"{place}.content[{j}].image_url.url": part.image_url.url
            for j, part in enumerate(parts)
            if isinstance(part, ImagePart)
        }
        said = f"{place}.content"
        messages.append(Message(place, message.role, text, said, images))
    options = request.stream_options
    return Chat(
        request.model,
        messages,
        text_field=f"messages[].content {OF_USER}",
        image_field=f"messages[].content[].image_url.url {OF_USER}",
        n=request.n,
        stream=bool(request.stream),
        stream_usage=bool(options and options.include_usage),
    )


def completion(chat: Chat, reply: Reply) -> dict[str, Any]:
    """The response to a chat."""
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        for i, text in enumerate(reply.texts)
    ]
    body = described(chat, "chat.completion", choices)
    return {**body, "usage": usage_of(reply)}


def events(chat: Chat, reply: Reply) -> bytes:
    """The response to a chat as server-sent events."""
    chunk = described(chat, "chat.completion.chunk", [])
    if chat.stream_usage:
        chunk["usage"] = None
    chunks = []
    for i, text in enumerate(reply.texts):
        said = {"role": "assistant", "content": text}
        for delta, reason in ((said, None), ({}, "stop")):
            choice = {"index": i, "delta": delta, "finish_reason": reason}
            chunks.append({**chunk, "choices": [choice]})
    if chat.stream_usage:
        chunks.append({**chunk, "usage": usage_of(reply)})
    lines = [*map(json.dumps, chunks), "[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def usage_of(reply: Reply) -> dict[str, int]:
    """The numbers of tokens of a reply."""
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.total_tokens,
    }


def described(chat: Chat, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
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


EVENT_STREAM = "text/event-stream"
CHAT_COMPLETIONS = ChatForm(read_chat, completion, events, EVENT_STREAM, error_body)
