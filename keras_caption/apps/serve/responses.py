"""OpenAI's Responses API, as far as models of images and sentences answer it."""

import json
import time
import uuid
from typing import Annotated, Any, Literal

import pydantic
from pydantic_core import PydanticCustomError

from keras_caption.apps.serve.chat import (
    OF_USER,
    Chat,
    ChatForm,
    Message,
    Reply,
    Role,
    read_body,
)
from keras_caption.apps.serve.chat_completions import EVENT_STREAM, error_body
from keras_caption.formats.fields import Records


def refuse_state(value: Any) -> None:
    """Refuses the id of an earlier conversation, which this server has not kept."""
    if value is not None:
        raise PydanticCustomError(
            "state", "Conversations are not kept: send all messages as `input`"
        )


class TextPart(pydantic.BaseModel):
    """A text in a message, of the user or of an earlier response."""

    type: Literal["input_text", "output_text"]
    text: str


class ImagePart(pydantic.BaseModel):
    """An image in a message: a data URI, since no file is kept here."""

    type: Literal["input_image"]
    image_url: str


Part = Annotated[TextPart | ImagePart, pydantic.Field(discriminator="type")]


class InputMessage(pydantic.BaseModel):
    """A message."""

    type: Literal["message"] = "message"
    role: Role
    content: str | Records[Part]


class ResponseRequest(pydantic.BaseModel):
    """A request of a response. Other fields of OpenAI's are ignored."""

    model: str
    input: str | Annotated[Records[InputMessage], pydantic.Field(min_length=1)]
    stream: bool | None = False
    previous_response_id: Annotated[Any, pydantic.AfterValidator(refuse_state)] = None
    conversation: Annotated[Any, pydantic.AfterValidator(refuse_state)] = None


def read_response(content: bytes) -> Chat:
    """Reads the body of a request, see `ChatForm`."""
    request = read_body(content, ResponseRequest)
    if isinstance(request.input, str):
        messages = [Message("input", "user", request.input, "input")]
    else:
        messages = [*map(to_message, range(len(request.input)), request.input)]
    return Chat(
        request.model,
        messages,
        text_field=f"input[].content {OF_USER}",
        image_field=f"input[].content[].image_url {OF_USER}",
        stream=bool(request.stream),
    )


def to_message(i: int, message: InputMessage) -> Message:
    """A message of a request, at place `i`."""
    parts, place = message.content, f"input[{i}]"
    if isinstance(parts, str):
        parts = [TextPart(type="input_text", text=parts)]
    text = " ".join(part.text for part in parts if isinstance(part, TextPart))
    images = {
        f"{place}.content[{j}].image_url": part.image_url
        for j, part in enumerate(parts)
        if isinstance(part, ImagePart)
    }
    return Message(place, message.role, text, f"{place}.content", images)


def response(chat: Chat, reply: Reply) -> dict[str, Any]:
    """The response to a chat."""
    [text] = reply.texts
    content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": chat.model,
        "output": [message],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
        "usage": {
            "input_tokens": reply.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": reply.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.total_tokens,
        },
    }


def events(chat: Chat, reply: Reply) -> bytes:
    """The response to a chat as server-sent events."""
    whole = response(chat, reply)
    [message] = whole["output"]
    [content] = message["content"]
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    empty = {**message, "status": "in_progress", "content": []}
    item, part = {"output_index": 0}, {"item_id": message["id"], "content_index": 0}
    part |= item
    text = {**part, "logprobs": []}
    lines = []
    steps: list[tuple[str, dict[str, Any]]] = [
        ("created", {"response": begun}),
        ("in_progress", {"response": begun}),
        ("output_item.added", {**item, "item": empty}),
        ("content_part.added", {**part, "part": {**content, "text": ""}}),
        ("output_text.delta", {**text, "delta": content["text"]}),
        ("output_text.done", {**text, "text": content["text"]}),
        ("content_part.done", {**part, "part": content}),
        ("output_item.done", {**item, "item": message}),
        ("completed", {"response": whole}),
    ]
    for number, (kind, values) in enumerate(steps):
        kind = f"response.{kind}"
        event = {"type": kind, "sequence_number": number, **values}
        lines.append(f"event: {kind}\ndata: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


RESPONSES = ChatForm(read_response, response, events, EVENT_STREAM, error_body)
