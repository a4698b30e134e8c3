import asyncio
import base64
import io
import os
import pathlib
import random
import time
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import httpx
import numpy as np

from keras_caption.errors import InputError
from keras_caption.serving.prediction import Prediction

BUSY = (429, 502, 503)  # statuses after which a request may come again
LOST = (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError)
FIRST_DELAY = 0.1  # seconds before the first retry; it doubles
LONGEST_DELAY = 10.0


class ServerError(Exception):
    """A server has refused a request, or does not answer.

    Attributes:
        status: int, of HTTP, or `None` without an answer.
    """

    def __init__(self, message: str, status: int | None = None):
        super().__init__(message)
        self.status = status


class _Requests:
    """What both clients ask for; each method is a generator, see `_attempts`."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = 60.0,
        retries: int = 5,
    ):
        self.url = url.rstrip("/")
        self.retries = retries
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._settings = {"timeout": timeout, "headers": headers}

    def _answer(self, model, records, n, attention, version, options):
        body = {"records": [record_of(record) for record in records]}
        body |= {"n": n, "attention": attention, "options": options}
        address = f"{self._address(model, version)}:answer"
        answer = yield from self._attempts("POST", address, body)
        return [prediction_of(x) for x in answer["predictions"]]

    def _predict(self, model, inputs, signature, version):
        body = {"inputs": {name: to_json(x) for name, x in inputs.items()}}
        if signature is not None:
            body["signature_name"] = signature
        address = f"{self._address(model, version)}:predict"
        answer = yield from self._attempts("POST", address, body)
        outputs = answer["outputs"]
        if isinstance(outputs, dict):
            return {name: np.array(x) for name, x in outputs.items()}
        return np.array(outputs)

    def _status(self, model):
        answer = yield from self._attempts("GET", self._address(model))
        return {int(x["version"]): x["state"] for x in answer["model_version_status"]}

    def _metadata(self, model, version):
        address = f"{self._address(model, version)}/metadata"
        answer = yield from self._attempts("GET", address)
        return answer["metadata"]["signature_def"]["signature_def"]

    def _address(self, model, version=None):
        part = "" if version is None else f"/versions/{version}"
        return f"{self.url}/v1/models/{model}{part}"

    def _attempts(
        self, method: str, address: str, body: Any = None
    ) -> Generator[Any, Any, Any]:
        """Yields requests, as arguments, and seconds to wait; returns the answer.

        A request's response, or the error of a lost connection, is sent back.
        """
        for attempt in range(self.retries + 1):
            response = yield method, address, body
            delay = min(FIRST_DELAY * 2**attempt, LONGEST_DELAY)
            delay *= random.uniform(0.5, 1)  # clients come back at different times
            if isinstance(response, Exception):
                message, status = f"{self.url} does not answer: {response}", None
            else:
                status = response.status_code
                if status == 200:
                    return response.json()
                message = error_of(response)
                if status not in BUSY:
                    raise ServerError(message, status)
                after = response.headers.get("retry-after", "")
                delay = max(delay, float(after)) if after.isdecimal() else delay
            if attempt < self.retries:
                yield delay
        raise ServerError(message, status)


class Client(_Requests):
    """Asks a server of `keras-caption serve` for captions, translations and answers.

    Where the server is busy, or the connection is lost, a request comes again, after a
    time that doubles. `AsyncClient` has the same methods as coroutines.

    Args:
        url: str, such as `"http://localhost:8501"`.
        token: str, that the server asks for, or `None`.
        timeout: float, seconds that an answer may take.
        retries: int, how often a request may come again.

    Example:

    ```python
    client = keras_caption.serving.Client("http://localhost:8501")
    [caption] = client.texts("ngsan_coco", [pathlib.Path("dog.jpg")])
    [found] = client.answer("mcan_photos", [{"photo": content, "question": "Why?"}])
    print(found.text, found.confidence)
    ```
    """

    def __init__(self, url: str, token: str | None = None, **settings: Any):
        super().__init__(url, token, **settings)
        self._http = httpx.Client(**self._settings)

    def answer(
        self,
        model: str,
        records: Iterable[Any],
        *,
        n: int | None = None,
        attention: bool = False,
        version: int | None = None,
        **options: Any,
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
            InputError: If a file cannot be read.
            ServerError: If the server refuses the request, or does not answer.
        """
        return self._run(self._answer(model, records, n, attention, version, options))

    def texts(self, model: str, records: Iterable[Any], **more: Any) -> list[str]:
        """Captions, translations or answers, see `answer`."""
        return [found.text for found in self.answer(model, records, **more)]

    def predict(
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
        return self._run(self._predict(model, inputs, signature, version))

    def status(self, model: str) -> dict[int, str]:
        """The states of a model's versions, by number."""
        return self._run(self._status(model))

    def metadata(self, model: str, version: int | None = None) -> dict[str, Any]:
        """A model's signatures, by name, as TensorFlow Serving describes them."""
        return self._run(self._metadata(model, version))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def _run(self, steps):
        result = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value
            result = None
            if isinstance(step, float):
                time.sleep(step)
                continue
            method, address, body = step
            try:
                result = self._http.request(method, address, json=body)
            except LOST as error:
                result = error
            except httpx.TimeoutException as error:
                raise ServerError(f"{self.url} does not answer in time.") from error


class AsyncClient(_Requests):
    """`Client`, whose methods are coroutines."""

    def __init__(self, url: str, token: str | None = None, **settings: Any):
        super().__init__(url, token, **settings)
        self._http = httpx.AsyncClient(**self._settings)

    async def answer(
        self,
        model: str,
        records: Iterable[Any],
        *,
        n: int | None = None,
        attention: bool = False,
        version: int | None = None,
        **options: Any,
    ) -> list[Prediction]:
        """See `Client.answer`."""
        steps = self._answer(model, records, n, attention, version, options)
        return await self._run(steps)

    async def texts(self, model: str, records: Iterable[Any], **more: Any) -> list[str]:
        """See `Client.texts`."""
        return [found.text for found in await self.answer(model, records, **more)]

    async def predict(
        self,
        model: str,
        inputs: Mapping[str, Any],
        signature: str | None = None,
        version: int | None = None,
    ) -> dict[str, np.ndarray]:
        """See `Client.predict`."""
        return await self._run(self._predict(model, inputs, signature, version))

    async def status(self, model: str) -> dict[int, str]:
        """See `Client.status`."""
        return await self._run(self._status(model))

    async def metadata(self, model: str, version: int | None = None) -> dict[str, Any]:
        """See `Client.metadata`."""
        return await self._run(self._metadata(model, version))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.close()

    async def _run(self, steps):
        result = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value
            result = None
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            method, address, body = step
            try:
                result = await self._http.request(method, address, json=body)
            except LOST as error:
                result = error
            except httpx.TimeoutException as error:
                raise ServerError(f"{self.url} does not answer in time.") from error


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
        from PIL import Image

        content = io.BytesIO()
        Image.fromarray(file).save(content, "png")
        return content.getvalue()
    if isinstance(file, str | os.PathLike):
        try:
            return pathlib.Path(file).read_bytes()
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}.") from None
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


def prediction_of(answer: dict[str, Any]) -> Prediction:
    """A prediction as the server has sent it."""
    best = [(x["text"], x["score"]) for x in answer.get("best", [])]
    arrays = {
        name: np.array(answer[name], "float32")
        for name in ("attention", "boxes")
        if name in answer
    }
    return Prediction(**{**answer, **arrays, "best": best})


def error_of(response: Any) -> str:
    """The sentence that the server refuses a request with."""
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"The server answers with the status {response.status_code}."
