import asyncio
import base64
import dataclasses
import functools
import io
import ipaddress
import json
import os
import pathlib
import random
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

import httpx
import numpy as np

from keras_caption.base.arguments import CountOrZero, Positive, check
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.folders import CLIPS, PHOTOS
from keras_caption.formats.suffixes import suffix_of
from keras_caption.predict import Prediction
from keras_caption.settings.options import DecodingOptions

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
BUSY = (429, 502, 503)  # statuses after which a request is retried
LOST = (  # errors after which a request is retried
    *(httpx.ConnectError, httpx.ReadError, httpx.WriteError),
    httpx.RemoteProtocolError,
)
FIRST_DELAY = 0.1  # seconds before the first retry; the delay doubles each time
LONGEST_DELAY = 10.0
MAX_ANSWER = 2**30  # bytes
ARRAYS = ("attention", "boxes")  # fields of a prediction that are arrays
SENT = {field.name for field in dataclasses.fields(Prediction)} - {"inputs", "tokens"}


class ServerError(Exception):
    """A server refuses a request, does not answer, or is no server of models.

    Attributes:
        status: int, HTTP status, or `None` without an answer.
    """

    def __init__(self, message: str, status: int | None = None):
        super().__init__(message)
        self.status = status


class AsyncClient:
    """A client whose methods are coroutines. Its arguments are those of `Client`."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = 60.0,
        retries: int = 5,
    ):
        check(Positive, timeout=timeout)
        check(CountOrZero, retries=retries)
        self.url = checked_address(url)
        self.token = token
        self.timeout = timeout
        self.retries = retries
        self._http = connections_to(self.url, token)

    async def answer(
        self,
        model: str,
        records: Iterable[Any],
        *,
        n: int | None = None,
        attention: bool = False,
        version: int | None = None,
        **options: Unpack[DecodingOptions],
    ) -> list[Prediction]:
        """Predictions of a model for records.

        Args:
            model: str, name of the model.
            records: Iterable of dict, see `keras_caption.serving.Predictor`, in which
                `photo` and `clip` may be paths too; or of photos, as bytes, path or
                uint8 array `(height, width, 3)`; or of sentences, as str.
            n, attention, **options: As in `keras_caption.serving.Predictor.answer`.
            version: int; defaults to the newest version.

        Returns:
            List of `Prediction`, without `inputs` and `tokens`.

        Raises:
            InputError: If a file cannot be read, or a record cannot be sent as JSON.
            ServerError: If the server refuses the request, does not answer in time, or
                is no server of models.
        """
        sent = [record_of(record) for record in records]
        body = {"records": sent, "n": n, "attention": attention, "options": options}

        def read(answer):
            predictions = [prediction_of(x) for x in answer["predictions"]]
            if len(predictions) != len(sent):
                raise ValueError("There should be a prediction of each record.")
            return predictions

        return await self._ask("POST", f"{path_of(model, version)}:answer", read, body)

    async def texts(self, model: str, records: Iterable[Any], **more: Any) -> list[str]:
        """Captions, translations or answers for records, see `answer`."""
        predictions = await self.answer(model, records, **more)
        return [prediction.text for prediction in predictions]

    async def predict(
        self,
        model: str,
        inputs: Mapping[str, Any],
        signature: str | None = None,
        version: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Calls a signature of a model. TensorFlow Serving answers this request too.

        Args:
            model: str, name of the model.
            inputs: dict from name to array `(batch, ...)` or list; bytes are sent as
                base64.
            signature: str, name of the signature. If omitted, the server chooses one.
            version: int; defaults to the newest version.

        Returns:
            dict of arrays, or one array if there is a single output.
        """
        body: dict[str, Any] = {"inputs": {n: to_json(x) for n, x in inputs.items()}}
        if signature is not None:
            body["signature_name"] = signature

        def read(answer):
            outputs = answer["outputs"]
            if isinstance(outputs, dict):
                return {name: np.array(x) for name, x in outputs.items()}
            return np.array(outputs)

        return await self._ask("POST", f"{path_of(model, version)}:predict", read, body)

    async def status(self, model: str) -> dict[int, str]:
        """The states of a model's versions, by number."""

        def read(answer):
            versions = answer["model_version_status"]
            return {int(x["version"]): x["state"] for x in versions}

        return await self._ask("GET", path_of(model), read)

    async def metadata(self, model: str, version: int | None = None) -> dict[str, Any]:
        """A model's signatures, by name, as TensorFlow Serving describes them."""

        def read(answer):
            return answer["metadata"]["signature_def"]["signature_def"]

        return await self._ask("GET", f"{path_of(model, version)}/metadata", read)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.close()

    async def _ask(
        self,
        method: str,
        path: str,
        read: Callable[[dict[str, Any]], Any],
        body: Any = None,
    ) -> Any:
        """Sends a request, with retries, and returns its answer as `read` reads it."""
        if self._http.is_closed:
            raise InputError("The client is closed.")
        request: dict[str, Any] = {} if body is None else {"content": content_of(body)}
        request["headers"] = {"Content-Type": "application/json"}
        try:
            async with asyncio.timeout(self.timeout) as limit:
                answer = await self._answer(limit, method, path, request)
        except TimeoutError:
            raise ServerError(
                f"{self.url} does not answer within {self.timeout:g} s."
            ) from None
        try:
            return read(answer)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            raise ServerError(
                f"{self.url} answers {path} otherwise than a server of models.", 200
            ) from None

    async def _answer(self, limit, method, path, request):
        """The JSON of an answer, after at most `retries` retries."""
        for attempt in range(self.retries + 1):
            delay = min(FIRST_DELAY * 2**attempt, LONGEST_DELAY)
            delay *= random.uniform(0.5, 1)  # so that clients do not retry all at once
            try:
                response, content = await self._attempt(method, path, request)
            except httpx.HTTPError as error:
                reason = self._reason(error)
                problem = ServerError(f"{self.url} does not answer{reason}")
                if not isinstance(error, LOST):
                    raise problem from error
            else:
                answer = parsed(content)
                if response.status_code == 200:
                    if answer is None:
                        raise ServerError(
                            f"{self.url} answers {path} without JSON.", 200
                        )
                    return answer
                problem = error_of(response, answer)
                if response.status_code not in BUSY:
                    raise problem
                after = response.headers.get("retry-after", "")
                delay = max(delay, float(after)) if after.isdecimal() else delay
            # The reason of the last attempt says more than a timeout would.
            left = limit.when() - asyncio.get_running_loop().time()
            if attempt == self.retries or delay > left:
                raise problem
            await asyncio.sleep(delay)
        return None

    def _reason(self, error):
        """The reason why there is no answer, the end of a sentence."""
        url, proxies = httpx.URL(self.url), urllib.request.getproxies()
        through = ""
        if not is_asked_directly(url.host) and {url.scheme, "all"} & {*proxies}:
            through = f" through the environment's proxy (or set NO_PROXY={url.host})"
        return f"{through}: {reason_of(error)}."

    async def _attempt(self, method, path, request):
        """Sends a request once: the response and its content of limited length."""
        content = bytearray()
        async with self._http.stream(
            method, f"{self.url}{path}", **request
        ) as response:
            encoding = response.headers.get("content-encoding", "identity")
            # Decoding would expand a short content to any length.
            if encoding != "identity":
                raise ServerError(
                    f"{self.url} answers {path} in the encoding {encoding:.20}.",
                    response.status_code,
                )
            async for part in response.aiter_bytes():
                content += part
                if len(content) > MAX_ANSWER:
                    raise ServerError(
                        f"{self.url} answers {path} by more than {MAX_ANSWER:,} bytes.",
                        response.status_code,
                    )
        return response, content


