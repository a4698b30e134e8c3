"""TensorFlow Serving's REST interface and chats, as an application of Starlette."""

import asyncio
import contextlib
import gzip
import hmac
import io
import json
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keras_caption.apps.serve import ollama
from keras_caption.apps.serve.chat import ChatForm
from keras_caption.apps.serve.chat_completions import CHAT_COMPLETIONS, model_entry
from keras_caption.apps.serve.responses import RESPONSES
from keras_caption.apps.serve.service import Service, UnavailableError
from keras_caption.apps.serve.versions import ServedModel, Version
from keras_caption.base.errors import InputError

ADDRESS = re.compile(
    r"(?P<name>[^/:]+)"
    r"(/versions/(?P<version>[0-9]{1,19})|/labels/(?P<label>[^/:]+))?"
    r"(?P<verb>/metadata|:\w+)?"
)
NEWEST: Mapping[str, str | None] = {"version": None, "label": None}  # of an address
HELP = """\
This server of keras_caption answers as TensorFlow Serving's REST interface does, and
about what users have: photos, sentences, questions.

GET  /v1/models                     the models, with the states of their versions
GET  /v1/models/NAME                one of them; /versions/N and /labels/L are of it
GET  /v1/models/NAME/metadata       its signatures: what :predict takes and returns
POST /v1/models/NAME:predict        {"instances": [...]} or {"inputs": {...}}
POST /v1/models/NAME:answer         a photo as it is, or {"records": [...]}
POST /v1/chat/completions           OpenAI's form, with an image as a data URI
POST /v1/responses                  OpenAI's newer form
POST /api/generate, /api/chat       Ollama's form, with an image in base64
GET  /api/tags, POST /api/show      the models, and one of them, in Ollama's form
GET  /api/version                   the release of Ollama whose forms these are
GET  /healthz, /readyz, /metrics    whether it lives, whether all models are loaded, and
                                    numbers for Prometheus

curl --data-binary @photo.jpg HOST/v1/models/NAME:answer
curl --data-binary @photo.jpg "HOST/v1/models/NAME:answer?question=What+is+it"
curl -d '{"records": [{"source": "A dog."}], "n": 3, "options": {"beam_size": 5}}' \\
    HOST/v1/models/NAME:answer

docs/serving.md of keras_caption has the rest.
"""
CHATS = {
    "/v1/chat/completions": CHAT_COMPLETIONS,
    "/v1/responses": RESPONSES,
    "/api/generate": ollama.GENERATE,
    "/api/chat": ollama.CHAT,
}
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # of a histogram
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics that `/metrics` gives to Prometheus."""

    def __init__(self):
        self.registry = CollectorRegistry()

        def make(kind, name, text, labels, **more):
            name = f"keras_caption_{name}"
            return kind(name, text, labels, registry=self.registry, **more)

        served = ("model", "verb")
        self.requests = make(
            Counter, "requests", "Requests that were answered", (*served, "status")
        )
        self.seconds = make(
            Histogram,
            "request_seconds",
            "Seconds that requests took",
            served,
            buckets=SECONDS,
        )
        self.sizes = make(
            Histogram,
            "batch_size",
            "Examples that ran at once",
            ("model",),
            buckets=SIZES,
        )
        self.running = make(Gauge, "requests_running", "Requests in progress", ())
        self.failures = make(
            Counter, "failed_versions", "Versions that cannot be loaded", ("model",)
        )


class Rest:
    """Answers HTTP requests.

    Args:
        service: `Service`.
        metrics: `Metrics`.
        tokens: Sequence of str; a request must have one of them. If there are none,
            every request is answered.
        log: Function of an event, a str, and of facts as keyword arguments.
    """

    def __init__(
        self,
        service: Service,
        metrics: Metrics,
        tokens: Sequence[str] = (),
        log: Callable[..., None] = lambda event, **facts: None,
    ):
        self.service = service
        self.verbs = {"predict": service.predict, "answer": service.answer}
        self.metrics = metrics
        self.tokens = [token.encode() for token in tokens]
        self.log = log
        self._running = 0
        self._receiving = 0  # bytes of requests that are not there as a whole

    def app(self) -> Starlette:
        """Makes the application, which closes the service when it shuts down."""

        @contextlib.asynccontextmanager
        async def lifespan(app):
            yield
            await asyncio.to_thread(self.service.close)

        reading = ["GET", "HEAD"]
        pages: dict[str, Callable[..., Any]] = {
            "/healthz": self.health,
            "/readyz": self.readiness,
            "/metrics": self.measured,
            "/v1/models": self.listed,
            "/api/tags": self.tags,
            "/api/version": self.version,
            "/docs": self.help,
            "": self.help,
        }
        posts: dict[str, Callable[..., Any]]
        posts = {path: self.chat(form) for path, form in CHATS.items()}
        posts["/api/show"] = self.show
        routes = [
            Route(f"{path}{end}", answer, methods=methods)
            for methods, answers in ((reading, pages), (["POST"], posts))
            for path, answer in answers.items()
            for end in ("", "/")
            if path or end
        ]
        any_method = [*reading, "POST"]
        routes.append(
            Route("/v1/models/{address:path}", self.models, methods=any_method)
        )
        refusals = {404: self.unknown, 405: self.unknown, HTTPException: self.refused}
        app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=refusals)
        # A redirect would name the host that the request names.
        app.router.redirect_slashes = False
        return app

    async def health(self, request: Request) -> Response:
        return to_response(200, {"status": "alive"})

    async def readiness(self, request: Request) -> Response:
        models = self.service.models.values()
        missing = [model.name for model in models if not model.versions]
        if missing or not models:
            names = ", ".join(missing)
            waits = f"version of {names} yet" if missing else "model"
            return to_response(503, {"error": f"There is no {waits}."})
        return to_response(200, {"status": "ready"})

    async def listed(self, request: Request) -> Response:
        """Lists the models with the states of their versions, and in OpenAI's form."""
        self._check_token(request)
        served = self.service.models.values()
        models = [
            {"name": model.name, "model_version_status": statuses_of(model)}
            for model in served
        ]
        entries = [model_entry(model.name) for model in served]
        return to_response(200, {"models": models, "object": "list", "data": entries})

    async def tags(self, request: Request) -> Response:
        """Lists the models in Ollama's form."""
        self._check_token(request)
        return to_response(200, ollama.tags(self.service.models))

    async def version(self, request: Request) -> Response:
        """Names the release of Ollama that clients may take the server for."""
        return to_response(200, {"version": ollama.RELEASE})

    async def help(self, request: Request) -> Response:
        return Response(HELP, media_type="text/plain; charset=utf-8")

    async def measured(self, request: Request) -> Response:
        self._check_token(request)
        return Response(
            generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST
        )

    async def refused(self, request: Request, error: Any) -> Response:
        return refusal(error)

    async def unknown(self, request: Request, error: Any) -> Response:
        """Answers a request that has no route, or whose route lacks its method."""
        text = f"There is no {request.url.path:.200} here: GET /docs says what is."
        if error.status_code == 405:
            text = f"{request.url.path:.200} does not take {request.method}."
        return to_response(error.status_code, {"error": text}, error.headers)

    async def models(self, request: Request) -> Response:
        """Answers a request about a model, and logs and counts it."""
        address = request.path_params["address"]

        async def answer(facts):
            target = ADDRESS.fullmatch(address.removesuffix("/"))
            self._check_token(request)
            if not target or (request.method == "POST") != has_verb(target):
                raise HTTPException(
                    404, f"Malformed request: {request.method} {request.url.path}"
                )
            if target["name"] not in self.service.models:
                raise HTTPException(
                    404, f"Servable not found for request: {label_of(target)}"
                )
            facts["model"] = target["name"]
            verb = (target["verb"] or ":status")[1:]
            # Metrics keep each verb for ever, so that those of strangers end here.
            if has_verb(target) and verb not in self.verbs:
                raise HTTPException(
                    400, f"{target['name']} has no signature to {verb:.60}."
                )
            facts["verb"] = verb
            return await self._answer(request, target.groupdict(), facts)

        return await self._logged(answer, plain_error)

    def chat(self, form: ChatForm) -> Callable:
        """Makes the function that answers chats of a form, and logs and counts them."""

        async def answer_chat(request: Request) -> Response:
            async def answer(facts):
                self._check_token(request)
                async with self._in_time(facts):
                    content = await self._content(request)
                    with self._running_now():
                        chat = await asyncio.to_thread(form.read, content)
                        model = self._model(chat.model)
                        facts |= {"model": model.name, "verb": "chat"}
                        if form.loaded is not None and not chat.messages:
                            found_version(model)
                            return to_response(200, form.loaded(chat))
                        reply = await self.service.chat(
                            model.name, lambda: found_version(model), chat
                        )
                facts["examples"] = 1
                if chat.stream:
                    events = form.events(chat, reply)
                    return Response(events, media_type=form.media_type)
                return to_response(200, form.whole(chat, reply))

            return await self._logged(answer, form.error)

        return answer_chat

    async def show(self, request: Request) -> Response:
        """Says what is known of a model in Ollama's form."""

        async def answer(facts):
            self._check_token(request)
            async with self._in_time(facts):
                model = self._model(ollama.read_show(await self._content(request)))
                facts |= {"model": model.name, "verb": "metadata"}
                body = ollama.shown(found_version(model).model.reads)
            return to_response(200, body)

        return await self._logged(answer, ollama.error_body)

    def _model(self, name):
        """Finds a model that a chat names."""
        if name not in self.service.models:
            raise HTTPException(404, f"There is no model {name:.60}.")
        return self.service.models[name]

    async def _logged(self, answer, error_of):
        """Calls a function, turns its errors into responses, and logs and counts them.

        Args:
            answer: Coroutine function that returns a `Response`. Its argument is a dict
                of facts for the log, which it completes.
            error_of: Function of a status and a sentence that returns the body of an
                error.
        """
        begin = time.perf_counter()
        facts = {"model": "", "verb": "", "examples": 0}
        try:
            response = await answer(facts)
        except HTTPException as refused:
            response = refusal(refused, error_of)
        except Exception as error:
            # What a user sent may stand in its message, which is no part of the log.
            kind = type(error).__name__
            trace = error.__traceback__
            while trace.tb_next:
                trace = trace.tb_next
            code = trace.tb_frame.f_code
            where = f"{code.co_filename}:{trace.tb_lineno}"
            self.log("error", **facts, error=kind, where=where)
            response = to_response(500, error_of(500, f"The server failed: {kind}."))
        seconds = time.perf_counter() - begin
        status = response.status_code
        known = facts["model"], facts["verb"]
        self.metrics.requests.labels(*known, status).inc()
        self.metrics.seconds.labels(*known).observe(seconds)
        self.log("request", **facts, status=status, seconds=round(seconds, 4))
        return response

    async def _answer(self, request, target, facts):
        """Answers a request about a known model."""
        model = self.service.models[target["name"]]
        if target["version"] and not int(target["version"]) and 0 not in model.statuses:
            target = {**target, "version": None}  # of OpenVINO's clients, the newest

        def find():
            return found_version(model, target)

        if request.method != "POST" and not target["verb"]:
            body = {"model_version_status": statuses_of(model, target)}
            if not target["version"] and not target["label"]:
                body |= model_entry(model.name)
            return to_response(200, body)
        more = ()
        if facts["verb"] == "answer":
            kind = request.headers.get("content-type", "")
            more = dict(request.query_params), "json" in kind
        async with self._in_time(facts):
            if request.method != "POST":  # beside the loop: a model may be loading
                body = await asyncio.to_thread(metadata_of, model.name, find())
                return to_response(200, body)
            content = await self._content(request)
            with self._running_now():
                facts["examples"], body = await self.verbs[facts["verb"]](
                    model.name, find, content, *more
                )
        return to_response(200, body)

    @contextlib.asynccontextmanager
    async def _in_time(self, facts):
        """Refuses a request if a block takes too long or raises `InputError`."""
        limit = self.service.limits.timeout
        try:
            async with asyncio.timeout(limit):
                yield
        except TimeoutError:
            raise HTTPException(
                504, f"The request took more than {limit:g} s."
            ) from None
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        except UnavailableError:
            raise HTTPException(503, f"{facts['model']} has no version now.") from None

    @contextlib.contextmanager
    def _running_now(self):
        """Counts a request as one in progress, or refuses it if there are too many."""
        self._check_load(self._running < self.service.limits.max_requests)
        self._running += 1
        self.metrics.running.set(self._running)
        try:
            yield
        finally:
            self._running -= 1
            self.metrics.running.set(self._running)

    def _check_load(self, is_free):
        """Refuses a request if too many are waiting or in progress."""
        if not is_free:
            raise HTTPException(
                429, "Too many requests wait: try again.", {"Retry-After": "1"}
            )

    async def _content(self, request):
        """Reads the body of a request up to the limit of its length.

        A slow sender does not count as a request in progress; it only takes the memory
        of the bytes received so far.
        """
        limits = self.service.limits
        most, content = limits.max_body, bytearray()
        self._check_load(self._running < limits.max_requests)
        unpack = decoder_of(request.headers)
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > most:
            raise too_long(most)
        try:
            is_whole = False
            while not is_whole:
                message = await request.receive()
                if message["type"] == "http.disconnect":  # nobody reads this
                    raise HTTPException(400, "The request ends too early.")
                part = message.get("body", b"")
                self._receiving += len(part)
                content += part
                if len(content) > most:
                    raise too_long(most)
                self._check_load(self._receiving <= most * limits.max_requests)
                is_whole = not message.get("more_body", False)
        finally:
            self._receiving -= len(content)
        if unpack is None:
            return bytes(content)
        plain = await asyncio.to_thread(unpack, content, most)
        if plain is None:
            raise too_long(most)
        return plain

    def _check_token(self, request):
        """Refuses a request without a token, in a time that does not reveal tokens."""
        if not self.tokens:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip().encode("latin-1")
        is_right = [hmac.compare_digest(given, known) for known in self.tokens]
        if scheme.lower() != "bearer" or not any(is_right):
            raise HTTPException(
                401, "The token is missing or wrong.", {"WWW-Authenticate": "Bearer"}
            )


