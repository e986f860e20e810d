"""HTTP clients for the service, with a deadline and a default arm."""

import asyncio
import json
import logging
import os
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Self
from urllib.parse import quote, urlsplit

from tailproof.checks import number, require
from tailproof.extras import import_extra
from tailproof.formatting import json_number
from tailproof.live import Ask, Status, Tell, Ticket
from tailproof.live.acts import LONGEST_ID
from tailproof.live.offer import Features, Offer

__all__ = ["AsyncClient", "Client"]

_LOG = logging.getLogger("tailproof.live.client")
_PAUSE = 0.01
"""Seconds before the first retry, about as long as a commit takes; doubled for each further one."""
_FAILURES = 5
"""After so many failed calls in a row it is no accident: only one call now and then is made."""
_LONGEST_HOLD = 30.0
"""The most seconds between two such calls; the first comes after a second, the next after two."""
_AGAIN = {408, 429, 500, 502, 503, 504}
"""Statuses after which a request is sent again."""
_LARGEST = 1 << 20
"""Bytes that an answer may have; a service sends less than a thousand."""
_MARGIN = 0.005
"""Seconds that the thread of the sync clients gets to report that the time is up."""
_REPEAT = 60.0
"""Seconds after which the same failure is logged again, so that a log stays readable."""
_MOST_ORPHANS, _CANCELLED_AT_ONCE = 1000, 100
"""Asks that were given up, to be cancelled; a service takes 100 with one call."""
_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "ask": {"arm": str, "propensity": float | int | None},
    "tell": {"status": str},
}
"""What an answer must have."""

_Outcome = dict[str, Any] | ConnectionError | ValueError
"""An answer; or the error to raise where there is no default: nobody answered, or a refusal."""


