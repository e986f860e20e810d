"""When requests get their outcomes, in which order, and which agent gives them."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Self, TypeVar

from tailproof.live.journal import Batch, ConflictError, Journal, Request
from tailproof.live.recipe import Recipe

__all__ = ["AT_ONCE", "Scheduler", "as_orderer", "order"]

T = TypeVar("T")

AT_ONCE = 256
"""Outcomes that are numbered, and that are learned, in one transaction at most."""

_TRIES = 600
"""How often a transaction is tried that must number outcomes, `_EVERY` seconds apart."""
_EVERY = 0.1
"""Seconds between two looks of a scheduler."""
_LOG = logging.getLogger("tailproof.live")


def order(journal: Journal, recipe: Callable[[int], Recipe], batch: Batch, most: int) -> None:
    """Number the outcomes of the batch's ready requests and of up to `most` that are due.

    Each request goes by its own recipe. Only one transaction at a time does this; if two did, the
    database would refuse the second.
    """
    rows, ended = list[tuple[Request, float | None, str]](), set[int]()
    done, waiting = set[tuple[float, int]](), list(batch.ready)
    for moment, request in journal.due(batch.now, most) if most else ():
        done.add((moment, request.id))
        waiting.append(request)
    for request in waiting:
        if request.why is None and request.id not in ended:
            end = request.ends + journal.GRACE
            outcome = recipe(request.recipe).outcome(request, over=end <= batch.now)
            if outcome is None:
                raise RuntimeError(f"request {request.id} is due before its window has ended")
            rows.append((request, *outcome))
            ended.add(request.id)
            done.add((end, request.id))
    if rows:
        journal.add_outcomes(rows, batch.now, batch.outcomes)
    if done:
        journal.remove_due(done)


def as_orderer(journal: Journal, write: Callable[[Batch], T]) -> T:
    """Do something in a transaction that may number outcomes, once it may."""
    for _ in range(_TRIES):
        try:
            with journal.transaction():
                read = journal.read_batch()
                if not read.orders:
                    raise ConflictError
                return write(read)
        except ConflictError:
            time.sleep(_EVERY)
    raise TimeoutError("others kept writing to the journal for a minute: try again")


class Scheduler:
    """A thread that lets agents number and learn due outcomes, also while nobody asks or tells.

    Nothing depends on it: it only leaves less to do for the next ask. `ticks` has `Agent.tick` of
    each agent, by the name that a warning shows.

    >>> from tailproof import UCB1
    >>> from tailproof.live import Agent
    >>> agent = Agent(UCB1(), ":memory:", wait=0.01, silence=0.0)
    >>> with Scheduler({"shop": agent.tick}):
    ...     ticket = agent.ask(["red", "blue"])
    ...     while agent.standing().outcomes == 0:
    ...         time.sleep(0.01)
    >>> agent.standing().pending
    0
    """

    def __init__(self, ticks: Mapping[str, Callable[[], bool]]) -> None:
        self._ticks, self._stop = ticks, threading.Event()
        self._thread = threading.Thread(target=self._run, name="tailproof-scheduler", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        failing = set[str]()
        while not self._stop.is_set():
            done = True
            for name, tick in self._ticks.items():
                try:
                    done &= tick()
                    failing.discard(name)
                except Exception as error:
                    if name not in failing:
                        _LOG.warning("cannot see to %s; retrying: %s", name, error)
                    failing.add(name)
            self._stop.wait(_EVERY if done else 0.001)
