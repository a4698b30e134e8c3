"""Chats of OpenAI's and Ollama's forms, asked for by OpenAI's client or by hand."""

import base64
import contextlib
import json
import pathlib
import socket

import httpx
import openai
import pytest
from keras_caption.serving import Limits, Prediction, Server

from keras_caption.apps.serve.records import photo_of

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

    def count_tokens(self, text):
        return len(text.split())

    def read(self, record, place=0, max_pixels=0):
        assert {*record} <= {*self.reads}
        if record.get("photo", PHOTO) != PHOTO:
            photo_of(record["photo"], place, max_pixels)
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
def serving(tmp_path, max_body=1000):
    (tmp_path / "model.keras").touch()
    server = Server(Limits(max_body=max_body), token="s3cret")
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
    assert client.models.retrieve("answerer").id == "answerer"


def test_a_chat_has_the_numbers_of_its_tokens(client):
    create = client.chat.completions.create
    chat = {"model": "answerer", "messages": [ask(image(), text("What is it?"))]}
    usage = create(**chat, n=2).usage
    # "photo question What is it?", twice.
    assert (usage.prompt_tokens, usage.completion_tokens) == (3, 10)
    assert usage.total_tokens == 13
    *chunks, last = create(**chat, stream=True, stream_options={"include_usage": True})
    assert (last.choices, last.usage.total_tokens) == ([], 8)
    assert all(len(x.choices) == 1 and x.usage is None for x in chunks)
    usages = [chunk.usage for chunk in create(**chat, stream=True)]
    assert usages == [None, None]


def test_a_question_and_its_image_may_be_in_several_messages(client):
    def answer(*messages, model="answerer"):
        answer = client.chat.completions.create(model=model, messages=messages)
        return answer.choices[0].message.content

    said = {"role": "assistant", "content": "Which?"}
    expected = "photo question What?"
    assert answer(ask(text("What?")), ask(image())) == expected
    assert answer(ask(image()), said, {"role": "user", "content": "What?"}) == expected
    assert answer(ask(text("So?")), ask(image(), text("What?"))) == expected
    assert answer(ask(text("What?")), said, ask(text(" "), image())) == expected
    assert answer(ask(text("What?"), image()), {"role": "user", "content": None})
    address = {"type": "image_url", "image_url": URI}  # as several clients send it
    assert answer(ask(text("What?"), address)) == expected
    said = ask(text("Ja.")), {"role": "user", "content": ""}
    assert answer(*said, model="translator") == "source "
    missing = (
        r"has no text, the question .*, in messages\[\]\.content where the role is"
    )
    with pytest.raises(openai.BadRequestError, match=missing):
        answer({"role": "system", "content": "What?"}, ask(image()))
    with pytest.raises(openai.BadRequestError, match="has no text, the source that"):
        answer(ask(text("\n")), model="translator")


def test_responses_are_given_whole_and_as_streams(client):
    create = client.responses.create
    parts = [{"type": "input_text", "text": "What?"}]
    parts.append({"type": "input_image", "image_url": URI, "detail": "auto"})
    before = {"role": "user", "content": "And?"}
    chat = {"model": "answerer", "input": [before, {"role": "user", "content": parts}]}
    answer = create(**chat)
    assert answer.output_text == "photo question What?"
    assert answer.usage.total_tokens == 4
    again = [*chat["input"], answer.output[0].model_dump(), before]
    assert create(model="answerer", input=again).output_text == "photo question And?"
    assert create(model="translator", input="Ja.").output_text == "source "
    *events, last = create(**chat, stream=True)
    deltas = [x.delta for x in events if x.type == "response.output_text.delta"]
    assert deltas == [last.response.output_text] == [answer.output_text]
    for wrong, message in (
        ({"input": [{"role": "user", "content": [{"type": "text"}]}]}, "input[0].cont"),
        ({"previous_response_id": "resp_1"}, "previous_response_id: Conversations"),
        ({"input": 1}, "input: Input should be a valid string or a valid array, rec"),
        (
            {"input": "What?"},
            "no image, which the model reads, in input[].content[].im",
        ),
        ({"input": [ask(parts[1])]}, "the question that the model reads, in input[].c"),
    ):
        with pytest.raises(openai.BadRequestError) as found:
            create(**{**chat, **wrong})
        assert message in found.value.body["message"]


