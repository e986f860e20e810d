"""Whether a commit could be made now."""

import asyncio
import logging
import time
from collections.abc import Mapping

from tailproof.live import Agent

__all__ = ["Health"]

_LOG = logging.getLogger("tailproof.live")
_LIMIT = 1.0
"""Seconds that a commit may take."""
_KEPT = 1.0
"""Seconds for which a result is used again."""


class Health:
    """Lets each agent make a small commit, at most once a second.

    Parameters
    ----------
    agents : mapping
        By the name of the experiment.
    """

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = agents
        self._running: asyncio.Future[str | None] | None = None
        self._problem: str | None = None
        self._until = 0.0

    async def ok(self) -> bool:
        """Return whether every journal takes a commit within a second; the log says why not."""
        if self._running is None and time.monotonic() >= self._until:
            self._running = asyncio.ensure_future(asyncio.to_thread(self._commit))
        if self._running is not None:
            running, before = self._running, self._problem
            done, _ = await asyncio.wait({running}, timeout=_LIMIT)
            if running is not self._running:  # another request has taken the result
                return self._problem is None
            self._problem = running.result() if done else f"no commit within {_LIMIT:g} s"
            if done:
                self._running, self._until = None, time.monotonic() + _KEPT
            if self._problem is not None and self._problem != before:
                _LOG.error("unhealthy: %s", self._problem)
        return self._problem is None

    def _commit(self) -> str | None:
        """Write to every journal, and return the errors."""
        for name, agent in self._agents.items():
            try:
                agent.beat()
            except Exception as error:
                return f"{name}: {type(error).__name__} {error}"
        return None
