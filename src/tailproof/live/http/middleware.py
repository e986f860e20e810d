"""What every request passes: the token, the limit on its body, the access log."""

import hmac
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailproof.live.http.schemas import problem

__all__ = ["MOST_BYTES", "Middleware", "check_token"]

_LOG = logging.getLogger("tailproof.live.requests")
MOST_BYTES = 1 << 22
_SHORTEST_TOKEN = 16


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
    try:
        loopback = address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ValueError(
            f"address {address!r} is not loopback: set TAILPROOF_TOKEN, or use 127.0.0.1"
        )
    return None


class Middleware:
    """Checks the token, limits the body and logs each request.

    Parameters
    ----------
    app : ASGI application
    token : str or None
        Expected in ``Authorization: Bearer …``, except for the paths in `open_paths`.
    open_paths : set of str
        Paths that reveal nothing about experiments.
    answered : callable
        Called with route, status and seconds of each response.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        open_paths: set[str],
        answered: Callable[[str, int, float], None],
    ) -> None:
        self._app, self._open, self._answered = app, open_paths, answered
        self._wanted = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            headers = dict(scope["headers"])
            if not self._knows(scope["path"], headers.get(b"authorization", b"")):
                refusal = problem("missing or wrong token: send Authorization: Bearer …")
                asks = {"WWW-Authenticate": "Bearer"}
                await JSONResponse(refusal, 401, asks)(scope, receive, sending)
            elif _length(headers) > MOST_BYTES:
                await JSONResponse(problem(_TOO_LARGE), 413)(scope, receive, sending)
            else:
                await self._app(scope, _bounded(receive), sending)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "other")
            self._answered(route, status, seconds)
            if _LOG.isEnabledFor(logging.INFO):
                client = scope.get("client")
                _LOG.info(
                    {
                        "method": scope["method"],
                        "path": scope["path"],
                        "status": status,
                        "ms": round(1000 * seconds, 2),
                        "client": client[0] if client else None,
                    }
                )

    def _knows(self, path: str, given: bytes) -> bool:
        if self._wanted is None or path in self._open:
            return True
        return hmac.compare_digest(given, self._wanted)


_TOO_LARGE = f"the body must be at most {MOST_BYTES} bytes"


def _length(headers: Mapping[bytes, bytes]) -> int:
    """Return the declared length, 0 for a chunked body, which is counted as it arrives."""
    said = headers.get(b"content-length", b"")
    return int(said) if said.isdigit() else 0


def _bounded(receive: Receive) -> Callable[[], Awaitable[Message]]:
    """Return `receive` with a limit on the length of the body."""
    total = 0

    async def receiving() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > MOST_BYTES:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return receiving