def too_long(most: int) -> HTTPException:
    """Makes the error for a body that is too long.

    The error must not be a variable of the function that reads the body: its traceback
    would keep the body in memory.
    """
    return HTTPException(413, f"A request has at most {most:,} bytes.")


def decoder_of(headers: Any) -> Callable | None:
    """Returns the decoder of a body, such as `gunzip`, or `None` if it is not encoded.

    Raises:
        HTTPException: If the content type or the encoding is not supported.
    """
    if headers.get("content-type", "").startswith("multipart/"):
        raise HTTPException(
            415,
            "A body of several parts is not read: send JSON, or the photo as it is, as "
            "curl does with --data-binary @photo.jpg.",
        )
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("gzip", "x-gzip"):
        return gunzip
    if encoding != "identity":
        raise HTTPException(
            415,
            f"A body encoded as {encoding:.20} is not read: gzip is, and none.",
            {"Accept-Encoding": "gzip, identity"},
        )
    return None


def gunzip(content: bytes, most: int) -> bytes | None:
    """Decompresses a body of gzip; returns `None` if it is longer than `most`.

    Raises:
        InputError: If the body is damaged.
    """
    try:
        plain = gzip.GzipFile(fileobj=io.BytesIO(content)).read(most + 1)
    except EOFError:
        raise InputError("The gzip of the request is cut.") from None
    except (gzip.BadGzipFile, zlib.error):
        raise InputError("The request is said to be gzip, and is none.") from None
    return plain if len(plain) <= most else None