def blocking(
    method: Callable[Concatenate[AsyncClient, Arguments], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate["Client", Arguments], Result]:
    """Turns a coroutine of `AsyncClient` into a method that waits for its result."""

    @functools.wraps(method)
    def wait(self, *args, **kwargs):
        return self._run(method(self._async, *args, **kwargs))

    return wait


class Client:
    """Asks a server of `keras-caption serve` for captions, translations and answers.

    If the server is busy, or the connection is lost, the client retries the request;
    delays between retries double. The methods are those of `AsyncClient`, without
    `await`. Threads may share a client, and it works where an event loop is running, as
    in a notebook.

    Args:
        url: str, such as `"http://localhost:8501"`. Requests to this machine do not use
            the proxy that the environment may name.
        token: str, token of the server, or `None`.
        timeout: float, seconds that a call may take in all, retries included.
        retries: int, greatest number of retries of a request.

    Raises:
        InputError: If the URL or the token is malformed, or the proxy cannot be used.

    Example:

    ```python
    client = keras_caption.serving.Client("http://localhost:8501")
    [caption] = client.texts("ngsan_coco", ["dog.jpg"])
    records = [{"photo": content, "question": "Why?"}]
    [prediction] = client.answer("mcan_photos", records)
    print(prediction.text, prediction.confidence)
    ```
    """

    def __init__(self, url: str, token: str | None = None, **settings: Any):
        self._async = AsyncClient(url, token, **settings)
        self._lock = threading.Lock()
        self._loop: LoopThread | None = None

    @property
    def url(self) -> str:
        return self._async.url

    answer = blocking(AsyncClient.answer)
    texts = blocking(AsyncClient.texts)
    predict = blocking(AsyncClient.predict)
    status = blocking(AsyncClient.status)
    metadata = blocking(AsyncClient.metadata)

    def close(self) -> None:
        """Closes the connections; calls that still run raise `InputError`."""
        with self._lock:
            loop, self._loop = self._running_loop(), None
        loop.close(self._async.close)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def _run(self, call):
        """Runs a coroutine in the loop's thread: it can be cancelled at the timeout."""
        with self._lock:  # so that `close` comes after, not between
            self._loop = self._running_loop()
            future = self._loop.begin(call)
        return result_of(future)

    def _running_loop(self):
        if self._loop is not None and self._loop.process != os.getpid():
            self._loop = None  # a fork has no thread for the loop of its parent
            self._async._http = connections_to(self.url, self._async.token)
        return self._loop or LoopThread()


class LoopThread:
    """A thread with an event loop, which runs coroutines for other threads.

    Attributes:
        process: int, id of the process that has the thread.
    """

    def __init__(self):
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def begin(self, call: Coroutine) -> Future:
        """Begins to run a coroutine, see `result_of`."""
        return asyncio.run_coroutine_threadsafe(call, self._loop)

    def close(self, last: Callable[[], Coroutine]) -> None:
        """Cancels what runs, runs a last coroutine, and ends the thread."""

        async def end():
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await last()

        result_of(self.begin(end()))
        self._loop.call_soon_threadsafe(self._loop.stop)


def result_of(future: Future) -> Any:
    """Waits for a coroutine of a `LoopThread`, and returns or raises its result."""
    try:
        return future.result()
    except CancelledError:
        raise InputError("The client is closed.") from None
    except BaseException:  # such as an interruption of the waiting thread
        future.cancel()
        raise


# === Addresses ===


def checked_address(url: str) -> str:
    """The address of a server, with its scheme and without a slash at its end.

    Raises:
        InputError: If `url` is no address of HTTP or HTTPS.
    """
    text = str(url).strip()
    text = text if "://" in text else f"http://{text}"
    try:
        parsed = httpx.URL(text)
        is_right = parsed.scheme in ("http", "https") and bool(parsed.host)
        is_right &= parsed.port is None or 0 < parsed.port < 2**16
    except (httpx.InvalidURL, ValueError):  # for example, a lone surrogate
        is_right = False
    if not is_right:
        raise InputError(
            f"{url!r:.100} is no address of a server, such as http://localhost:8501."
        )
    return text.rstrip("/")


def connections_to(url: str, token: str | None) -> httpx.AsyncClient:
    """The HTTP client that keeps connections to a server open.

    Raises:
        InputError: If the token cannot be sent, or the proxy of the environment cannot
            be used.
    """
    if token and not token.isprintable():
        raise InputError("The token has characters that no header can have.")
    headers = {b"Accept-Encoding": b"identity"}
    if token:
        headers[b"Authorization"] = f"Bearer {token}".encode()
    host = httpx.URL(url).host
    # An explicit transport has no proxy; the default one takes the environment's.
    transport = httpx.AsyncHTTPTransport() if is_asked_directly(host) else None
    try:
        return httpx.AsyncClient(headers=headers, timeout=None, transport=transport)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"The proxy that the environment names cannot be used: {error} With "
            f"NO_PROXY={host} the server is asked without it."
        ) from None


