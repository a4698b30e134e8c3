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
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

import httpx
import numpy as np

from keras_caption.arguments import CountOrZero, Positive, check
from keras_caption.errors import InputError, missing_extras
from keras_caption.serving.prediction import Prediction
from keras_caption.settings.options import DecodingOptions

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
BUSY = (429, 502, 503)  # statuses after which a request may come again
LOST = (
    *(httpx.ConnectError, httpx.ReadError, httpx.WriteError),
    httpx.RemoteProtocolError,
)
FIRST_DELAY = 0.1  # seconds before the first retry; it doubles
LONGEST_DELAY = 10.0
MAX_ANSWER = 2**30  # bytes
ARRAYS = ("attention", "boxes")  # of a prediction
SENT = {field.name for field in dataclasses.fields(Prediction)} - {"inputs", "tokens"}


class ServerError(Exception):
    """A server has refused a request, does not answer, or answers something else.

    Attributes:
        status: int, of HTTP, or `None` without an answer.
    """

    def __init__(self, message: str, status: int | None = None):
        super().__init__(message)
        self.status = status


class AsyncClient:
    """`Client`, whose methods are coroutines: its arguments are those of `Client`."""

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
        """What a model makes of records.

        Args:
            model: str, its name.
            records: Iterable of dict, see `keras_caption.serving.Predictor`, in which
                `photo` and `clip` may be paths too; or of photos, as bytes, path or
                uint8 array `(height, width, 3)`; or of sentences, as str.
            n, attention, **options: Of `keras_caption.serving.Predictor.answer`.
            version: int; defaults to the newest.

        Returns:
            List of `Prediction`, without `inputs` and `tokens`.

        Raises:
            InputError: If a file cannot be read, or a record is no JSON.
            ServerError: If the server refuses the request, does not answer in time, or
                answers something else.
        """
        body = {"records": [record_of(record) for record in records]}
        body |= {"n": n, "attention": attention, "options": options}

        def read(answer):
            found = [prediction_of(x) for x in answer["predictions"]]
            if len(found) != len(body["records"]):
                raise ValueError("There should be a prediction of each record.")
            return found

        return await self._ask("POST", f"{path_of(model, version)}:answer", read, body)

    async def texts(self, model: str, records: Iterable[Any], **more: Any) -> list[str]:
        """Captions, translations or answers, see `answer`."""
        return [found.text for found in await self.answer(model, records, **more)]

    async def predict(
        self,
        model: str,
        inputs: Mapping[str, Any],
        signature: str | None = None,
        version: int | None = None,
    ) -> dict[str, np.ndarray]:
        """What a signature of a model returns, of TensorFlow Serving too.

        Args:
            model: str, its name.
            inputs: dict from name to array `(batch, ...)` or list; bytes are sent as
                base64.
            signature: str, defaults to what the server chooses.
            version: int; defaults to the newest.

        Returns:
            dict of arrays, or one array if there is a single output.
        """
        body = {"inputs": {name: to_json(x) for name, x in inputs.items()}}
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
        """What `read` makes of the answer to a request, which may come again."""
        if self._http.is_closed:
            raise InputError("The client is closed.")
        request = {} if body is None else {"content": content_of(body)}
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
        """The JSON of an answer, after as many attempts as are allowed."""
        for attempt in range(self.retries + 1):
            delay = min(FIRST_DELAY * 2**attempt, LONGEST_DELAY)
            delay *= random.uniform(0.5, 1)  # clients come back at different times
            try:
                response, content = await self._attempt(method, path, request)
            except LOST as error:
                problem = ServerError(
                    f"{self.url} does not answer{self._reason(error)}"
                )
            except httpx.HTTPError as error:
                raise ServerError(
                    f"{self.url} does not answer{self._reason(error)}"
                ) from error
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
            left = limit.when() - asyncio.get_running_loop().time()
            if attempt == self.retries or delay > left:
                raise problem
            await asyncio.sleep(delay)
        return None

    def _reason(self, error):
        """Why there is no answer, the end of a sentence."""
        url, proxies = httpx.URL(self.url), urllib.request.getproxies()
        through = ""
        if not is_asked_directly(url.host) and {url.scheme, "all"} & {*proxies}:
            through = f" through the environment's proxy (or set NO_PROXY={url.host})"
        return f"{through}: {reason_of(error)}."

    async def _attempt(self, method, path, request):
        """A response and its content, as far as it may be long."""
        content = bytearray()
        async with self._http.stream(
            method, f"{self.url}{path}", **request
        ) as response:
            encoding = response.headers.get("content-encoding", "identity")
            if encoding != "identity":  # which would be of any length
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
    """A method of `AsyncClient` for `Client`, which waits for its result."""

    @functools.wraps(method)
    def wait(self, *args, **kwargs):
        return self._run(method(self._async, *args, **kwargs))

    return wait


