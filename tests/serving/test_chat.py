"""OpenAI's chat completions, asked for by OpenAI's client."""

import base64
import contextlib
import pathlib

import httpx
import openai
import pytest

import keras_caption as kc
from keras_caption.serving import Limits, Prediction, Server

PHOTO = b"\xff\xd8photo"
URI = f"data:image/jpeg;base64,{base64.b64encode(PHOTO).decode()}"


class Echo:
    """A model that says what it was asked."""

    signatures = {}

    def __init__(self, *reads):
        self.reads = reads

    def effort(self, records, n, options):
        return n or 1

    def check_options(self, n, options):
        pass

    def warm_up(self):
        pass

    def read(self, record, place=0, max_pixels=0):
        if not {*record} <= {*self.reads} or record.get("photo", PHOTO) != PHOTO:
            raise kc.InputError("The photo of record 0 is no image.")
        return record

    def answer(self, examples, *, n=None, attention=False):
        texts = [" ".join([*map(str, x), x.get("question", "")]) for x in examples]
        return [
            Prediction(x, best=[(f"{x}{i or ''}", -i) for i in range(n or 1)])
            for x in texts
        ]


@pytest.fixture
def client(tmp_path):
    with (
        serving(tmp_path) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="s3cret", max_retries=0) as client,
    ):
        yield client


@contextlib.contextmanager
def serving(tmp_path):
    (tmp_path / "model.keras").touch()
    server = Server(Limits(max_body=1000), token="s3cret")
    for name, reads in (
        ("captioner", ("photo",)),
        ("answerer", ("photo", "question")),
        ("translator", ("source",)),
    ):
        model = Echo(*reads)
        server.service.add(name, str(tmp_path / "model.keras"), lambda _, m=model: m)
    with server.serving() as url:
        yield url


def ask(*parts):
    return {"role": "user", "content": list(parts)}


def text(words):
    return {"type": "text", "text": words}


def image(uri=URI):
    return {"type": "image_url", "image_url": {"url": uri, "detail": "low"}}


def test_chats_are_answered_whole_and_as_streams(client):
    said = "Describe this photo."
    system = {"role": "system", "content": "You are helpful."}
    create = client.chat.completions.create
    answer = create(
        model="captioner",
        messages=[system, ask(text(said), image())],
        temperature=0.2,
        max_tokens=300,
    )
    assert answer.choices[0].message.content.strip() == "photo"
    assert answer.choices[0].finish_reason == "stop"
    question = [ask(image(), text("What")), {"role": "assistant", "content": "A dog"}]
    question.append({"role": "user", "content": "Why?"})
    answer = create(model="answerer", messages=question, n=2)
    found = [choice.message.content for choice in answer.choices]
    assert found == ["photo question Why?", "photo question Why?1"]
    answer = create(model="translator", messages=[{"role": "user", "content": "Ja."}])
    assert answer.choices[0].message.content.strip() == "source"
    with create(model="answerer", messages=question, n=2, stream=True) as stream:
        texts = {0: "", 1: ""}
        for chunk in stream:
            [choice] = chunk.choices
            texts[choice.index] += choice.delta.content or ""
        assert [*texts.values()] == found
        assert choice.finish_reason == "stop"
    names = [model.id for model in client.models.list()]
    assert names == ["captioner", "answerer", "translator"]


def test_a_wrong_chat_is_refused_in_one_sentence(client):
    def refused(error, *messages, model="captioner", **more):
        with pytest.raises(error) as found:
            client.chat.completions.create(model=model, messages=messages, **more)
        return found.value.body["message"]

    bad = openai.BadRequestError
    address = image("https://example.com/dog.jpg")
    assert "no address is fetched" in refused(bad, ask(address))
    path = pathlib.Path(__file__).as_uri()
    assert "no address is fetched" in refused(bad, ask(image(path)))
    assert "has no image" in refused(bad, ask(text("Hello")))
    assert "has several" in refused(bad, ask(image(), image()))
    assert "is no base64" in refused(bad, ask(image("data:image/png;base64,!")))
    assert "is no image" in refused(bad, ask(image("data:image/png;base64,AAAA")))
    assert "is no chat: messages" in refused(bad)
    assert "messages[0].content" in refused(bad, ask({"type": "input_audio"}))
    assert "`n` of a request" in refused(bad, ask(image()), n=99)
    missing = refused(openai.NotFoundError, ask(image()), model="gpt-4o")
    assert missing == "There is no model gpt-4o."
    long = image(URI + "A" * 1000)
    with pytest.raises(openai.APIStatusError) as found:
        client.chat.completions.create(model="captioner", messages=[ask(long)])
    assert found.value.status_code == 413
    stranger = client.with_options(api_key="other")
    with pytest.raises(openai.AuthenticationError):
        stranger.chat.completions.create(model="captioner", messages=[ask(image())])
    address = f"{client.base_url}chat/completions"
    headers = {"Authorization": "Bearer s3cret"}
    answer = httpx.post(address, content=b"[" * 100_000, headers=headers)
    assert answer.status_code in (400, 413)
    assert httpx.post(address, content=b"[1", headers=headers).status_code == 400


def test_a_tagger_gets_a_caption(tmp_path):
    # As exif-ai asks for a description, by the AI SDK's provider of OpenAI's interface.
    parts = [text("Describe this image."), image()]
    body = {
        "model": "captioner",
        "temperature": 0,
        "messages": [{"role": "user", "content": parts}],
    }
    headers = {"Authorization": "Bearer s3cret"}
    with serving(tmp_path) as url:
        address = f"{url}/v1/chat/completions"
        answer = httpx.post(address, json=body, headers=headers)
    [choice] = answer.json()["choices"]
    assert choice["message"] == {"role": "assistant", "content": "photo "}
    assert choice["finish_reason"] == "stop"