def is_asked_directly(host: str) -> bool:
    """Whether requests to a host use no proxy: it is local, or in `NO_PROXY`."""
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    return is_local or bool(urllib.request.proxy_bypass(host))


def path_of(model: str, version: int | None = None) -> str:
    """The path of a model, or of one of its versions, in an address."""
    part = "" if version is None else f"/versions/{version}"
    try:
        return f"/v1/models/{urllib.parse.quote(model, safe='')}{part}"
    except UnicodeEncodeError:  # of a lone surrogate
        raise InputError(f"{model!r:.100} is no name of a model.") from None


# === Requests ===


def record_of(record: Any) -> dict[str, Any]:
    """A record in the form that the server reads, for JSON."""
    if isinstance(record, str) and not names_a_file(record):
        record = {"source": record}
    elif not isinstance(record, Mapping):
        is_path = isinstance(record, str | os.PathLike)
        name = "clip" if is_path and suffix_of(record) in CLIPS else "photo"
        record = {name: record}
    return {
        name: to_json(bytes_of(value) if name in ("photo", "clip") else value)
        for name, value in record.items()
    }


def names_a_file(text: str) -> bool:
    """Whether a str is the path of a photo or a clip, as opposed to a sentence.

    A path ends in a suffix of such files, and is one word or an existing file.
    """
    if suffix_of(text) not in (*PHOTOS, *CLIPS):
        return False
    return os.path.isfile(text) or len(text.split()) == 1


