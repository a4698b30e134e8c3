"""Files that browsers send to the page: where they are, how large, and for how long."""

import atexit
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any

import gradio as gr

FOLDER = "GRADIO_TEMP_DIR"  # a variable that Gradio reads
MAX_BYTES = 100 * 2**20  # of a request: a photo, or a clip of a minute
MAX_KEPT = 10 * MAX_BYTES  # of all uploads together
KEPT_SECONDS = 3600
NOT_SENT = "There is no such upload: send the file again."


def upload_folder() -> pathlib.Path:
    """The folder of uploads, which only this process reads, and removes at its end.

    By default, Gradio shares one with all of the machine's pages, of other users too.
    """
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="keras_caption_page_")
        atexit.register(shutil.rmtree, os.environ[FOLDER], ignore_errors=True)
    return pathlib.Path(os.environ[FOLDER])


def uploaded(payload: Any) -> str | None:
    """The path of an upload, from what a browser says that it is.

    Args:
        payload: Of Gradio, with a `path`; or `None` for no file.

    Raises:
        gradio.Error: If the path is not that of an upload, whether there is a file or
            not.
    """
    if payload is None:
        return None
    path = pathlib.Path(os.path.realpath(str(payload.path)))
    folder = pathlib.Path(os.path.realpath(upload_folder()))
    if folder not in path.parents or not path.is_file():
        raise gr.Error(NOT_SENT, print_exception=False)
    return str(path)


class BoundedUploads:
    """An application of ASGI that takes no long request, and no more than it keeps.

    Args:
        app: Application of ASGI.
    """

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: dict, receive: Any, send: Any) -> None:
        problem = self.problem(scope) if scope["type"] == "http" else None
        if problem is None:
            await self.app(scope, receive, send)
            return
        status, text = problem
        body = json.dumps({"error": text, "detail": text}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        begin = {"type": "http.response.start", "status": status, "headers": headers}
        await send(begin)
        await send({"type": "http.response.body", "body": body})

    def problem(self, scope: dict) -> tuple[int, str] | None:
        """Why a request is refused: a status of HTTP and a sentence."""
        headers = dict(scope["headers"])
        size = headers.get(b"content-length", b"0")
        if b"transfer-encoding" in headers or not size.isdigit():
            return 411, "A request should say how many bytes it has."
        if int(size) > MAX_BYTES:
            return 413, f"A file has at most {MAX_BYTES:,} bytes."
        if scope["path"].rstrip("/").endswith("/upload") and int(size) > free_bytes():
            return 507, "There is no place for more uploads now: try again in a while."
        return None


def free_bytes() -> int:
    """How many more bytes of uploads are kept."""
    total = 0
    for path in upload_folder().rglob("*"):
        try:
            total += path.lstat().st_size
        except OSError:  # removed meanwhile
            continue
    return MAX_KEPT - total
