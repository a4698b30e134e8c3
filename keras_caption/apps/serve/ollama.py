"""Ollama's API, as far as models of images and sentences answer it."""

import datetime
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

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

# The release whose forms these are: clients ask for it, and some refuse earlier ones.
RELEASE = "0.6.4"  # the first whose `/api/show` says what a model can do
LATEST = ":latest"  # the tag that clients add to a name without one
EPOCH = "1970-01-01T00:00:00Z"  # the time of models of which none is known
DETAILS = {
    "parent_model": "",
    "format": "keras",
    "family": "keras_caption",
    "families": ["keras_caption"],
    "parameter_size": "",
    "quantization_level": "",
}


def without_tag(name: str) -> str:
    return name.removesuffix(LATEST)


Name = Annotated[str, pydantic.AfterValidator(without_tag)]


class GenerateRequest(pydantic.BaseModel):
    """A request of a text. Other fields of Ollama's are ignored."""

    model: Name
    prompt: str | None = None
    images: Records[str] | None = None
    stream: bool | None = None


class ChatMessage(pydantic.BaseModel):
    """A message of a chat."""

    role: Role
    content: str | None = None
    images: Records[str] | None = None


class ChatRequest(pydantic.BaseModel):
    """A request of a message. Other fields of Ollama's are ignored."""

    model: Name
    messages: Records[ChatMessage] | None = None
    stream: bool | None = None


class ShowRequest(pydantic.BaseModel):
    """A request of what is known of a model, which old clients call `name`."""

    model: Annotated[
        Name, pydantic.Field(validation_alias=pydantic.AliasChoices("model", "name"))
    ]


def read_generate(content: bytes) -> Chat:
    """Reads the body of a request, see `ChatForm`."""
    request = read_body(content, GenerateRequest)
    images = images_of("images", request.images)
    text = request.prompt or ""
    message = Message("The request", "user", text, "prompt", images)
    return Chat(
        request.model,
        [message] if text or images else [],
        text_field="prompt",
        image_field="images",
        stream=request.stream is not False,
    )


def read_chat(content: bytes) -> Chat:
    """Reads the body of a request, see `ChatForm`."""
    request = read_body(content, ChatRequest)
    messages = []
    for i, message in enumerate(request.messages or []):
        images = images_of(f"messages[{i}].images", message.images)
        text = message.content or ""
        said = f"messages[{i}].content"
        messages.append(Message(f"messages[{i}]", message.role, text, said, images))
    return Chat(
        request.model,
        messages,
        text_field=f"messages[].content {OF_USER}",
        image_field=f"messages[].images {OF_USER}",
        stream=request.stream is not False,
    )


def images_of(place: str, images: list[str] | None) -> dict[str, str]:
    """Images in base64 by their places in the request."""
    return {f"{place}[{i}]": image for i, image in enumerate(images or [])}


def head(chat: Chat) -> dict[str, Any]:
    """The beginning of each object of a response."""
    now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
    return {"model": chat.model, "created_at": now}


def end(reply: Reply) -> dict[str, Any]:
    """The end of the last object of a response; times are in nanoseconds."""
    time = int(reply.seconds * 1e9)
    return {
        "done": True,
        "done_reason": "stop",
        "total_duration": time,
        "load_duration": 0,
        "prompt_eval_count": reply.prompt_tokens,
        "prompt_eval_duration": 0,
        "eval_count": reply.completion_tokens,
        "eval_duration": time,
    }


def in_lines(objects: Iterable[dict[str, Any]]) -> bytes:
    """Objects as lines of JSON."""
    return "".join(f"{json.dumps(x)}\n" for x in objects).encode()


def tags(names: Iterable[str]) -> dict[str, Any]:
    """The list of models."""
    models = [
        {
            "name": name,
            "model": name,
            "modified_at": EPOCH,
            "size": 0,
            "digest": "",
            "details": DETAILS,
        }
        for name in names
    ]
    return {"models": models}


def read_show(content: bytes) -> str:
    """The name of the model in a request of what is known of it.

    Raises:
        InputError: If the body has another form.
    """
    return read_body(content, ShowRequest).model


def shown(reads: Sequence[str]) -> dict[str, Any]:
    """What is known of a model, by the names that its records may have."""
    capabilities = ["completion", *["vision"] * ("photo" in reads)]
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "modified_at": EPOCH,
        "details": DETAILS,
        "model_info": {},
        "capabilities": capabilities,
    }


def error_body(status: int, message: str) -> dict[str, Any]:
    """The body of a request that is refused."""
    return {"error": message}


LINES = "application/x-ndjson"


def form_of(
    read: Callable[[bytes], Chat], said: Callable[[str], dict[str, Any]]
) -> ChatForm:
    """The form of a request, see `ChatForm`.

    Args:
        read: Function that reads a request.
        said: Function from a text to the part of a response that has it.
    """

    def whole(chat, reply):
        [text] = reply.texts
        return {**head(chat), **said(text), **end(reply)}

    def events(chat, reply):
        [text] = reply.texts
        last = {**whole(chat, reply), **said("")}
        return in_lines([{**head(chat), **said(text), "done": False}, last])

    def loaded(chat):
        return {**head(chat), **said(""), "done": True, "done_reason": "load"}

    return ChatForm(read, whole, events, LINES, error_body, loaded)


GENERATE = form_of(read_generate, lambda text: {"response": text})
CHAT = form_of(
    read_chat, lambda text: {"message": {"role": "assistant", "content": text}}
)
