"""What every request passes: who it is from, how much it sends, how long it takes."""

import hmac
import ipaddress
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Annotated, Any

from fastapi import HTTPException, Path
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailproof.checks import require
from tailproof.live.experiments import Experiment
from tailproof.live.messages import problem

__all__ = ["LOGGING", "MOST_BYTES", "Gate", "Name", "check_token", "named"]

_LOG = logging.getLogger("tailproof.live.requests")
MOST_BYTES = 1 << 22
_SHORTEST_TOKEN = 16


Name = Annotated[str, Path(description="the name of an experiment", examples=["shop"])]


def named(experiments: Mapping[str, Experiment], name: str) -> Experiment:
    """Return an experiment by its name; of one that is not there the answer is 404."""
    if name not in experiments:
        rule = f"one of {', '.join(experiments)}"
        raise HTTPException(404, f"experiment must be {rule}, got {name!r}")
    return experiments[name]


def check_token(address: str, token: str | None) -> str | None:
    """Return the token, if any; without one a service answers its own machine only.

    >>> check_token("127.0.0.1", None)
    >>> check_token("0.0.0.0", None)
    Traceback (most recent call last):
    ValueError: address must be loopback, such as 127.0.0.1, unless TAILPROOF_TOKEN is set, got
    '0.0.0.0'
    """
    if token:
        ok = len(token) >= _SHORTEST_TOKEN and token.isascii() and token.isprintable()
        rule = f"{_SHORTEST_TOKEN} or more signs of ASCII without spaces"
        require(ok and " " not in token, "TAILPROOF_TOKEN", rule, f"{len(token)} signs")
        return token
    try:
        loopback = address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        loopback = False
    rule = "loopback, such as 127.0.0.1, unless TAILPROOF_TOKEN is set"
    require(loopback, "address", rule, address)
    return None


class Gate:
    """Middleware that asks for a token, bounds the body, and writes a line for each request.

    Parameters
    ----------
    app : ASGI application
    token : str or None
        What ``Authorization: Bearer …`` must say, except for the paths in `open_paths`.
    open_paths : set of str
        Paths that tell nothing of experiments.
    answered : callable
        Is told route, status and seconds of each answer.
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
        """Pass a request on, or refuse it."""
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
                refusal = problem("the token must be that of the service: Authorization: Bearer …")
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


def _length(headers: MutableMapping[bytes, bytes]) -> int:
    """Return how long the body says it is; a chunked one does not, and is counted as it comes."""
    said = headers.get(b"content-length", b"")
    return int(said) if said.isdigit() else 0


def _bounded(receive: Receive) -> Callable[[], Awaitable[Message]]:
    """Return `receive` for bodies of bounded length."""
    total = 0

    async def receiving() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > MOST_BYTES:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return receiving


class JsonLines(logging.Formatter):
    """One line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {"time": f"{at}.{int(record.msecs):03}Z", "level": record.levelname}
        line |= record.msg if isinstance(record.msg, dict) else {"message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": "tailproof.live.gate.JsonLines"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "lines",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {
        name: {"handlers": ["stderr"], "level": "INFO", "propagate": False}
        for name in ("uvicorn", "tailproof")
    },
}
"""Structured logs on the standard error, for `logging.config.dictConfig`."""