class _Base:
    """What both clients share: requests, retries and answers, without the waiting."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = 0.2,
        default: str | None = None,
    ) -> None:
        self._httpx = import_extra("httpx", "serve", "the client")
        self.timeout = number("timeout", timeout, above=0)
        parts = urlsplit(url)
        ok = parts.scheme in ("http", "https") and bool(parts.hostname)
        if parts.password is not None:
            raise ValueError("url must have no password: pass token=")
        require(ok, "url", "an http or https URL such as http://127.0.0.1:8000", url)
        if default is not None:
            Offer.of([default])
        self.url, self.default = url.rstrip("/"), default
        self._headers = {"Accept-Encoding": "identity"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connect()
        self._clock, self._failures, self._next = time.monotonic, 0, 0.0
        self._orphans: dict[str, dict[str, None]] = defaultdict(dict)
        self._logged: tuple[str, float] = ("", 0.0)

    def _connect(self) -> None:
        """Make the HTTP client; its own timeouts are off, as there is one for the whole call."""
        self._http: Any = self._httpx.AsyncClient(
            base_url=self.url, headers=self._headers, timeout=None, trust_env=False
        )

    def _asked(
        self, offer: Features | None, ticket: str | None, unit: str | None
    ) -> dict[str, Any]:
        """Return the body of an ask; invalid arguments raise ``ValueError``."""
        name = uuid.uuid4().hex if ticket is None else ticket
        known = Ask(["any"] if offer is None else offer, name, unit).offer
        body = {"ticket": name} | ({} if unit is None else {"unit": unit})
        if offer is None:
            return body
        assert isinstance(known, Offer)
        if known.vectors is None:
            return body | {"offer": list(known.names)}
        return body | {"offer": dict(zip(known.names, known.vectors.tolist(), strict=True))}

    def _told(self, ticket: str, reward: float, event: str | None) -> dict[str, Any]:
        """Return the body of a tell; invalid arguments raise ``ValueError``."""
        body = {"ticket": ticket, "reward": json_number(Tell(ticket, reward, event).reward)}
        return body if event is None else body | {"event": event}

    def _ticket(self, name: str, answer: _Outcome) -> Ticket:
        if isinstance(answer, dict):
            return Ticket(name, *(answer[key] for key in _FIELDS["ask"]))
        if self.default is None:
            raise answer
        return Ticket(f"default:{name}"[:LONGEST_ID], self.default, None, default=True)

    def _status(self, answer: _Outcome) -> Status | Literal["failed"]:
        if isinstance(answer, dict):
            status: Status = answer["status"]
            return status
        if self.default is None:
            raise answer
        return "failed"

    async def _call(self, experiment: str, act: str, body: dict[str, Any]) -> _Outcome:
        """Ask or tell; the ids of asks that were given up before go with it, to be cancelled."""
        if left := self._held_back():
            text = f"{self.url} keeps failing ({self._logged[0]})"
            return ConnectionError(f"{text}; the next try is in {left:.1f} s")
        orphans, name = self._orphans[experiment], body["ticket"]
        orphans.pop(name, None)
        cancelled = list(orphans)[:_CANCELLED_AT_ONCE]
        more = {"cancel": cancelled} if cancelled else {}
        try:
            answer = await self._answer(experiment, act, body | more)
        except asyncio.CancelledError:
            self._give_up(experiment, act, name)
            raise
        if isinstance(answer, ConnectionError):
            self._fail(answer, experiment, act, name)
            return answer
        for orphan in cancelled:
            orphans.pop(orphan, None)
        if self._failures >= _FAILURES:
            _LOG.warning("%s answers again", self.url)
        self._failures = 0
        if isinstance(answer, ValueError):
            self._log(f"{self.url} refused: {answer}")
        return answer

    def _held_back(self) -> float:
        """Return the seconds until a call may be made; a call that may is the only one for now.

        Source: M. Nygard, "Release It!" (2007), chapter 5, the circuit breaker. Differences: the
        pause doubles.
        """
        if self._failures < _FAILURES:
            return 0.0
        left = max(0.0, self._next - self._clock())
        if not left:
            self._hold()
        return left

    def _hold(self) -> None:
        """Set the time of the next call: a second after 5 failures, then twice as long each."""
        more = min(self._failures - _FAILURES, 5)
        self._next = self._clock() + min(2.0**more, _LONGEST_HOLD)

    def _give_up(self, experiment: str, act: str, name: str) -> None:
        """Remember an ask whose answer nobody waits for."""
        orphans = self._orphans[experiment]
        if act == "ask":
            orphans[name] = None
        if len(orphans) > _MOST_ORPHANS:
            orphans.pop(next(iter(orphans)), None)

    def _fail(self, error: ConnectionError, experiment: str, act: str, name: str) -> None:
        """Count and log a call that got no answer."""
        self._give_up(experiment, act, name)
        self._failures += 1
        self._hold()
        self._log(str(error))
        if self._failures == _FAILURES:
            _LOG.warning("%s keeps failing; one call now and then tries it", self.url)

    def _log(self, reason: str) -> None:
        """Log a failure, the same one once a minute."""
        now, (last, at) = time.monotonic(), self._logged
        if reason != last or now - at > _REPEAT:
            self._logged = reason, now
            _LOG.warning("%s", reason)

    async def _answer(self, experiment: str, act: str, body: Mapping[str, Any]) -> _Outcome:
        """Send a request until there is an answer or the time is up."""
        path = f"/experiments/{quote(experiment, safe='')}/{act}"
        reason, pause = "timed out", _PAUSE
        try:
            async with asyncio.timeout(self.timeout):
                while True:
                    try:
                        status, text = await self._post(path, body)
                    except Exception as error:  # any failure of the network or of the other side
                        reason = f"{type(error).__name__} {error}".strip()
                    else:
                        if status not in _AGAIN:
                            return _understood(status, text, act, body["ticket"])
                        reason = f"status {status}"
                    await asyncio.sleep(pause)
                    pause *= 2
        except TimeoutError:
            return self._no_answer(reason)

    def _no_answer(self, reason: str) -> ConnectionError:
        return ConnectionError(f"no answer from {self.url} within {self.timeout:g} s ({reason})")

    async def _post(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        text = b""
        async with self._http.stream("POST", path, json=body) as answer:
            if "Content-Encoding" in answer.headers:
                raise ValueError("the answer is compressed")  # to unpack it could take any time
            async for piece in answer.aiter_raw():
                text += piece
                if len(text) > _LARGEST:
                    raise ValueError("the answer is too long")
        return answer.status_code, text


def _understood(status: int, text: bytes, act: str, ticket: str) -> _Outcome:
    """Return an answer, or the refusal in it."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    answer = answer if isinstance(answer, dict) else {}
    fits = all(isinstance(answer.get(key, ...), kind) for key, kind in _FIELDS[act].items())
    if status == 200 and fits and answer.get("ticket") == ticket:
        return answer
    error = answer.get("error")
    if isinstance(error, str):
        return ValueError(error)
    return ConnectionError(f"unexpected answer, status {status}: is this a tailproof service?")


