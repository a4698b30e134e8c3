"""Protects a server of this machine from requests of other sites' pages."""

import ipaddress
import urllib.parse
from typing import Any

from starlette.responses import JSONResponse

LOCAL = "localhost"


class LocalHosts:
    """An ASGI application that answers pages and programs of this machine only.

    Browsers of this machine reach a server on its loopback interface, whatever page
    they show. A page of another site can send requests with that site as `Origin`. Or
    its owner resolves the name of the site to this machine's address (DNS rebinding),
    and requests have that name as `Host`. Both kinds of request are refused.

    Args:
        app: ASGI application.
        host: str, host at which it is served, which counts as local too.
    """

    def __init__(self, app: Any, host: str = LOCAL):
        self.app = app
        self.host = host.lower()

    async def __call__(self, scope: dict, receive: Any, send: Any) -> None:
        foreign = self.foreign(scope) if scope["type"] == "http" else None
        if foreign is None:
            await self.app(scope, receive, send)
            return
        error = (
            f"This server is for its machine only, not for {foreign:.100}. A proxy "
            f"should send the header Host: {LOCAL}."
        )
        refusal = JSONResponse({"error": error}, 403, {"connection": "close"})
        await refusal(scope, receive, send)

    def foreign(self, scope: dict) -> str | None:
        """The host or origin of a request if it is not this machine, else `None`."""
        for name, value in scope["headers"]:
            text = value.decode("latin-1")
            if name == b"host" and not self.is_local(f"//{text}"):
                return text
            if name == b"origin" and not self.is_local(text):
                return text
        return None

    def is_local(self, address: str) -> bool:
        """Whether an address names this machine."""
        try:
            host = urllib.parse.urlsplit(address).hostname
        except ValueError:
            return False
        return host in (LOCAL, self.host) or is_loopback(host)


def is_loopback(host: str | None) -> bool:
    """Whether a host is an address of the loopback interface."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
