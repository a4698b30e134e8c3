"""TensorFlow Serving's REST interface, as an application of FastAPI."""

import asyncio
import contextlib
import hmac
import json
import re
import time
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from keras_caption.errors import InputError
from keras_caption.serving.service import Service, UnavailableError
from keras_caption.serving.versions import ServedModel

ADDRESS = re.compile(
    r"(?P<name>[^/:]+)"
    r"(/versions/(?P<version>\d{1,18})|/labels/(?P<label>[^/:]+))?"
    r"(?P<verb>/metadata|:\w+)?"
)
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # of a histogram
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class RefusedError(Exception):
    """A request is refused: a status of HTTP, and a sentence."""

    def __init__(self, status: int, message: str, **headers: str):
        super().__init__(message)
        self.status = status
        self.headers = headers


class Metrics:
    """What `/metrics` says, for Prometheus."""

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
    """Answers requests of HTTP.

    Args:
        service: `Service`.
        metrics: `Metrics`.
        token: str, that requests have to have, or `None`.
        log: Function of an event, a str, and facts by keywords.
    """

    def __init__(
        self,
        service: Service,
        metrics: Metrics,
        token: str | None = None,
        log: Callable[..., None] = lambda event, **facts: None,
    ):
        self.service = service
        self.metrics = metrics
        self.token = token
        self.log = log
        self._running = 0

    def app(self) -> FastAPI:
        """The application, which closes the service when it shuts down."""

        @contextlib.asynccontextmanager
        async def lifespan(app):
            yield
            await asyncio.to_thread(self.service.close)

        app = FastAPI(
            lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None
        )
        app.add_api_route("/healthz", self.health)
        app.add_api_route("/readyz", self.readiness)
        app.add_api_route("/metrics", self.measured)
        app.add_api_route(
            "/v1/models/{address:path}", self.models, methods=["GET", "POST"]
        )
        for status in 404, 405:
            app.add_exception_handler(status, self.unknown)
        return app

    async def health(self) -> Response:
        return to_response(200, {"status": "alive"})

    async def readiness(self) -> Response:
        missing = [m.name for m in self.service.models.values() if not m.versions]
        if missing:
            return to_response(503, {"error": f"{missing[0]} has no version."})
        return to_response(200, {"status": "ready"})

    async def measured(self, request: Request) -> Response:
        try:
            self._check_token(request)
        except RefusedError as refused:
            return refusal(refused)
        return Response(
            generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST
        )

    async def unknown(self, request: Request, error: Exception) -> Response:
        """Answers a request that no route has."""
        path = request.url.path
        return to_response(
            404, {"error": f"Malformed request: {request.method} {path}"}
        )

    async def models(self, request: Request, address: str) -> Response:
        """Answers a request about a model, and logs and counts it."""
        begin = time.perf_counter()
        found = ADDRESS.fullmatch(address)
        facts = {"model": "", "verb": "", "examples": 0}
        try:
            self._check_token(request)
            if not found or (request.method == "POST") != found_verb(found):
                raise RefusedError(
                    404, f"Malformed request: {request.method} {request.url.path}"
                )
            if found["name"] not in self.service.models:
                raise RefusedError(
                    404, f"Servable not found for request: {label_of(found)}"
                )
            facts["model"] = found["name"]
            facts["verb"] = (found["verb"] or ":status")[1:]
            response = await self._answer(request, found, facts)
        except RefusedError as refused:
            response = refusal(refused)
        except Exception as error:
            # What a user sent may stand in its message, which is no part of the log.
            kind = type(error).__name__
            trace = error.__traceback__
            while trace.tb_next:
                trace = trace.tb_next
            code = trace.tb_frame.f_code
            where = f"{code.co_filename}:{trace.tb_lineno}"
            self.log("error", **facts, error=kind, where=where)
            response = to_response(500, {"error": f"The server failed: {kind}."})
        seconds = time.perf_counter() - begin
        status = response.status_code
        known = facts["model"], facts["verb"]
        self.metrics.requests.labels(*known, status).inc()
        self.metrics.seconds.labels(*known).observe(seconds)
        self.log("request", **facts, status=status, seconds=round(seconds, 4))
        return response

    async def _answer(self, request, found, facts):
        """The response to a request about a known model."""
        model = self.service.models[found["name"]]
        number = found["version"] and int(found["version"])

        def find():
            try:
                return model.find(number, found["label"])
            except (KeyError, ValueError):
                if number is None and found["label"] is None:
                    raise UnavailableError from None
                raise RefusedError(
                    404, f"Servable not found for request: {label_of(found)}"
                ) from None

        if request.method == "GET" and not found["verb"]:
            return to_response(200, statuses_of(model, found))
        if request.method == "GET":
            return to_response(200, metadata_of(model.name, find()))
        verbs = {":predict": self.service.predict, ":answer": self.service.answer}
        if found["verb"] not in verbs:
            raise RefusedError(
                400,
                f"{model.name} has no signature to {facts['verb']}.",
            )
        if self._running >= self.service.limits.max_requests:
            raise RefusedError(
                429, "Too many requests wait: try again.", retry_after="1"
            )
        self._running += 1
        self.metrics.running.set(self._running)
        try:
            async with asyncio.timeout(self.service.limits.timeout):
                content = await self._content(request)
                more = (
                    (dict(request.query_params),) if found["verb"] == ":answer" else ()
                )
                facts["examples"], body = await verbs[found["verb"]](
                    find, content, *more
                )
        except TimeoutError:
            limit = self.service.limits.timeout
            raise RefusedError(
                504, f"The request took more than {limit:g} s."
            ) from None
        except InputError as error:
            raise RefusedError(400, str(error)) from None
        except UnavailableError:
            raise RefusedError(503, f"{model.name} has no version now.") from None
        finally:
            self._running -= 1
            self.metrics.running.set(self._running)
        return to_response(200, body)

    async def _content(self, request):
        """The body of a request, as far as it may be long."""
        most = self.service.limits.max_body
        announced = request.headers.get("content-length", "0")
        too_long = RefusedError(413, f"A request has at most {most:,} bytes.")
        if announced.isdecimal() and int(announced) > most:
            raise too_long
        content = bytearray()
        async for part in request.stream():
            content += part
            if len(content) > most:
                raise too_long
        return bytes(content)

    def _check_token(self, request):
        """Refuses a request without the token, in a time that does not tell it."""
        if self.token is None:
            return
        given = request.headers.get("authorization", "")
        expected = f"Bearer {self.token}"
        if not hmac.compare_digest(given.encode(), expected.encode()):
            raise RefusedError(
                401, "The token is missing or wrong.", www_authenticate="Bearer"
            )


