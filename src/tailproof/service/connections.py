"""Limits on connections: how many, how long a request may take to arrive, an answer to be read."""

import asyncio
import logging
import time
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["LimitedConnection"]

_LOG = logging.getLogger("tailproof.live")
_MOST = 500
"""Connections of a worker; with connections being accepted they stay below 1024 open files."""
_SECONDS_TO_SEND, _SECONDS_TO_READ = 10.0, 30.0
"""For a request of a few hundred bytes, and for a piece of a log that a reader may be slow for."""
_SECONDS_A_LINE = 10.0
"""Seconds between two lines in the log, which an attacker would fill otherwise."""
_SLOW, _STALLED = "its request took too long", "its reader stalled"

_closed = [0, 0.0]
"""Connections closed since the last line in the log, and when the next line may come."""


def _log(why: str) -> None:
    """Count a closed connection, and log them together."""
    _closed[0] += 1
    if time.monotonic() >= _closed[1]:
        _LOG.warning("connections closed: %d; the last one as %s", _closed[0], why)
        _closed[:] = 0, time.monotonic() + _SECONDS_A_LINE


class LimitedConnection(H11Protocol):
    """A connection that is closed if its other side stalls.

    A request, head and body, must arrive within 10 s of its first byte, or of the connection. An
    answer must be read: 30 s without room in the buffer end it. Beyond 500 connections, the one
    that has waited longest for a request is closed, so that half-sent requests keep nobody out.
    The limits of uvicorn do neither: it waits for a first request and for the rest of one without
    end, and refuses everybody while that many connections are open.
    """

    def connection_made(self, transport: Any) -> None:
        """Wait for a request; close a connection if there are too many."""
        super().connection_made(transport)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._idle_since = time.monotonic()
        self._start(_SLOW, _SECONDS_TO_SEND)
        if len(self.connections) > _MOST:
            every = cast("set[LimitedConnection]", self.connections)
            idle = [
                connection for connection in every if connection._is_idle()
            ]  # this one at least
            min(idle, key=lambda connection: connection._idle_since)._drop("there were too many")

    def _is_idle(self) -> bool:
        """Return whether no complete request is being answered."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a request."""
        super().data_received(data)
        if self._is_idle():
            self._start(_SLOW, _SECONDS_TO_SEND)
        else:
            self._stop(_SLOW)

    def on_response_complete(self) -> None:
        """Wait for the next request; the base class limits the time until its first byte."""
        self._idle_since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait until some of the answer is read."""
        super().pause_writing()
        self._start(_STALLED, _SECONDS_TO_READ)

    def resume_writing(self) -> None:
        """Stop waiting."""
        super().resume_writing()
        self._stop(_STALLED)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        for why in list(self._timers):
            self._stop(why)

    def _start(self, why: str, seconds: float) -> None:
        """Start a timer that closes the connection, unless it runs already."""
        if why not in self._timers:
            self._timers[why] = self.loop.call_later(seconds, self._drop, why)

    def _stop(self, why: str) -> None:
        timer = self._timers.pop(why, None)
        if timer is not None:
            timer.cancel()

    def _drop(self, why: str) -> None:
        _log(why)
        self.connections.discard(self)
        self.transport.abort()
