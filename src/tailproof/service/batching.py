"""Requests that come during a commit share the next one."""

import asyncio
from collections.abc import Sequence

from tailproof.live import Agent, Ask, Cancel, Status, Tell, Ticket

__all__ = ["Queue"]

Answers = list[Ticket | Status | ValueError]


class Queue:
    """Asks and tells that wait for the next commit of an agent.

    Parameters
    ----------
    agent : Agent
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._waiting: list[tuple[Sequence[Ask | Tell | Cancel], asyncio.Future[Answers]]] = []
        self._task: asyncio.Task[None] | None = None

    async def act(self, acts: Sequence[Ask | Tell | Cancel]) -> Answers:
        """Do acts in one commit, with others that wait; see `Agent.act`."""
        future: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self._waiting.append((acts, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            acts = [act for some, _ in waiting for act in some]
            try:
                answers = await asyncio.to_thread(self._agent.act, acts)
            except Exception as error:
                for _, future in waiting:
                    if not future.done():
                        future.set_exception(error)
                continue
            start = 0
            for some, future in waiting:
                if not future.done():  # a caller that gave up has cancelled it
                    future.set_result(answers[start : start + len(some)])
                start += len(some)