def found_verb(found: re.Match) -> bool:
    """Whether an address has a verb, which is asked for by POST."""
    return (found["verb"] or "").startswith(":")


def label_of(found: re.Match) -> str:
    """What an address asks for, as TensorFlow Serving says it."""
    if found["version"]:
        return f"Specific({found['name']}, {found['version']})"
    if found["label"]:
        return f"Label({found['name']}, {found['label']})"
    return f"Latest({found['name']})"


def statuses_of(model: ServedModel, found: re.Match) -> dict[str, Any]:
    """States of the versions that an address asks for, the newest first."""
    number = model.labels.get(found["label"]) if found["label"] else found["version"]
    statuses = [
        {
            "version": str(version),
            "state": status.state,
            "status": {"error_code": status.code, "error_message": status.message},
        }
        for version, status in sorted(model.statuses.items(), reverse=True)
        if (not found["version"] and not found["label"])
        or (number is not None and version == int(number))
    ]
    if not statuses:
        what = f"version {number}" if found["version"] else f"label {found['label']}"
        raise RefusedError(404, f"Could not find {what} of model {model.name}")
    return {"model_version_status": statuses}


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


def refusal(refused: RefusedError) -> Response:
    headers = {name.replace("_", "-"): x for name, x in refused.headers.items()}
    return to_response(refused.status, {"error": str(refused)}, headers)


def to_response(
    status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    """A response of JSON, in which, as in TensorFlow Serving's, NaN is a number."""
    content = json.dumps(body, ensure_ascii=False)
    return Response(content, status, headers, media_type="application/json")
