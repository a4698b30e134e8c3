import contextlib
import json
import math
import pathlib
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

import keras_caption
from keras_caption.apps.serve.local_hosts import LocalHosts, is_loopback
from keras_caption.apps.serve.rest import Metrics, Rest
from keras_caption.apps.serve.service import Service
from keras_caption.apps.serve.signals import setting_when_asked_to_end
from keras_caption.apps.serve.versions import SAVED_MODEL
from keras_caption.base.errors import InputError
from keras_caption.formats.suffixes import suffix_of
from keras_caption.settings.limits import Limits

BACKLOG = 2048  # connections that may wait to be accepted
HEAD_SECONDS = 10.0  # for the head of a connection's next request
# For the rest of a refused body: a client that still sends would not read the refusal
# of a closed connection.
REST_SECONDS = 2.0


class Server:
    """Serves models over HTTP, by TensorFlow Serving's REST interface.

    Args:
        limits: `keras_caption.serving.Limits`.
        token: str, which requests need as `Authorization: Bearer TOKEN`, or a sequence
            of str, of which requests need one. If omitted, requests need no token; an
            empty one is an `InputError`.
        certificate: Path of a TLS certificate with its chain, in PEM, for HTTPS. If
            omitted, the server speaks HTTP.
        key: Path of the private key, in PEM, if it is in a separate file.
        logs: bool, whether to write a line of JSON to standard error for each
            request. A line holds no text and no photo of a user.
        beam_sizes: As in `keras_caption.serving.Predictor.warm_up`, for all models.
        second_opinion: As in `keras_caption.serving.Predictor`, for all models that
            read objects.

    Example:

    ```python
    server = keras_caption.serving.Server()
    server.add("ngsan_coco.keras", detector="yolox_nano")
    with server.serving() as url:
        client = keras_caption.serving.Client(url)
        [prediction] = client.answer("ngsan_coco", [{"photo": content}])
    ```
    """

    def __init__(
        self,
        limits: Limits | None = None,
        token: str | Sequence[str] | None = None,
        logs: bool = False,
        certificate: str | None = None,
        key: str | None = None,
        beam_sizes: Sequence[int] = (),
        second_opinion: bool = False,
    ):
        tokens = [token] if isinstance(token, str) else list(token or ())
        if not all(tokens):  # for example, from an unset environment variable
            raise InputError("The token is empty, so that every request would have it.")
        self.has_token = bool(tokens)
        self.certificate = certificate
        self.key = key
        check_tls(certificate, key)
        self.logs = logs
        self.beam_sizes = beam_sizes
        self.second_opinion = second_opinion
        self.metrics = Metrics()
        self.service = Service(
            limits or Limits(),
            lambda name, size: self.metrics.sizes.labels(name).observe(size),
        )
        self._app = Rest(self.service, self.metrics, tokens, self.log).app()

    def add(
        self,
        path: str,
        name: str | None = None,
        detector: str | None = None,
        confidence: float | None = None,
        labels: dict[str, int] | None = None,
        later: bool = False,
        engine: str | None = None,
    ) -> str:
        """Adds a model, loads it and warms it up.

        Args:
            path: Path of a saved model, or of a folder of numbered versions, see
                `keras_caption.apps.serve.versions.ServedModel`.
            name: str. Defaults to the name of the file or folder.
            detector, confidence: As in `keras_caption.serving.Predictor`, if the model
                reads objects.
            labels: dict from the label of a version to its number.
            later: bool, whether to leave loading to `load`, so that the port may be
                opened before.
            engine: As in `load_predictor`.

        Returns:
            str, the name.

        Raises:
            InputError: If the model cannot be loaded, or the server has one of this
                name.
        """
        name = name or name_of(path)
        self.service.add(
            name,
            str(path),
            lambda path: load_predictor(
                path,
                detector,
                confidence,
                engine,
                self.beam_sizes,
                self.second_opinion,
            ),
            later=later,
            labels=labels,
            log=self.log,
        )
        return name

    def load(self) -> None:
        """Loads the models that were added with `later`.

        Raises:
            InputError: If a model cannot be loaded.
        """
        self.service.load()

    def watch(self, seconds: float) -> None:
        """Looks for new versions in the background, at an interval in seconds."""
        self.service.watch(seconds)

    def run(
        self,
        host: str = "127.0.0.1",
        port: int = 8501,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        """Serves until SIGINT, SIGTERM or SIGHUP, and answers what it has accepted.

        A second SIGINT ends the server at once. Signals reach the main thread only: in
        another thread, the method serves until the process ends.

        Args:
            host: str.
            port: int.
            prepare: Function that is called in a thread as soon as the port is open,
                such as `load`. If it raises an error, the server ends with this error.

        Raises:
            InputError: If the address is not free.
        """
        ended, errors = threading.Event(), []

        def prepare_or_end():
            try:
                prepare()
            except BaseException as error:
                errors.append(error)
                ended.set()

        preparing = threading.Thread(target=prepare_or_end, daemon=True)
        with setting_when_asked_to_end(ended), self.serving(host, port, ended):
            if prepare is not None:
                preparing.start()
            ended.wait()
        # TensorFlow aborts the process if a thread loads a model at its end.
        if prepare is not None:
            preparing.join()
        if errors:
            raise errors[0]

    @contextlib.contextmanager
    def serving(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        ended: threading.Event | None = None,
    ) -> Iterator[str]:
        """Serves in a thread during a `with` block, whose value is the address.

        Args:
            host: str.
            port: int; 0 stands for any free port.
            ended: `threading.Event` that is set if the thread ends by itself.

        Raises:
            InputError: If the address is not free.
        """
        listening = listen(host, port)
        server = self._uvicorn(host, listening)

        def serve():
            try:
                server.run([listening])
            finally:
                if ended is not None:
                    ended.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield url_of(host, listening.getsockname()[1], self.scheme)
        finally:
            server.should_exit = True
            thread.join()

    def log(self, event: str, **facts: Any) -> None:
        """Writes a line about an event, and counts versions that fail."""
        if event == "version_failed":
            self.metrics.failures.labels(facts["model"]).inc()
        if self.logs:
            line = {"time": round(time.time(), 3), "event": event, **facts}
            with contextlib.suppress(OSError):  # a full disk ends no request
                print(json.dumps(line), file=sys.stderr, flush=True)

    @property
    def scheme(self) -> str:
        """`https` with a certificate, else `http`."""
        return "https" if self.certificate else "http"

    def _uvicorn(self, host, listening):
        timeout = self.service.limits.timeout
        app = self._app
        # Pages of other sites do not know a token: it protects as well.
        if not self.has_token and is_loopback(listening.getsockname()[0]):
            app = LocalHosts(app, host)
        config = uvicorn.Config(
            app,
            http=Connection,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            # Longer than clients, such as httpx, keep idle connections: a request that
            # a client sends while the server closes the connection is lost.
            timeout_keep_alive=math.ceil(HEAD_SECONDS),
            timeout_graceful_shutdown=int(timeout) + 1,
            ssl_certfile=self.certificate,
            ssl_keyfile=self.key,
        )
        return uvicorn.Server(config)


class Connection(H11Protocol):
    """A connection that is closed if no request begins in time.

    Uvicorn alone waits without limit for the rest of a request's head, for the rest of
    a body that has been answered already, and for clients that do not read an answer.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait(HEAD_SECONDS)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait(REST_SECONDS if self.cycle.more_body else HEAD_SECONDS)

    def _wait(self, seconds):
        self.loop.call_later(seconds, self._close_after, self.cycle)

    def _close_after(self, last, before=None):
        """Closes the connection unless a request has begun, or an answer is being read.

        Args:
            last: The request after which another one should begin.
            before: int, number of unsent bytes of the answer at the last check.
        """
        left = self.transport.get_write_buffer_size()
        if self.cycle is not last:
            return
        if left and (before is None or left < before):
            self.loop.call_later(HEAD_SECONDS, self._close_after, last, left)
        elif left:
            self.transport.abort()
        else:
            self.transport.close()


def check_tls(certificate: str | None, key: str | None) -> None:
    """Raises `InputError` unless a certificate and its key can be used."""
    if certificate is None:
        if key is not None:
            raise InputError(f"The key {key} needs its certificate.")
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # `ssl.SSLError` is one
        files = f"{certificate} and {key}" if key else certificate
        reason = error.strerror
        if isinstance(error, ssl.SSLError):
            reason = "a certificate in PEM with its key is expected"
        raise InputError(f"{files} cannot be used for TLS: {reason}.") from None


def url_of(host: str, port: int, scheme: str = "http") -> str:
    """The address of a server. An IPv6 host has brackets."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; at `::`, those of IPv4 too.

    Raises:
        InputError: If the address is not free.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        reason = reason.partition(" (while ")[0]  # Python adds the address
        address = url_of(host, port).removeprefix("http://")
        raise InputError(f"{address} cannot be served: {reason}.") from None


def name_of(path: str) -> str:
    """The name of a served model: the name of its file or folder.

    `best.keras` and folders of versions, such as `1`, have the name of their parent.
    """
    file = pathlib.PurePath(path)
    if file.name == "best.keras" or file.name.isdecimal():
        file = file.parent if file.parent.name else file
    return file.stem if suffix_of(file) == ".keras" else file.name


def load_predictor(
    path: str,
    detector: str | None = None,
    confidence: float | None = None,
    engine: str | None = None,
    beam_sizes: Sequence[int] = (),
    second_opinion: bool = False,
) -> Any:
    """Loads and warms up a model.

    Args:
        path: Path of an exported model, or an argument of `keras_caption.models.load`.
        detector, confidence: As in `keras_caption.serving.Predictor`, if the model
            reads objects.
        engine: As in `keras_caption.export.engine_cache.engine_of`, or `None` for the
            engine of the file.
        beam_sizes: As in `keras_caption.serving.Predictor.warm_up`.
        second_opinion: As in `keras_caption.serving.Predictor`.

    Returns:
        `ExportedPredictor` or `Predictor`.

    Raises:
        InputError: If the model cannot be loaded, or there is no such detector.
    """
    if engine is not None:
        from keras_caption.export.engine_cache import engine_of

        path = str(engine_of(path, engine))
    if (pathlib.Path(path) / SAVED_MODEL).exists():
        from keras_caption.apps.serve.exported import ExportedPredictor

        exported = ExportedPredictor(path)
        exported.warm_up(beam_sizes)
        return exported
    keras_caption.register()  # imports Keras
    from keras_caption.apps.serve.detection import add_detector, reads_objects
    from keras_caption.apps.serve.predictor import Predictor

    predictor = Predictor(path)
    model = predictor.model
    if detector is not None and reads_objects(model):
        add_detector(model, detector, confidence, second_opinion=second_opinion)
    # What "auto" is now stays so: under "auto" the repetition of a shape makes XLA
    # compile, and that request would wait.
    model.jit_setting = model.jit_compile
    predictor.warm_up(beam_sizes)
    return predictor