def bytes_of(file: Any) -> bytes:
    """The content of a photo or clip, which is bytes, a path or an array of pixels.

    Raises:
        InputError: If a file cannot be read, or `file` is none of these.
    """
    if isinstance(file, bytes):
        return file
    if isinstance(file, np.ndarray):
        if file.dtype != "uint8" or file.ndim != 3 or file.shape[-1] != 3:
            raise InputError(
                "A photo's array should be uint8 (height, width, 3). Received: "
                f"{file.dtype} {file.shape}"
            )
        with missing_extras():
            from PIL import Image

        content = io.BytesIO()
        Image.fromarray(file).save(content, "png")
        return content.getvalue()
    if isinstance(file, str | os.PathLike):
        try:
            return pathlib.Path(file).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{file} cannot be read: {reason}.") from None
    raise InputError(
        f"A photo should be bytes, a path or an array. Received: {type(file).__name__}"
    )


def to_json(value: Any) -> Any:
    """Converts arrays to lists, and bytes to base64."""
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, list | tuple):
        return [to_json(x) for x in value]
    if hasattr(value, "__array__"):
        return to_json(np.asarray(value).tolist())
    return value


def content_of(body: Any) -> bytes:
    """The JSON of a request. Numbers that are not finite are `NaN` and `Infinity`.

    Raises:
        InputError: If a value cannot be written as JSON.
    """
    try:
        return json.dumps(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"A request cannot be sent as JSON: {error}.") from None


# === Answers ===


def prediction_of(answer: dict[str, Any]) -> Prediction:
    """The prediction in a server's answer. Unknown fields are ignored."""
    values = {name: answer[name] for name in SENT if name in answer}
    if not isinstance(values["text"], str):
        raise TypeError("A text should be a str.")
    values["score"] = float(values["score"])
    values["best"] = [
        (str(x["text"]), float(x["score"])) for x in values.get("best", [])
    ]
    for name in ARRAYS:
        if name in values:
            values[name] = np.array(values[name], "float32")
    return Prediction(**values)


def reason_of(error: Exception) -> str:
    """Describes an error of a connection by its message from the operating system."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            if cause.errno > 0:
                return os.strerror(cause.errno)
            return cause.strerror or str(cause)
        cause = cause.__cause__ or cause.__context__
    return str(error).rstrip(".") or type(error).__name__


def parsed(content: bytes) -> Any:
    """The value of an answer in JSON, or `None` if it is no JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def error_of(response: Any, answer: Any) -> ServerError:
    """The error of an unsuccessful response, with the server's message if any."""
    status = response.status_code
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        return ServerError(answer["error"], status)
    return ServerError(f"The server answers with the status {status}.", status)
