"""The running experiments of a service, each with its agent, its journal and its waiting acts."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tailproof.live import Agent, Ask, Cancel, Journal, Status, Tell, Ticket, open_journal
from tailproof.live.config import Config, Settings

__all__ = ["Experiment", "journal_of", "open_all", "open_one"]

_LOG = logging.getLogger("tailproof.live")
_LIMIT = 1.0
"""Seconds that a commit may take: a client's time-out is shorter, so callers have given up."""
_KEPT = 1.0
"""Seconds for which what is known of the journal is used again, so that probes cost no commits."""

Answers = list[Ticket | Status | ValueError]


class Experiment:
    """An experiment that runs.

    Parameters
    ----------
    settings : Settings
    agent : Agent
    reader : callable
        Opens another connection to the journal, for long reads; close it after use.
    """

    def __init__(self, settings: Settings, agent: Agent, reader: Callable[[], Journal]) -> None:
        self.settings, self.agent, self.reader = settings, agent, reader
        self._waiting: list[tuple[Sequence[Ask | Tell | Cancel], asyncio.Future[Answers]]] = []
        self._commits: asyncio.Task[None] | None = None
        self._beat: asyncio.Task[str | None] | None = None
        self._beat_after, self._problem = 0.0, ""

    async def act(self, acts: Sequence[Ask | Tell | Cancel]) -> Answers:
        """Do acts as `Agent.act` does; those that come during a commit share the next one."""
        future: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()
        self._waiting.append((acts, future))
        if self._commits is None or self._commits.done():
            self._commits = asyncio.create_task(self._commit())
        return await future

    async def _commit(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                acts = [act for some, _ in waiting for act in some]
                answers = iter(await asyncio.to_thread(self.agent.act, acts))
            except Exception as error:
                for _, future in waiting:
                    if not future.done():
                        future.set_exception(error)
                continue
            for some, future in waiting:
                own = [next(answers) for _ in some]
                if not future.done():  # a caller that gave up has cancelled it
                    future.set_result(own)

    async def problem(self) -> str | None:
        """Return why no small commit could be made within a second; None if one could.

        A commit is made at most once a second. A new problem is logged.
        """
        if self._beat is None or (self._beat.done() and time.monotonic() >= self._beat_after):
            self._beat = asyncio.create_task(asyncio.to_thread(self._try))
            self._beat_after = time.monotonic() + _KEPT
        beat = self._beat
        done, _ = await asyncio.wait({beat}, timeout=_LIMIT)
        problem = beat.result() if done else f"no commit within {_LIMIT:g} s"
        if problem and problem != self._problem:
            _LOG.error("unhealthy: %s: %s", self.settings.name, problem)
        self._problem = problem or ""
        return problem

    def _try(self) -> str | None:
        try:
            self.agent.beat()
        except Exception as error:
            return f"{type(error).__name__} {error}"
        return None


def open_all(config: Config) -> dict[str, Experiment]:
    """Open all experiments of a service; if one fails, the others are closed again."""
    with ExitStack() as opened:
        experiments = {}
        for settings in config.experiments.values():
            experiments[settings.name] = open_one(config, settings)
            opened.callback(experiments[settings.name].agent.close)
        opened.pop_all()
    return experiments


def open_one(config: Config, settings: Settings, *, change: bool = False) -> Experiment:
    """Open one experiment; raises ``ValueError`` if its journal has another recipe.

    With `change`, that recipe is replaced.
    """
    with ExitStack() as opened:
        journal = journal_of(config, settings.name)
        opened.callback(journal.close)
        try:
            agent = Agent(settings.recipe, journal, change=change)
        except ValueError as error:
            raise ValueError(f"experiments.{settings.name}: {error}") from None
        opened.pop_all()
    return Experiment(settings, agent, partial(journal_of, config, settings.name))


def journal_of(config: Config, name: str, *, make: bool = True) -> Journal:
    """Connect to the journal of an experiment; unless `make`, it must exist."""
    if "://" in config.journal:
        return open_journal(f"{config.journal}#{name}", durable=config.durable, make=make)
    folder = Path(config.journal)
    if make:
        folder.mkdir(parents=True, exist_ok=True)
    return open_journal(folder / f"{name}.db", durable=config.durable, make=make)