class Client:
    """Asks a server of `keras-caption serve` for captions, translations and answers.

    Where the server is busy, or the connection is lost, a request comes again, after a
    time that doubles. Its methods are those of `AsyncClient`, which there are
    coroutines. A client may be shared by threads, and used where an event loop runs, as
    in a notebook.

    Args:
        url: str, such as `"http://localhost:8501"`. A server of this machine is asked
            without the proxy that the environment may name.
        token: str, that the server asks for, or `None`.
        timeout: float, seconds that a call may take in all, retries included.
        retries: int, how often a request may come again.

    Raises:
        InputError: If the URL or the token is none, or the proxy cannot be used.

    Example:

    ```python
    client = keras_caption.serving.Client("http://localhost:8501")
    [caption] = client.texts("ngsan_coco", [pathlib.Path("dog.jpg")])
    [found] = client.answer("mcan_photos", [{"photo": content, "question": "Why?"}])
    print(found.text, found.confidence)
    ```
    """

    def __init__(self, url: str, token: str | None = None, **settings: Any):
        self._async = AsyncClient(url, token, **settings)
        self._lock = threading.Lock()
        self._loop = None

    @property
    def url(self) -> str:
        return self._async.url

    answer = blocking(AsyncClient.answer)
    texts = blocking(AsyncClient.texts)
    predict = blocking(AsyncClient.predict)
    status = blocking(AsyncClient.status)
    metadata = blocking(AsyncClient.metadata)

    def close(self) -> None:
        self._run(self._async.close())
        with self._lock:
            self._loop.close()
            self._loop = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def _run(self, call):
        """What a coroutine returns, which, unlike blocking calls, ends in time."""
        with self._lock:
            if self._loop is not None and self._loop.process != os.getpid():
                self._loop = None  # of the process that this one is a fork of
                self._async._http = connections_to(self.url, self._async.token)
            self._loop = loop = self._loop or LoopThread()
        return loop.run(call)


class LoopThread:
    """An event loop in a thread of its own, which runs coroutines of other threads.

    Attributes:
        process: int, id of the process that the thread is in.
    """

    def __init__(self):
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, call: Coroutine) -> Any:
        """What a coroutine returns or raises."""
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:  # such as an interruption of the thread that waits
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


# === Addresses ===


def checked_address(url: str) -> str:
    """The address of a server, with its scheme and without a slash at its end.

    Raises:
        InputError: If it is none.
    """
    text = str(url).strip()
    text = text if "://" in text else f"http://{text}"
    try:
        parsed = httpx.URL(text)
        is_right = parsed.scheme in ("http", "https") and bool(parsed.host)
    except httpx.InvalidURL:
        is_right = False
    if not is_right:
        raise InputError(
            f"{url!r:.100} is no address of a server, such as http://localhost:8501."
        )
    return text.rstrip("/")


def connections_to(url: str, token: str | None) -> httpx.AsyncClient:
    """What keeps connections to a server open.

    Raises:
        InputError: If the token cannot be sent, or the proxy of the environment cannot
            be used.
    """
    if token and not token.isprintable():
        raise InputError("The token has characters that no header can have.")
    headers = {"Accept-Encoding": "identity"}
    if token:
        headers["Authorization"] = f"Bearer {token}".encode()
    host = httpx.URL(url).host
    # A transport of its own, for it has no proxy.
    transport = httpx.AsyncHTTPTransport() if is_asked_directly(host) else None
    try:
        return httpx.AsyncClient(headers=headers, timeout=None, transport=transport)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"The proxy that the environment names cannot be used: {error} With "
            f"NO_PROXY={host} the server is asked without it."
        ) from None


def is_asked_directly(host: str) -> bool:
    """Whether a host is asked without a proxy: it is local, or in `NO_PROXY`."""
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    return is_local or bool(urllib.request.proxy_bypass(host))


def path_of(model: str, version: int | None = None) -> str:
    """The path of a model's address, or of one of its versions."""
    part = "" if version is None else f"/versions/{version}"
    return f"/v1/models/{urllib.parse.quote(model, safe='')}{part}"


# === What is sent ===


def record_of(record: Any) -> dict[str, Any]:
    """A record as the server reads it."""
    if isinstance(record, str):
        record = {"source": record}
    elif not isinstance(record, Mapping):
        record = {"photo": record}
    return {
        name: to_json(bytes_of(value) if name in ("photo", "clip") else value)
        for name, value in record.items()
    }


def bytes_of(file: Any) -> bytes:
    """The content of a photo or clip, given as such, as path or as pixels.

    Raises:
        InputError: If a file cannot be read, or it is nothing of this.
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
    """Arrays as lists, and bytes as base64."""
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, list | tuple):
        return [to_json(x) for x in value]
    if hasattr(value, "__array__"):
        return to_json(np.asarray(value).tolist())
    return value


def content_of(body: Any) -> bytes:
    """The JSON of a request; numbers that are not finite are sent as Python has them.

    Raises:
        InputError: If a value has no JSON.
    """
    try:
        return json.dumps(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"A request cannot be sent as JSON: {error}.") from None


# === What is answered ===


def prediction_of(answer: dict[str, Any]) -> Prediction:
    """A prediction as the server has sent it, of the fields that are known here."""
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
    """What an error of a connection is, in the words of the operating system if any."""
    cause = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error).rstrip(".") or type(error).__name__


def parsed(content: bytes) -> Any:
    """The JSON of an answer, or `None`."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def error_of(response: Any, answer: Any) -> ServerError:
    """The error of a response that is no success, with the server's sentence if any."""
    status = response.status_code
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        return ServerError(answer["error"], status)
    return ServerError(f"The server answers with the status {status}.", status)