def test_galleries_of_ollama_are_answered(client):
    address = str(client.base_url).removesuffix("v1/")
    http = httpx.Client(base_url=address, headers={"Authorization": "Bearer s3cret"})
    photo = base64.b64encode(PHOTO).decode()
    generate = {"model": "answerer:latest", "prompt": "What?", "images": [photo]}
    said = {"role": "user", "content": "What?"}
    chat = {"model": "answerer", "messages": [said, {**said, "images": [photo]}]}

    def whole(path, body):
        answer = http.post(path, json={**body, "stream": False})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def streamed(path, body):
        lines = http.post(path, json=body).text.splitlines()
        *parts, last = map(json.loads, lines)
        assert [x["done"] for x in parts] == [False]
        assert last["done"]
        return parts

    answer = whole("/api/generate", generate)
    assert (answer["response"], answer["done"]) == ("photo question What?", True)
    assert answer["model"] == "answerer"
    assert (answer["prompt_eval_count"], answer["eval_count"]) == (1, 3)
    answer = whole("/api/chat", chat)
    assert answer["message"]["content"] == "photo question What?"
    [part] = streamed("/api/generate", generate)
    assert part["response"] == "photo question What?"
    [part] = streamed("/api/chat", chat)
    assert part["message"]["content"] == "photo question What?"
    listed = [model["name"] for model in http.get("/api/tags").json()["models"]]
    assert listed == ["captioner", "answerer", "translator"]
    # The first release of Ollama whose models have capabilities.
    assert httpx.get(f"{address}api/version").json() == {"version": "0.6.4"}
    for model, capabilities in {
        "captioner:latest": ["completion", "vision"],
        "translator": ["completion"],
    }.items():
        for key in "model", "name":
            shown = http.post("/api/show", json={key: model}).json()
            assert shown["capabilities"] == capabilities
    # What `ollama run` and galleries send first, for the model to be loaded.
    answer = {"response": ""}
    message = {"message": {"role": "assistant", "content": ""}}
    end = {"model": "answerer", "done": True, "done_reason": "load"}
    for path, body, expected in (
        ("generate", {}, answer),
        ("generate", {"prompt": "", "images": []}, answer),
        ("chat", {}, message),
        ("chat", {"messages": []}, message),
    ):
        loaded = http.post(f"/api/{path}", json={"model": "answerer", **body}).json()
        assert loaded.pop("created_at")
        assert loaded == {**expected, **end}
    for path, body, status, message in (
        (
            "generate",
            {**generate, "images": ["/etc/x.jpg"]},
            400,
            "images[0] should be base64, or",
        ),
        (
            "generate",
            {**generate, "images": [5]},
            400,
            "images[0]: Input should be a v",
        ),
        ("generate", {**generate, "prompt": " "}, 400, "the model reads, in prompt."),
        ("generate", {**generate, "images": []}, 400, "the model reads, in images."),
        ("generate", {**generate, "images": ["AAAA"]}, 400, "images[0] is not an im"),
        ("chat", {**chat, "messages": [{"role": 1}]}, 400, "messages[0].role: Input"),
        ("chat", {**chat, "messages": [said]}, 400, "reads, in messages[].images whe"),
        ("chat", {**chat, "model": "llava"}, 404, "There is no model llava."),
        ("show", {"model": "llava:latest"}, 404, "There is no model llava."),
        ("show", {}, 400, "model: Field required"),
        ("generate", {"model": "llava"}, 404, "There is no model llava."),
        ("pull", {"model": "llava"}, 404, "There is no /api/pull here"),
    ):
        answer = http.post(f"/api/{path}", json=body)
        assert (answer.status_code, message in answer.json()["error"]) == (status, True)
    assert httpx.get(f"{address}api/tags").status_code == 401
    assert httpx.post(f"{address}api/generate", json=generate).status_code == 401