def has_verb(target: re.Match) -> bool:
    """Tells whether an address has a verb, which needs POST."""
    return (target["verb"] or "").startswith(":")


def label_of(target: re.Match | Mapping[str, str | None]) -> str:
    """The model and version of an address, in TensorFlow Serving's words."""
    if target["version"]:
        return f"Specific({target['name']}, {target['version']})"
    if target["label"]:
        return f"Label({target['name']}, {target['label']})"
    return f"Latest({target['name']})"


def found_version(
    model: ServedModel, target: Mapping[str, str | None] = NEWEST
) -> Version:
    """Finds the version of an address, by default the newest.

    Raises:
        HTTPException: If there is no such version.
        UnavailableError: If the model has no version.
    """
    version = target["version"]
    number = None if version is None else int(version)
    try:
        return model.find(number, target["label"])
    except (KeyError, ValueError):
        if number is None and target["label"] is None:
            raise UnavailableError from None
        raise HTTPException(
            404, f"Servable not found for request: {label_of(target)}"
        ) from None


def statuses_of(
    model: ServedModel, target: Mapping[str, str | None] = NEWEST
) -> list[dict[str, Any]]:
    """States of the versions that an address asks for, or of all, the newest first."""
    number = model.labels.get(target["label"]) if target["label"] else target["version"]
    statuses = [
        {
            "version": str(version),
            "state": status.state,
            "status": {"error_code": status.code, "error_message": status.message},
        }
        for version, status in sorted(model.statuses.items(), reverse=True)
        if (not target["version"] and not target["label"])
        or (number is not None and version == int(number))
    ]
    if not statuses and (target["version"] or target["label"]):
        what = f"version {number}" if target["version"] else f"label {target['label']}"
        raise HTTPException(404, f"Could not find {what} of model {model.name}")
    return statuses


def metadata_of(name: str, version: Any) -> dict[str, Any]:
    """The signatures of a version."""
    signatures = {
        key: signature.to_json(key)
        for key, signature in version.model.signatures.items()
    }
    return {
        "model_spec": {
            "name": name,
            "signature_name": "",
            "version": str(version.number),
        },
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def plain_error(status: int, message: str) -> dict[str, Any]:
    """The body of an error, as TensorFlow Serving has it."""
    return {"error": message}


def refusal(
    refused: HTTPException,
    error_of: Callable[[int, str], dict[str, Any]] = plain_error,
) -> Response:
    status = refused.status_code
    return to_response(status, error_of(status, refused.detail), refused.headers)


def to_response(
    status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """A response of JSON, in which, as in TensorFlow Serving's, NaN is a number."""
    text = json.dumps(body, ensure_ascii=False)
    # Half of a surrogate pair, which UTF-8 lacks, is escaped as JSON does it.
    content = text.encode(errors="backslashreplace")
    return Response(content, status, headers, media_type="application/json")
