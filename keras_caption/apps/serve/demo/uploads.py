"""Requests and uploads of browsers: which are accepted, and how long files are kept."""

import atexit
import functools
import os
import pathlib
import re
import shutil
import tempfile
from typing import Any

import gradio as gr
from starlette.responses import JSONResponse

FOLDER = "GRADIO_TEMP_DIR"  # a variable that Gradio reads
MAX_BYTES = 100 * 2**20  # of an upload: a photo, or a clip of a minute
MAX_ASKED = 2**20  # bytes of any other request
MAX_KEPT = 10 * MAX_BYTES  # bytes of all uploads together
KEPT_SECONDS = 3600
NOT_SENT = "There is no such upload: send the file again."
UPLOAD = "/gradio_api/upload"
# Paths that the page requests. Other routes of Gradio fetch addresses or run programs.
ASKED = re.compile(
    r"/|/(config|favicon\.ico|manifest\.json|robots\.txt|theme\.css)|"
    r"/(assets|pwa_icon|static|svelte)(/[^:]*)?|"
    r"/gradio_api/(app_id|cancel|heartbeat/\w+|info|queue/(data|join|status)|reset|"
    r"startup-events|upload|upload_progress|file=(?!https?:).*)",
    re.DOTALL,
)


@functools.cache
def upload_folder() -> pathlib.Path:
    """The folder of uploads. Only this process reads it, and removes it at its end.

    By default Gradio has one folder for all pages of the machine, of all users. A
    folder that the environment names may hold other files: the folder is made in it.
    """
    outer = os.environ.get(FOLDER) or tempfile.gettempdir()
    os.makedirs(outer, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="keras_caption_page_", dir=outer)
    os.environ[FOLDER] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)


def uploaded(payload: Any) -> str | None:
    """The path of an upload, from the payload of a browser's request.

    Args:
        payload: Gradio's payload with a `path`; or `None` for no file.

    Raises:
        gradio.Error: If the path is no upload. The error does not reveal whether such a
            file exists.
    """
    if payload is None:
        return None
    return path_of(str(payload.path))


async def uploaded_path(path: Any) -> str | None:
    """`uploaded` in place of Gradio's function, which downloads addresses."""
    return None if path is None else path_of(str(path))


def path_of(text: str) -> str:
    """Checks that a path is that of an upload.

    Raises:
        gradio.Error: As in `uploaded`.
    """
    path = pathlib.Path(os.path.realpath(text))
    folder = pathlib.Path(os.path.realpath(upload_folder()))
    if folder not in path.parents or not path.is_file():
        raise gr.Error(NOT_SENT, print_exception=False)
    return str(path)


class BoundedRequests:
    """An ASGI application that bounds the paths, lengths and uploads of requests.

    Args:
        app: ASGI application.
    """

    def __init__(self, app: Any):
        self.app = app
        self._coming = 0  # bytes of uploads in progress

    async def __call__(self, scope: dict, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, size = scope["path"].rstrip("/") or "/", size_of(scope)
        problem = self.problem(path, size)
        if problem is None:
            coming = (size or 0) if path == UPLOAD else 0
            self._coming += coming
            try:
                await self.app(scope, receive, send)
            finally:
                self._coming -= coming
            return
        status, text = problem
        body = {"error": text, "detail": text}
        refusal = JSONResponse(body, status, {"connection": "close"})
        await refusal(scope, receive, send)

    def problem(self, path: str, size: int | None) -> tuple[int, str] | None:
        """The reason to refuse a request, an HTTP status and a sentence, or `None`.

        Args:
            path: str, requested path.
            size: int, bytes of the request, or `None` if its header does not say.
        """
        if not ASKED.fullmatch(path):
            return 404, "The page has nothing there."
        if size is None:
            return 411, "A request should have a Content-Length."
        most = MAX_BYTES if path == UPLOAD else MAX_ASKED
        if size > most:
            return 413, f"A request may have at most {most:,} bytes."
        if path == UPLOAD and size > free_bytes() - self._coming:
            return 507, "There is no space for more uploads now: try again in a while."
        return None


def size_of(scope: dict) -> int | None:
    """The number of bytes that a request declares, or `None`."""
    headers = dict(scope["headers"])
    size = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not re.fullmatch(b"[0-9]{1,18}", size):
        return None
    return int(size)


def free_bytes() -> int:
    """The number of further bytes of uploads that can be kept."""
    total = 0
    for path in upload_folder().rglob("*"):
        try:
            total += path.lstat().st_size
        except OSError:  # removed meanwhile
            continue
    return MAX_KEPT - total
