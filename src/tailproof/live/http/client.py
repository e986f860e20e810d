"""HTTP clients for the service, with a timeout and a default arm."""

import asyncio
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlsplit

from tailproof.checks import number, require
from tailproof.extras import import_extra
from tailproof.live.agent import Ask, Fate, Tell, Ticket
from tailproof.live.offers import Features, Offer

__all__ = ["AsyncClient", "Client"]

_PAUSE = 0.01
"""Seconds before the first retry, doubled for each further one."""


class _Try(NamedTuple):
    """One attempt: wait `pause` seconds, then POST `body` to `path` with a timeout of `seconds`."""

    pause: float
    path: str
    body: Mapping[str, Any]
    seconds: float


_Steps = Generator[_Try, Any, Any]


class _Base(ABC):
    """Everything but waiting, which the two clients do differently."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = 0.2,
        default: str | None = None,
    ) -> None:
        httpx = import_extra("httpx", "serve", "the client")
        self.timeout = number("timeout", timeout, above=0)
        parts = urlsplit(url)
        ok = parts.scheme in ("http", "https") and bool(parts.hostname)
        require(ok, "url", "an http or https URL such as http://127.0.0.1:8000", url)
        if default is not None:
            Offer.of([default])
        self.url, self.default = url.rstrip("/"), default
        self._failures = (httpx.TransportError, httpx.InvalidURL)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http: Any = self._made(httpx, base_url=self.url, headers=headers, trust_env=False)

    @abstractmethod
    def _made(self, httpx: Any, **settings: Any) -> Any:
        """Return the HTTP client to send requests with."""

    def _asking(self, experiment: str, offer: Features | None, ticket: str | None) -> _Steps:
        name = uuid.uuid4().hex if ticket is None else ticket
        body: dict[str, Any] = {"ticket": name}
        if offer is not None:
            known = Ask(offer, name).offer
            assert isinstance(known, Offer)
            names, vectors = list(known.names), known.vectors
            body["offer"] = (
                names if vectors is None else dict(zip(names, vectors.tolist(), strict=True))
            )
        try:
            wanted = ("ticket", "arm", "propensity", "hold")
            answer = yield from self._tries(experiment, "ask", body, wanted)
        except ConnectionError:
            if self.default is None:
                raise
            return Ticket(f"default:{name}"[:200], self.default, None, -1, default=True)
        return Ticket(*answer)

    def _telling(self, experiment: str, ticket: str, reward: float) -> _Steps:
        told = Tell(ticket, reward)
        value: float | str = told.reward
        if told.reward in (float("inf"), -float("inf")):
            value = "Infinity" if told.reward > 0 else "-Infinity"
        body = {"ticket": ticket, "reward": value}
        (fate,) = yield from self._tries(experiment, "tell", body, ("fate",))
        return fate

    def _tries(
        self, experiment: str, act: str, body: Mapping[str, Any], wanted: Sequence[str]
    ) -> _Steps:
        """Retry until there is an answer or no time; each attempt gets half of the time left."""
        path = f"/experiments/{quote(experiment, safe='')}/{act}"
        end, pause, reason = time.monotonic() + self.timeout, 0.0, "timed out"
        while (left := end - time.monotonic() - pause) > 0:
            answer = yield _Try(pause, path, body, left / 2)
            if isinstance(answer, Exception):
                reason = type(answer).__name__
            elif answer.status_code >= 500:
                reason = f"status {answer.status_code}"
            else:
                return _understood(answer, wanted)
            pause = max(_PAUSE, 2 * pause)
        raise ConnectionError(f"no answer from {self.url} within {self.timeout:g} s ({reason})")


def _understood(answer: Any, wanted: Sequence[str]) -> list[Any]:
    """Return some fields of an answer; raises ``ValueError`` with its `error` if it is refused."""
    try:
        found = answer.json()
    except ValueError:
        found = None
    said = found if isinstance(found, dict) else {}
    if answer.status_code == 200 and all(key in said for key in wanted):
        return [said[key] for key in wanted]
    other = f"unexpected answer, status {answer.status_code}: is this a tailproof service?"
    raise ValueError(said.get("error", other))


class Client(_Base):
    """Ask and tell over HTTP; see `Agent` for what they do.

    Every ask carries a ticket id, so a retry after a lost answer gets the same arm. If the service
    does not answer in time, `ask` returns the default arm in a ticket with ``default=True`` and an
    id unknown to the service. Always tell `Ticket.id`, not an id of your own, so that the reward of
    a default is not credited to another arm. A request that the service refuses raises
    ``ValueError`` with the service's error message.

    Threads may share a client.

    Parameters
    ----------
    url : str
        The service, such as ``http://127.0.0.1:8000``.
    token : str, optional
    timeout : float
        Seconds after which no new attempt is made; each attempt may take half of the time left to
        connect, and again for each read.
    default : str, optional
        The arm to return if there is no answer; without it, `ask` raises ``ConnectionError``.
        `tell` always does, and may be repeated at any time.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:9", default="red", timeout=0.05)
    >>> ticket = client.ask("shop", ["red", "blue"])
    >>> ticket.arm, ticket.default
    ('red', True)
    >>> client.close()

    Source: our own. Differences: none.
    """

    def _made(self, httpx: Any, **settings: Any) -> Any:
        return httpx.Client(**settings)

    def ask(
        self, experiment: str, offer: Features | None = None, ticket: str | None = None
    ) -> Ticket:
        """Return a ticket with an arm of the offer, or of the experiment's own arms."""
        found: Ticket = self._run(self._asking(experiment, offer, ticket))
        return found

    def tell(self, experiment: str, ticket: str, reward: float) -> Fate:
        """Tell the reward of a ticket, and return what happened to it."""
        found: Fate = self._run(self._telling(experiment, ticket, reward))
        return found

    def _run(self, steps: _Steps) -> Any:
        try:
            wanted = next(steps)
            while True:
                time.sleep(wanted.pause)
                try:
                    answer = self._http.post(wanted.path, json=wanted.body, timeout=wanted.seconds)
                except self._failures as error:
                    answer = error
                wanted = steps.send(answer)
        except StopIteration as done:
            return done.value

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

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

    Source: our own. Differences: none.
    """

    def _made(self, httpx: Any, **settings: Any) -> Any:
        return httpx.AsyncClient(**settings)

    async def ask(
        self, experiment: str, offer: Features | None = None, ticket: str | None = None
    ) -> Ticket:
        """Return a ticket with an arm of the offer, or of the experiment's own arms."""
        found: Ticket = await self._run(self._asking(experiment, offer, ticket))
        return found

    async def tell(self, experiment: str, ticket: str, reward: float) -> Fate:
        """Tell the reward of a ticket, and return what happened to it."""
        found: Fate = await self._run(self._telling(experiment, ticket, reward))
        return found

    async def _run(self, steps: _Steps) -> Any:
        try:
            wanted = next(steps)
            while True:
                await asyncio.sleep(wanted.pause)
                try:
                    answer = await self._http.post(
                        wanted.path, json=wanted.body, timeout=wanted.seconds
                    )
                except self._failures as error:
                    answer = error
                wanted = steps.send(answer)
        except StopIteration as done:
            return done.value

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
