"""A stand-in for Hugging Face, on this machine: repositories of files, over HTTP."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading

COMMIT = "0" * 40
RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)")


class Handler(http.server.BaseHTTPRequestHandler):
    """Creates repositories, takes commits of small files, and returns files."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.tokens.add(self.headers.get("authorization"))
        if self.path == "/api/repos/create":
            name = json.loads(body)
            repository = "/".join(
                filter(None, (name.get("organization"), name["name"]))
            )
            self.server.repositories.setdefault(repository, {})
            self.answer({"url": f"http://{self.headers['host']}/{repository}"})
        elif "/preupload/" in self.path:
            files = json.loads(body)["files"]
            modes = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            self.answer({"files": [{"path": x["path"], **modes} for x in files]})
        elif "/commit/" in self.path:
            repository = "/".join(self.path.split("/")[3:5])
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    path = line["value"]["path"]
                    self.server.repositories[repository][path] = content
            url = f"http://{self.headers['host']}/{repository}/commit/{COMMIT}"
            self.answer({"commitUrl": url, "commitOid": COMMIT})
        else:  # the check of a card's metadata
            self.answer({"errors": [], "warnings": []})

    def do_GET(self):
        found = RESOLVE.fullmatch(self.path)
        files = self.server.repositories.get(found[1], {}) if found else {}
        if not found or found[2] not in files:
            headers = {"X-Error-Code": "EntryNotFound"}
            return self.answer({"error": "Entry not found"}, 404, headers)
        content = files[found[2]]
        tag = hashlib.sha256(content).hexdigest()
        return self.answer(
            content, headers={"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}
        )

    def do_HEAD(self):
        self.do_GET()

    def answer(self, content, status=200, headers=None):
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": len(content)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serving():
    """Serves while a block runs; yields the server and its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.repositories, server.tokens = {}, set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
