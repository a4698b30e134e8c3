"""Bodies of chats made from public schemas, each with one wrong value.

    pip install --target generators hypothesis-jsonschema ollama 'hypothesis<6.130'
    PYTHONPATH=generators python tests/stress/chat_bodies.py [--bodies 100] [--seed 0]

They are of the four forms: OpenAI's chat completions and Responses API, and Ollama's
two. The fields that the server reads follow its own schemas, some others those of the
Python packages `openai` and `ollama`. For each form, right bodies are answered by 200.
Then one value that the server reads is removed or replaced by any other, so that a body
no longer follows the schema, or its user no longer says or shows anything: it is
refused by 400 or 404, in one sentence that names the value. No request makes the server
open a connection. hypothesis-jsonschema does not run with newer versions of Hypothesis.
"""

import argparse
import base64
import collections
import copy
import io
import json
import pathlib
import re
import sys
import tempfile

PROJECT = pathlib.Path(__file__).parents[2]
FOLDERS = ("", "tests", "tests/helpers", "tests/serving")
sys.path += [str(PROJECT / folder) for folder in FOLDERS]

import httpx  # noqa: E402
import hypothesis  # noqa: E402
import jsonschema  # noqa: E402
import ollama._types  # noqa: E402
import pydantic  # noqa: E402
from hypothesis import strategies  # noqa: E402
from hypothesis_jsonschema import from_schema  # noqa: E402
from openai.types.chat import completion_create_params  # noqa: E402
from openai.types.responses import response_create_params  # noqa: E402
from PIL import Image  # noqa: E402
from test_chat import serving  # noqa: E402

from keras_caption.apps.serve import chat_completions, responses  # noqa: E402
from keras_caption.apps.serve import ollama as ollama_api  # noqa: E402

REFERENCE = re.compile(r'"\$ref": "#/\$defs/([^"]+)"')
MODEL = "answerer"  # which reads a question and a photo
MISSING = object()
MAX_OTHERS = 3  # fields of a body that the server ignores
ADDRESSES = "http://127.0.0.1:1/a.jpg", "//127.0.0.1:1/a", "file:///a.jpg", "data:,x"
with io.BytesIO() as file:
    Image.new("RGB", (8, 8)).save(file, "png")
    PHOTO = base64.b64encode(file.getvalue()).decode()
URI = f"data:image/png;base64,{PHOTO}"

# === What the forms take ===

SAID = {"type": "string", "pattern": r"\S"}
SHOWN = {"type": "array", "minItems": 1, "maxItems": 1, "items": {"const": PHOTO}}
IN_OBJECT = {"properties": {"url": {"const": URI}}, "required": ["url"]}
ADDRESS = {"anyOf": [{"const": URI}, {"type": "object", **IN_OBJECT}]}
PARTS = {"content": {"type": "array", "items": {"properties": {"image_url": ADDRESS}},
    "allOf": [
        {"contains": {"required": ["image_url"]}, "maxContains": 1},
        {"contains": {"required": ["text"], "properties": {"text": SAID}}},
    ],
}}  # fmt: skip
USER = {"role": {"const": "user"}}


class Form:
    """A form of chats.

    Args:
        path: str, of its requests.
        reads: pydantic model of what the server reads.
        public: Type of the requests in the form's Python package.
        images: Tuple of the name of a definition in the schema of `reads`, `""` for the
            whole, a property of it, and the schema of what is generated for it.
        needs: dict of JSON schemas by name: of the user's message, or of the body.
        field: str, name of the list of messages, or `None`.
        user: dict, the user's message, the last of all, or what a body has.
    """

    def __init__(self, path, reads, public, images, needs, field, user):
        self.path, self.field, self.user = path, field, user
        needed = {"properties": needs, "required": [*user]}
        self.needs = jsonschema.Draft202012Validator(needed)
        schema = reads.model_json_schema()
        definitions = {**schema.get("$defs", {}), "": schema}
        fixed = {"model": {"const": MODEL}, "n": {"enum": [None, 1, 2, 20]}}
        for name in "previous_response_id", "conversation":
            fixed[name] = {"const": None}
        properties = schema["properties"]
        properties |= {name: fixed[name] for name in fixed if name in properties}
        self.follows = jsonschema.Draft202012Validator(copy.deepcopy(schema))
        for of in definitions.values():
            of["additionalProperties"] = False
        name, key, value = images
        definitions[name]["properties"][key] = value
        self.own = from_schema(schema)
        whole = pydantic.TypeAdapter(public).json_schema()
        self.others = {
            name: from_schema(with_definitions(value, whole.get("$defs", {})))
            for name, value in whole["properties"].items()
            if name not in properties
        }

    def is_right(self, body):
        if not self.follows.is_valid(body):
            return False
        if self.field is None:
            return self.needs.is_valid(body)
        messages = body.get(self.field)
        # Ollama's form takes chats without messages: they load the model.
        return not messages or self.needs.is_valid(messages[-1])

    def right_bodies(self):
        """Strategy of dicts of what the server reads."""

        def with_user(body):
            if self.field is None:
                return {**body, **copy.deepcopy(self.user)}
            before = body.get(self.field)
            before = before if isinstance(before, list) else []
            before = [x for x in before if x["role"] != "user"]
            return {**body, self.field: [*before, copy.deepcopy(self.user)]}

        return self.own.map(with_user).filter(self.is_right)

    def other_fields(self):
        """Strategy of dicts of what the server ignores."""
        names = strategies.lists(
            strategies.sampled_from([*self.others]), max_size=MAX_OTHERS, unique=True
        )
        return names.flatmap(
            lambda names: strategies.fixed_dictionaries(
                {name: self.others[name] for name in names}
            )
        )

    def wrong_bodies(self):
        """Strategy of pairs of the place of a wrong value, a tuple, and a body."""

        @strategies.composite
        def make(draw):
            body = copy.deepcopy(draw(self.right_bodies()))
            place = draw(strategies.sampled_from([*places_of(body)]))
            value = draw(
                strategies.one_of(
                    strategies.just(MISSING),
                    strategies.sampled_from(ADDRESSES),
                    from_schema({}),
                )
            )
            *before, key = place
            container = body
            for name in before:
                container = container[name]
            if value is MISSING:
                del container[key]
            else:
                container[key] = value
            hypothesis.assume(not self.is_right(body))
            return place, body

        return make()


