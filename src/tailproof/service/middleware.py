"""What every request passes: host, origin, token, limit of its body, safe headers, a log line."""

import hmac
import ipaddress
import logging
import reprlib
import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailproof.service.schemas import problem

__all__ = ["MOST_BYTES", "Middleware", "check_token"]

_LOG = logging.getLogger("tailproof.live.requests")
MOST_BYTES = 1 << 22
"""Of a body: an offer of 1000 arms with 100 features each takes half of it."""
_SHORTEST_TOKEN = 16
"""Characters of a token, so that nobody guesses it."""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Sent with every answer: nothing from other hosts, nothing inline, no framing, no guessing."""
_TOO_LARGE = f"the body must be at most {MOST_BYTES} bytes"


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_token(address: str, token: str | None) -> str | None:
    """Return the token, if any; without one the service may listen on loopback only.

    >>> check_token("127.0.0.1", None)
    >>> check_token("0.0.0.0", None)
    Traceback (most recent call last):
    ValueError: address '0.0.0.0' is not loopback: set TAILPROOF_TOKEN, or use 127.0.0.1
    """
    if token:
        ok = len(token) >= _SHORTEST_TOKEN and token.isascii() and token.isprintable()
        if not ok or " " in token:
            raise ValueError(
                f"TAILPROOF_TOKEN must be at least {_SHORTEST_TOKEN} ASCII characters without "
                f"spaces; yours has {len(token)}"
            )
        return token
    if not _loopback(address):
        raise ValueError(
            f"address {address!r} is not loopback: set TAILPROOF_TOKEN, or use 127.0.0.1"
        )
    return None


class Middleware:
    """Refuses requests that are not for this service, limits bodies and logs each request.

    A page of another site that a browser on this machine shows can send requests here, and by a
    name of its own that leads here (DNS rebinding) read the answers. So without a token `Host` must
    be a name of this machine or one of `hosts`; an `Origin` must be that host; and a body must be
    sent as JSON, which such a page cannot do unasked.

    Parameters
    ----------
    app : ASGI application
    token : str or None
        Expected in ``Authorization: Bearer …``, except for the paths in `open_paths`.
    hosts : collection of str
        Names that requests may be for. With a token and no names, all may.
    open_paths : set of str
        Paths that reveal nothing about experiments.
    answered : callable
        Called with route, status and seconds of each response.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        hosts: Collection[str],
        open_paths: set[str],
        answered: Callable[[str, int, float], None],
    ) -> None:
        self._app, self._open, self._answered = app, open_paths, answered
        self._token = None if token is None else token.encode()
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, method = time.perf_counter(), scope["method"]
        status, received, more, cut = 500, 0, True, False

        async def receiving() -> Message:
            nonlocal received, more, cut
            message = await receive()
            if message["type"] == "http.disconnect":
                cut = more
            more = bool(message.get("more_body"))
            received += len(message.get("body", b""))
            if received > MOST_BYTES:
                raise HTTPException(413, _TOO_LARGE)
            return message

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)  # files have an ETag, and are asked for again
                headers["Cache-Control"] = "no-cache" if "etag" in headers else "no-store"
            await send(message)

        if method == "HEAD":  # the server leaves out the body
            scope = {**scope, "method": "GET"}
        try:
            handler = self._refusal(scope) or self._app
            await handler(scope, receiving, sending)
        finally:
            seconds = time.perf_counter() - start
            self._answered(getattr(scope.get("route"), "path", "other"), status, seconds)
            if _LOG.isEnabledFor(logging.INFO) and not cut:  # such are logged together
                client = scope.get("client")
                _LOG.info(
                    {
                        "method": method,
                        "path": scope["path"],
                        "status": status,
                        "ms": round(1000 * seconds, 2),
                        "client": client[0] if client else None,
                    }
                )

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        """Return the answer to a request that is not let through."""
        headers = {key: value.decode("latin-1") for key, value in scope["headers"]}
        named, origin = headers.get(b"host", "").lower(), headers.get(b"origin")
        host, length = _name(f"//{named}"), headers.get(b"content-length", "")
        if not self._is_ours(host):
            return _refused(403, f"unknown host {host!r}: add it to service.hosts in the file")
        ours = {None, f"http://{named}", f"https://{named}"}
        if origin not in ours and _name(origin or "") not in self._hosts:
            site = reprlib.repr(origin)
            return _refused(
                403, f"pages of {site} may not ask here: add its host to service.hosts in the file"
            )
        if not self._knows(scope["path"], headers.get(b"authorization", "")):
            answer = _refused(401, "missing or wrong token: send Authorization: Bearer …")
            answer.headers["WWW-Authenticate"] = "Bearer"
            return answer
        kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":
            return _refused(415, "the body must be JSON, with Content-Type: application/json")
        if length.isdecimal() and int(length[:20]) > MOST_BYTES:  # others are counted later
            return _refused(413, _TOO_LARGE)
        return None

    def _is_ours(self, host: str) -> bool:
        """Return whether a request for this host may be answered."""
        if host in self._hosts:
            return True
        return not self._hosts if self._token is not None else _loopback(host)

    def _knows(self, path: str, given: str) -> bool:
        """Return whether a request has the token, or needs none."""
        if self._token is None or path in self._open:
            return True
        scheme, _, token = given.partition(" ")
        same = hmac.compare_digest(token.strip().encode("latin-1"), self._token)
        return same and scheme.lower() == "bearer"


def _name(url: str) -> str:
    """Return the host that a URL names, without its port; "" if it is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _refused(status: int, why: str) -> JSONResponse:
    return JSONResponse(problem(why), status)
