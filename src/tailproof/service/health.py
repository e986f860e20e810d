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
        self._task: asyncio.Task[str | None] | None = None
        self._problem: str | None = None
        self._until = 0.0

    async def ok(self) -> bool:
        """Return whether every journal takes a commit within a second; the log says why not."""
        if self._task is None or (self._task.done() and time.monotonic() >= self._until):
            self._task = asyncio.create_task(asyncio.to_thread(self._commit))
            self._until = time.monotonic() + _KEPT
        task = self._task
        done, _ = await asyncio.wait({task}, timeout=_LIMIT)
        problem = task.result() if done else f"no commit within {_LIMIT:g} s"
        if problem is not None and problem != self._problem:
            _LOG.error("unhealthy: %s", problem)
        self._problem = problem
        return problem is None

    def _commit(self) -> str | None:
        """Write to every journal, and return the errors."""
        for name, agent in self._agents.items():
            try:
                agent.beat()
            except Exception as error:
                return f"{name}: {type(error).__name__} {error}"
        return None
