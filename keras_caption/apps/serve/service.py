"""Answers requests of any protocol: reads them, runs batches, writes answers."""

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from keras_caption.apps.serve.batcher import Batcher
from keras_caption.apps.serve.chat import Chat, Reply, in_chat
from keras_caption.apps.serve.chat import record_of as record_of_chat
from keras_caption.apps.serve.effort import check_effort
from keras_caption.apps.serve.rest_values import (
    answer_in_columns,
    answer_in_rows,
    from_base64,
    in_utf8,
    read_request,
)
from keras_caption.apps.serve.versions import ServedModel, Version
from keras_caption.base.errors import InputError, need_name
from keras_caption.formats.deadline import reading_until
from keras_caption.predict import Prediction
from keras_caption.predict.stacking import stack
from keras_caption.settings.limits import Limits

UNPADDED = "tokens"  # an input that is not padded, since outputs have its length
NAME = re.compile(r"[^/:?#%\s]+")  # of a model, as a part of addresses
BODY = ("records", "n", "attention", "options")  # of JSON that asks for answers
QUERY = ("question", "n")  # of an address that a photo is sent to


class UnavailableError(Exception):
    """No version of a model can answer now."""


class Service:
    """Models that answer requests, in batches.

    Args:
        limits: `Limits`.
        on_batch: Function that is called with a model's name and the number of
            examples of each of its batches.

    Attributes:
        models: dict from name to `ServedModel`.
    """

    def __init__(
        self,
        limits: Limits,
        on_batch: Callable[[str, int], None] = lambda name, size: None,
    ):
        self.limits = limits
        self.on_batch = on_batch
        self.models: dict[str, ServedModel] = {}
        # One pool per model: slow files of one delay no other.
        self._readers: dict[str, ThreadPoolExecutor] = {}
        self._closing = threading.Event()
        self._watcher: threading.Thread | None = None

    def add(
        self,
        name: str,
        path: str,
        load: Callable[[str], Any],
        later: bool = False,
        **more: Any,
    ) -> None:
        """Adds a model, and loads its versions.

        Args:
            name, path, load: As in `ServedModel`.
            later: bool, whether to leave loading to `Service.load`. No request is
                answered before.
            **more: `labels` and `log` of `ServedModel`.

        Raises:
            InputError: If the service has a model of this name, there is nothing at the
                path, or no version can be loaded.
        """
        if name in self.models:
            raise InputError(f"Two models would have the name {name}.")
        if not NAME.fullmatch(name):
            raise InputError(f"{name!r:.60} is no name of a model in an address.")

        def batcher_of(model):
            return Batcher(
                lambda key, items: run(model, key, items),
                self.limits.batch_size,
                self.limits.batch_delay,
                lambda size: self.on_batch(name, size),
                self.limits.max_effort,
            )

        model = ServedModel(name, path, load, batcher_of, **more)
        if not later:
            load_first(model)
        self._readers[name] = ThreadPoolExecutor(os.cpu_count(), f"{name} reader")
        self.models = {**self.models, name: model}  # other threads read the old dict

    def load(self) -> None:
        """Loads the models that have no version yet, one after the other.

        Raises:
            InputError: If no version of a model can be loaded.
        """
        for model in self.models.values():
            if not (model.versions or self._closing.is_set()):
                load_first(model)

    def watch(self, seconds: float) -> None:
        """Looks for new versions in the background, at an interval in seconds."""

        def look():
            while not self._closing.wait(seconds):
                for model in self.models.values():
                    if not self._closing.is_set():
                        model.update()

        self._watcher = threading.Thread(target=look, daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """Finishes accepted requests, and answers no more."""
        self._closing.set()
        for model in self.models.values():
            model.close()
        for readers in self._readers.values():
            readers.shutdown()
        # TensorFlow aborts the process if a thread loads a model at its end.
        if self._watcher is not None:
            self._watcher.join()

    async def predict(
        self, name: str, find: Callable[[], Version], content: bytes
    ) -> tuple[int, dict[str, Any]]:
        """Answers a request of TensorFlow Serving's `predict`.

        Args:
            name: str, name of the model.
            find: Function that returns the requested version.
            content: bytes, JSON.

        Returns:
            int, the number of examples; and the answer, a dict for JSON.

        Raises:
            InputError: If the request is malformed or has a wrong value.
        """

        def read():
            body = from_json(content)
            signature, rows = read_request(body, find().model.signatures)
            # Requests with the same inputs of a signature share batches.
            key = "predict", signature, frozenset(rows[0])
            if UNPADDED in rows[0]:
                key = *key, tuple(sorted({row[UNPADDED].shape for row in rows}))
                if len(key[-1]) > 1:
                    raise InputError(f"`{UNPADDED}` should have one length.")
            return "instances" in body, key, rows

        in_rows, key, rows = await self._in_reader(name, read)
        results = []
        for start in range(0, len(rows), self.limits.batch_size):
            part = rows[start : start + self.limits.batch_size]
            results += await self._run(name, find, key, lambda version, part=part: part)

        def write():
            outputs = {name: stack([x[name] for x in results]) for name in results[0]}
            return answer_in_rows(outputs) if in_rows else answer_in_columns(outputs)

        return len(rows), await self._in_reader(name, write)

    async def answer(
        self,
        name: str,
        find: Callable[[], Version],
        content: bytes,
        query: dict[str, str],
        is_json: bool = False,
    ) -> tuple[int, dict[str, Any]]:
        """Answers records, see `Predictor`.

        Args:
            name, find: As in `predict`.
            content: bytes, JSON with `records` and, optionally, `n`, `attention` and
                `options`; or a file of a photo.
            query: dict of str: for a file of a photo, a `question` and `n`.
            is_json: bool, whether the header declares JSON. If not, content that begins
                with a brace or a bracket is JSON.

        Returns:
            As `predict`.

        Raises:
            InputError: As in `predict`.
        """
        found, body = await self._predictions(
            name, find, lambda: content_of(content, query, is_json)
        )
        lists_best, shows = body.get("n") is not None, bool(body.get("attention"))
        predictions = [to_json(x, lists_best, shows) for x in found]
        return len(found), {"predictions": predictions}

    async def chat(self, name: str, find: Callable[[], Version], chat: Chat) -> Reply:
        """Answers a chat.

        Args:
            name, find: Of `predict`.
            chat: `Chat`.

        Raises: As `predict`.
        """
        begin = time.perf_counter()

        record, places = await self._in_reader(
            name, lambda: record_of_chat(chat, find().model.reads)
        )
        body = {"records": [record], "n": None if chat.n == 1 else chat.n}
        try:
            [found], _ = await self._predictions(name, find, lambda: body)
        except InputError as error:
            raise InputError(in_chat(str(error), places)) from None
        texts = [text for text, _ in found.best] or [found.text]

        def count():
            return sum(map(find().model.count_tokens, texts))

        read = [x for x in record.values() if isinstance(x, str)]
        return Reply(
            texts,
            prompt_tokens=sum(len(text.split()) for text in read),
            completion_tokens=await self._in_reader(name, count),
            seconds=time.perf_counter() - begin,
        )

    async def _predictions(self, name, find, make_body):
        """The predictions of the records of a body, and that body."""
        end = time.monotonic() + self.limits.timeout

        def parse():
            body = make_body()
            records = body["records"]
            if not isinstance(records, list) or not records:
                raise InputError("`records` should be a list of at least one record.")
            n, attention, options = (body.get(x) for x in ("n", "attention", "options"))
            if attention not in (None, False, True):
                raise InputError("`attention` should be true or false.")
            options = {} if options is None else options
            if not isinstance(options, dict):
                raise InputError("`options` should be an object.")
            model = find().model
            effort = check_effort(model, records, n, options, self.limits.max_effort)
            model.check_options(n, options)
            # A hashable key: requests with the same options share batches.
            kept = json.dumps(options, sort_keys=True)
            return body, effort, ("answer", n, bool(attention), kept)

        body, effort, key = await self._in_reader(name, parse)
        records, results = body["records"], []
        for start in range(0, len(records), self.limits.batch_size):
            part = list(enumerate(records))[start : start + self.limits.batch_size]

            def examples(version, part=part):
                with reading_until(end):
                    return [
                        version.model.read(record_of(x, i), i, self.limits.max_pixels)
                        for i, x in part
                    ]

            share = effort * len(part) / len(records)
            results += await self._run(name, find, key, examples, share)
        return results, body

    async def _in_reader(self, name, function, *arguments):
        """Runs a function in a thread: the event loop goes on answering others."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers[name], function, *arguments)

    async def _run(self, name, find, key, examples_of, effort=0.0):
        """Runs examples, which fit into one batch, by the requested version."""
        while True:
            version = find()
            examples = await self._in_reader(name, examples_of, version)
            try:
                future = version.batcher.submit(key, examples, effort)
            except RuntimeError:  # closed: another version has replaced this one
                if self._closing.is_set():
                    raise UnavailableError from None
                continue
            return await asyncio.wrap_future(future)


def load_first(model: ServedModel) -> None:
    """Loads the versions of a model; one that is closed meanwhile has none.

    Raises:
        InputError: If no version can be loaded.
    """
    model.update()
    if not (model.versions or model.is_closed):
        *_, reason = [status.message for status in model.statuses.values()]
        raise InputError(f"{model.path} cannot be served: {reason}.")


def run(model: Any, key: tuple, items: list[Any]) -> list[Any]:
    """Runs a model on a batch of examples with the same key, see `Service`."""
    if key[0] == "predict":
        outputs = model.signatures[key[1]](stack(items))
        return [{name: x[i] for name, x in outputs.items()} for i in range(len(items))]
    _, n, attention, options = key
    return model.answer(items, n=n, attention=attention, **json.loads(options))


def from_json(content: bytes) -> dict[str, Any]:
    """Parses a request as a JSON object.

    Raises:
        InputError: If the request is empty, no JSON, or no object.
    """
    if not content.strip():
        raise InputError("The request has no body: it should be a JSON object.")
    try:
        body = json.loads(in_utf8(content))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise InputError("The request is no JSON.") from None
    except ValueError:
        raise InputError("A number of the request has too many digits.") from None
    if not isinstance(body, dict):
        kind = "a list" if isinstance(body, list) else "another value"
        raise InputError(f"The request should be a JSON object, and is {kind}.")
    return body


def content_of(
    content: bytes, query: dict[str, str], is_json: bool = False
) -> dict[str, Any]:
    """Parses a request of `answer`, which may be JSON or a file of a photo.

    No file of a photo begins as JSON in any encoding does.

    Raises:
        InputError: If the request has no records, or a value that nobody reads, as a
            misspelt one is.
    """
    if not content.strip():
        raise InputError("The request has no body: it should be JSON, or a photo.")
    if is_json or in_utf8(content).lstrip()[:1] in (b"{", b"["):
        body = from_json(content)
        if "records" not in body:
            raise InputError("The request has no `records`.")
        for name in body:
            need_name(name, BODY, f"The request has no value {name!r}")
        if query:
            raise InputError("The address has values of a photo; JSON has its own.")
        return body
    for name in query:
        need_name(name, QUERY, f"The address has no value {name!r}")
    record: dict[str, Any] = {"photo": content}
    if "question" in query:
        record["question"] = query["question"]
    n: Any = query.get("n")
    if n is not None and re.fullmatch("[0-9]{1,9}", n):
        n = int(n)
    return {"records": [record], "n": n}  # any other `n` is refused


def record_of(record: Any, place: int) -> Any:
    """Decodes the files of a record, which are `{"b64": ...}` in JSON, to bytes."""
    if not isinstance(record, dict):
        return record
    files = {}
    for name in ("photo", "clip"):
        value = record.get(name)
        if isinstance(value, dict) and isinstance(value.get("b64"), str):
            files[name] = from_base64(f"The {name} of record {place}", value["b64"])
        elif value is not None and not isinstance(value, bytes):
            raise InputError(
                f"The {name} of record {place} should be an object of b64."
            )
    return {**record, **files}


def to_json(
    prediction: Prediction, lists_best: bool, shows_attention: bool
) -> dict[str, Any]:
    """Converts a prediction to a dict for JSON.

    Args:
        prediction: `Prediction`.
        lists_best: bool, whether the dict lists several texts.
        shows_attention: bool, whether the dict has attention weights.
    """
    answer = {
        "text": prediction.text,
        "score": round(prediction.score, 6),
        "confidence": round(prediction.confidence, 6),
        "unsure": prediction.unsure,
    }
    if prediction.doubt:
        answer["doubt"] = prediction.doubt
    if lists_best:
        answer["best"] = [
            {"text": text, "score": round(score, 6)} for text, score in prediction.best
        ]
    if prediction.objects:
        answer["objects"] = prediction.objects
    if prediction.links:
        answer["links"] = prediction.links
    if shows_attention and prediction.attention is not None:
        answer |= {"words": prediction.words, "items": prediction.items}
        answer["attention"] = rounded(prediction.attention)
        if prediction.boxes is not None:
            answer["boxes"] = rounded(prediction.boxes)
    return answer


def rounded(values: np.ndarray) -> list[Any]:
    """Weights or boxes as lists, rounded to four digits."""
    return np.round(np.asarray(values, "float64"), 4).tolist()