def test_no_address_in_a_chat_is_fetched(client):
    root = str(client.base_url).removesuffix("/v1/")
    headers = {"Authorization": "Bearer s3cret"}
    with socket.create_server(("127.0.0.1", 0)) as trap:
        host = f"127.0.0.1:{trap.getsockname()[1]}"
        for address in (f"http://{host}/a.jpg", f"//{host}/a.jpg", f"{host}/a.jpg"):
            part = {"type": "input_image", "image_url": address}
            for path, body in {
                "v1/chat/completions": {"messages": [ask(image(address))]},
                "v1/responses": {"input": [ask(part)]},
                "api/generate": {"images": [address]},
                "api/chat": {"messages": [{"role": "user", "images": [address]}]},
            }.items():
                body["model"] = "captioner"
                answer = httpx.post(f"{root}/{path}", json=body, headers=headers)
                assert answer.status_code == 400
                assert "no address is fetched" in answer.text
        trap.settimeout(0.1)
        with pytest.raises(TimeoutError):
            trap.accept()
    # A redirect would send the client to the host that its request names.
    headers["Host"] = "localhost:1"
    answer = httpx.post(f"{root}/v1/responses/", json={}, headers=headers)
    assert (answer.status_code, answer.headers.get("location")) == (400, None)


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
    where = "has no image, which the model reads, in messages[].content[].image_url.url"
    assert where in refused(bad, ask(text("Hello")))
    several = refused(bad, ask(image()), ask(image(), image()))
    assert several.startswith("messages[1] has 2 images: send one")
    assert "is no base64" in refused(bad, ask(image("data:image/png;base64,!")))
    photo = refused(bad, ask(text("A dog.")), ask(image("data:image/png;base64,AAAA")))
    assert photo.startswith("messages[1].content[0].image_url.url is not an image")
    assert "is no chat: messages" in refused(bad)
    assert "messages[0].content" in refused(bad, ask({"type": "input_audio"}))
    assert "`n` of a request" in refused(bad, ask(image()), n=99)
    assert "n: Input should be a valid integer" in refused(bad, ask(image()), n="2")
    missing = refused(openai.NotFoundError, ask(image()), model="gpt-4o")
    assert missing == "There is no model gpt-4o."
    long = image(URI + "A" * 1000)
    with pytest.raises(openai.APIStatusError) as found:
        client.chat.completions.create(model="captioner", messages=[ask(long)])
    assert found.value.status_code == 413
    stranger = client.with_options(api_key="other")
    with pytest.raises(openai.AuthenticationError):
        stranger.chat.completions.create(model="captioner", messages=[ask(image())])
    for content, message in {
        (1.5, "Input should be a valid string or a valid array"),
        (None, "has no image"),
        ('[{"type": "text"}]', "content[0].text: Field required"),
        ('[{"type": "image_url"}]', "content[0].image_url: Field required"),
        ('[{"type": "image_url", "image_url": {}}]', "image_url.url: Field"),
        ('[{"type": "image_url", "image_url": 7}]', "content[0].image_url: In"),
    }:
        content = json.loads(content) if isinstance(content, str) else content
        assert message in refused(bad, {"role": "user", "content": content})
    address = f"{client.base_url}chat/completions"
    headers = {"Authorization": "Bearer s3cret"}
    answer = httpx.post(address, content=b"[" * 100_000, headers=headers)
    assert answer.status_code in (400, 413)
    for content, message in {
        b"[1": "not valid JSON",
        b"[1]": "content: Input should be an object, received [1]",
        b" ": "has no body: it should be a JSON object",
        b'{"messages": [{"content": "\\ud800"}]}': "messages[0].content: Input",
        '{"model": 1}'.encode("utf-16"): "model: Input should be a valid string",
    }.items():
        answer = httpx.post(address, content=content, headers=headers)
        assert (answer.status_code, message in answer.text) == (400, True), answer.text


def test_a_tagger_gets_a_caption(client):
    # As exif-ai asks for a description.
    parts = [image(), text("Describe this image.")]
    messages = [{"role": "user", "content": parts}]
    answer = client.chat.completions.create(model="captioner", messages=messages)
    assert answer.choices[0].message.content == "photo "