def with_definitions(schema, definitions):
    """A schema with those definitions that it refers to: others take minutes."""
    names, more = set(), {*REFERENCE.findall(json.dumps(schema))}
    while more:
        names |= more
        found = json.dumps([definitions[name] for name in more])
        more = {*REFERENCE.findall(found)} - names
    return {**schema, "$defs": {name: definitions[name] for name in names}}


def places_of(content, before=()):
    """The place of every value of a body, a tuple of keys and indices."""
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            yield (*before, key)
            yield from places_of(value, (*before, key))


def parts(text, image):
    """A message of a text and an image."""
    return {"role": "user", "content": [text, image]}


IN_BASE64 = {"items": {"const": PHOTO}, "type": ["array", "null"]}
FORMS = (
    Form(
        "/v1/chat/completions",
        chat_completions.ChatRequest,
        completion_create_params.CompletionCreateParamsNonStreaming,
        ("ImageUrl", "url", {"const": URI}),
        {**USER, **PARTS},
        "messages",
        parts(
            {"type": "text", "text": "What?"},
            {"type": "image_url", "image_url": {"url": URI}},
        ),
    ),
    Form(
        "/v1/responses",
        responses.ResponseRequest,
        response_create_params.ResponseCreateParamsNonStreaming,
        ("ImagePart", "image_url", {"const": URI}),
        {**USER, **PARTS},
        "input",
        parts(
            {"type": "input_text", "text": "What?"},
            {"type": "input_image", "image_url": URI},
        ),
    ),
    Form(
        "/api/generate",
        ollama_api.GenerateRequest,
        ollama._types.GenerateRequest,
        ("", "images", IN_BASE64),
        {"prompt": SAID, "images": SHOWN},
        None,
        {"prompt": "What?", "images": [PHOTO]},
    ),
    Form(
        "/api/chat",
        ollama_api.ChatRequest,
        ollama._types.ChatRequest,
        ("ChatMessage", "images", IN_BASE64),
        {**USER, "content": SAID, "images": SHOWN},
        "messages",
        {"role": "user", "content": "What?", "images": [PHOTO]},
    ),
)

# === The campaign ===


def is_named(place, message):
    """Whether a message names a value, or all fields around a value that is missing."""
    message, _, _ = message.partition(", received ")
    keys = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in place)
    fields = [x for x in place if isinstance(x, str)]
    return keys.removeprefix(".") in message or all(x in message for x in fields)


class Campaign:
    """Asks a server, and counts what comes.

    Args:
        url: str, of the server.
        http: `httpx.Client`.
    """

    def __init__(self, url, http):
        self.url, self.http = url, http
        self.counts = collections.Counter()
        self.unnamed = []

    def ask_right(self, form, own, others):
        answer = self.ask(form, {**others, **own})
        assert answer.status_code == 200, (own, others, answer.text)

    def ask_wrong(self, form, place, body):
        answer = self.ask(form, body)
        assert answer.status_code in (400, 404), (place, body, answer.text)
        error = answer.json()["error"]
        message = error if isinstance(error, str) else error["message"]
        assert "\n" not in message, message
        if not is_named(place, message):
            self.unnamed.append((form.path, place, message))

    def ask(self, form, body):
        answer = self.http.post(self.url + form.path, content=json.dumps(body))
        self.counts[form.path, answer.status_code] += 1
        return answer


def call(function, cases, count, seed):
    """Calls a function with each of the generated cases, tuples."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[*hypothesis.HealthCheck],
    )
    @hypothesis.given(cases)
    def run(case):
        function(*case)

    run()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bodies", type=int, default=100, help="wrong, of each form")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    asked = []

    def watch(event, arguments):
        if event in ("socket.connect", "socket.getaddrinfo"):
            asked.append(str(arguments[1]))

    with (
        tempfile.TemporaryDirectory() as folder,
        serving(pathlib.Path(folder), max_body=2**24) as url,
        httpx.Client(headers={"Authorization": "Bearer s3cret"}) as http,
    ):
        campaign = Campaign(url, http)
        host, _, port = url.removeprefix("http://").rpartition(":")
        ours = {str((host, int(port))), port}
        sys.addaudithook(watch)
        for form in FORMS:
            bodies = form.right_bodies(), form.other_fields()
            right = strategies.tuples(strategies.just(form), *bodies)
            call(campaign.ask_right, right, options.bodies // 4, options.seed)
            wrong = form.wrong_bodies().map(lambda case, form=form: (form, *case))
            call(campaign.ask_wrong, wrong, options.bodies, options.seed)
            counts = campaign.counts.items()
            of_form = {status: n for (path, status), n in counts if path == form.path}
            print(f"  {form.path}: {of_form}", flush=True)
    for case in campaign.unnamed:
        print("  without the name of the value:", *case)
    print(f"{len(campaign.unnamed)} without the name of the value")
    print(f"{len({*asked} - ours)} connections of the server's own")
    sys.exit(bool(campaign.unnamed or {*asked} - ours))


if __name__ == "__main__":
    main()