@cache
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    """Return the event loop of a process's sync clients, which runs in a thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="tailproof-client", daemon=True).start()
    return loop


class Client(_Base):
    """Ask and tell over HTTP, as with an `Agent`.

    With a `default`, no call raises for an error on the way or in the service, and none
    takes longer than `timeout`: `ask` returns the default arm in a ticket with ``default=True`` and
    an id unknown to the service, `tell` returns ``"failed"`` and may be repeated at any time. The
    reason is logged. Always tell `Ticket.id`, not an id of your own, so that the reward of a
    default is not credited to another arm.

    Every ask carries a ticket id, so a retry after a lost answer gets the same arm. If calls keep
    failing, a circuit breaker lets only one call now and then through; the others fail at once. The
    service is told of asks that were given up, with the next call that reaches it.

    Threads may share a client. Requests are sent by a thread of its own, so that nothing, not even
    a slow name server, holds a call up beyond its time.

    Parameters
    ----------
    url : str
        The service, such as ``http://127.0.0.1:8000``.
    token : str, optional
    timeout : float
        Seconds for a whole call, with all retries.
    default : str, optional
        The arm to return if there is no answer. Without it, calls raise ``ConnectionError`` if
        there is no answer, ``ValueError`` with the service's message if it refused.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:9", default="red", timeout=0.05)
    >>> ticket = client.ask("shop", ["red", "blue"])
    >>> ticket.arm, ticket.default
    ('red', True)
    >>> client.tell("shop", "visit 17", 12.5)
    'failed'
    >>> client.close()
    """

    def _connect(self) -> None:
        super()._connect()
        self._process = os.getpid()
        self._runs = _loop(self._process)

    def ask(
        self,
        experiment: str,
        offer: Features | None = None,
        ticket: str | None = None,
        unit: str | None = None,
    ) -> Ticket:
        """Return a ticket with an arm of the offer, or of the experiment's own arms."""
        body = self._asked(offer, ticket, unit)
        return self._ticket(body["ticket"], self._wait(experiment, "ask", body))

    def tell(
        self, experiment: str, ticket: str, reward: float, event: str | None = None
    ) -> Status | Literal["failed"]:
        """Tell a reward of a ticket, and return what happened to it."""
        body = self._told(ticket, reward, event)
        return self._status(self._wait(experiment, "tell", body))

    def _wait(self, experiment: str, act: str, body: dict[str, Any]) -> _Outcome:
        if self._process != os.getpid():  # the thread and its connections stay with the parent
            self._connect()
        call = self._call(experiment, act, body)
        waiting = asyncio.run_coroutine_threadsafe(call, self._runs)
        try:
            return waiting.result(self.timeout + _MARGIN)
        except TimeoutError:  # the thread is late
            if not waiting.cancel():
                return waiting.result()
            error = self._no_answer("timed out")
            self._runs.call_soon_threadsafe(self._fail, error, experiment, act, body["ticket"])
            return error

    def close(self) -> None:
        """Close the connections."""
        asyncio.run_coroutine_threadsafe(self._http.aclose(), self._runs).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Base):
    """`Client` for programs with an event loop: ``await client.ask(…)``.

    Examples
    --------
    >>> import asyncio
    >>> async def main():
    ...     async with AsyncClient("http://127.0.0.1:9", default="red", timeout=0.05) as client:
    ...         return await client.ask("shop", ["red", "blue"])
    >>> asyncio.run(main()).default
    True
    """

    async def ask(
        self,
        experiment: str,
        offer: Features | None = None,
        ticket: str | None = None,
        unit: str | None = None,
    ) -> Ticket:
        """Return a ticket with an arm of the offer, or of the experiment's own arms."""
        body = self._asked(offer, ticket, unit)
        return self._ticket(body["ticket"], await self._call(experiment, "ask", body))

    async def tell(
        self, experiment: str, ticket: str, reward: float, event: str | None = None
    ) -> Status | Literal["failed"]:
        """Tell a reward of a ticket, and return what happened to it."""
        body = self._told(ticket, reward, event)
        return self._status(await self._call(experiment, "tell", body))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
