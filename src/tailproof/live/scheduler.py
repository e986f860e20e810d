"""When decisions have their outcomes, in which order, and who sees to it."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np

from tailproof.checks import number, require
from tailproof.live.journal import ConflictError, Glance, Journal, Told
from tailproof.policies.base import Policy
from tailproof.typing import Array

__all__ = ["Rewards", "Rules", "Scheduler", "as_orderer", "grace", "order"]

T = TypeVar("T")

Rewards = Literal["first", "sum"]
_GRACE = 0.5
"""Seconds after a window in which a reward that was told inside it may still be committed."""
_TRIES = 600
"""How often a transaction is tried that must give numbers to outcomes, `_EVERY` seconds apart."""
_EVERY = 0.1
"""Seconds between two looks of a scheduler."""
_LOG = logging.getLogger("tailproof.live")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What rewards mean.

    Parameters
    ----------
    pulls, least : int
        How many rewards a decision takes, and how few are enough if some are lost.
    wait : float
        The length of the window in which rewards count, in seconds.
    silence : float or None
        The reward of a ticket whose window ended without one. Every outcome is then learned at the
        end of the window. With None such a reward is lost, and others are learned when they come.
    rewards : "first" or "sum"
        Whether the first event of a ticket is its reward, or the sum of all events in its window.
    """

    pulls: int
    least: int
    wait: float
    silence: float | None
    rewards: Rewards = "first"

    def __post_init__(self) -> None:
        if self.silence is not None:
            number("silence", self.silence)
        require(self.rewards in ("first", "sum"), "rewards", "'first' or 'sum'", self.rewards)

    @property
    def at_once(self) -> bool:
        """Whether a reward is learned when it comes."""
        return self.silence is None and self.rewards == "first"

    @classmethod
    def of(cls, meta: Mapping[str, str], policy: Policy[Any]) -> Self:
        """Return the rules that the agent of a journal had when it was last opened."""
        silence = meta.get("silence", "lost")
        return cls(
            pulls=policy.pulls,
            least=policy.least,
            wait=float(meta.get("wait", "inf")),
            silence=None if silence == "lost" else float(silence),
            rewards="sum" if meta.get("rewards") == "sum" else "first",
        )

    def last(self, ticket: Told, ended: float | None) -> float:
        """Return until when rewards of a ticket counted, given when its decision had its outcome.

        Rewards that are learned at once are late if the others of their decision were enough.
        """
        return min(ticket.ends, ended) if ended is not None and self.at_once else ticket.ends

    def came(self, ticket: Told, ended: float | None = None) -> float | None:
        """Return the reward that came in time, None if none did."""
        last = self.last(ticket, ended)
        found = [reward for _, reward, at in ticket.events if at <= last]
        if not found:
            return None
        return found[0] if self.rewards == "first" else sum(found)

    def outcome(
        self, tickets: Sequence[Told], now: float, extra: float = 0.0, *, last: bool = False
    ) -> tuple[bool, Array | None]:
        """Return whether a decision has its outcome, and the rewards to learn, if any.

        A window is over `extra` seconds after its end. With `last` there will be no more tickets;
        then a decision that is short of rewards when its windows are over learns from what it has,
        if that is enough, and is given up otherwise.
        """
        over = all(ticket.ends + extra <= now for ticket in tickets)
        last = over and (last or self.pulls == 1)
        if not tickets or (not over and not self.at_once):
            return False, None
        if self.silence is not None and len(tickets) < self.pulls and not last:
            return False, None
        found = [self.came(ticket) for ticket in tickets]
        came = [self.silence if one is None else one for one in found]
        came = [one for one in came if one is not None]
        if len(came) >= (self.least if over else self.pulls):
            return True, np.array(came[: self.pulls])
        return last, None


def grace(journal: Journal) -> float:
    """Return how long after a window its decision is due."""
    return 0.0 if journal.serial else _GRACE


def order(
    journal: Journal,
    rules: Rules,
    now: float,
    most: int,
    ready: Collection[int] = (),
    *,
    recipe: int = 0,
) -> int:
    """Give numbers to the outcomes of decisions, and return how many were due, up to `most`.

    `ready` are further decisions that may have their outcome now. One of another recipe than
    number `recipe` gets no more tickets; its outcome is what they bring. Only one transaction at a
    time does this; if two did, the database would refuse the second.
    """
    extra = grace(journal)
    dropped: set[str] | None = None
    rows = journal.due(now, most)
    decisions = list(dict.fromkeys([*(decision for _, decision in rows), *ready]))
    if not decisions:
        return 0
    seen, done, later = {decision for _, decision in rows}, set(rows), []
    outcomes = []
    told = journal.told(decisions)
    others = journal.of_others(decisions, recipe) if recipe else set()
    for decision in decisions:
        tickets = told.get(decision)
        if tickets is None:  # it has an outcome already
            continue
        valid = [ticket for ticket in tickets if not ticket.cancelled]
        other = decision in others
        own = replace(rules, pulls=max(1, len(valid)), least=1) if other else rules
        ended, rewards = own.outcome(valid, now, extra, last=other)
        ends = {ticket.ends + extra for ticket in tickets}
        if not ended and rules.pulls > 1 and max(ends) <= now:
            if dropped is None:
                dropped = {note.text["arm"] for note in journal.notes() if note.kind == "drop"}
            if dropped and not dropped.isdisjoint(journal.decision(decision).offer.names):
                ended, rewards = rules.outcome(valid, now, extra, last=True)
        if ended:
            packed = None if rewards is None else rewards.astype("<f8").tobytes()
            outcomes.append((decision, packed, len(valid)))
            done.update((at, decision) for at in ends)
        elif decision in seen and max(ends) > now:
            later.append((max(ends), decision))
    if outcomes:
        journal.add_outcomes(outcomes, now)
    if done:
        journal.done(done)
    if later:
        journal.add_due(later)
    return len(rows)


def as_orderer(journal: Journal, write: Callable[[Glance], T]) -> T:
    """Do something in a transaction that may give numbers to outcomes, once it may."""
    for _ in range(_TRIES):
        try:
            with journal.transaction():
                glance = journal.look()
                if not glance.orders:
                    raise ConflictError
                return write(glance)
        except ConflictError:
            time.sleep(_EVERY)
    raise TimeoutError("others kept writing to the journal for a minute: try again")


class _Ticking(Protocol):
    def tick(self) -> bool: ...


class Scheduler:
    """A thread that lets agents number and learn what is due, also while nobody asks or tells.

    Nothing depends on it: it only leaves less to do for the next ask.

    Parameters
    ----------
    agents : mapping
        The agents, by the name that a warning shows.

    Examples
    --------
    >>> from tailproof import UCB1
    >>> from tailproof.live import Agent
    >>> agent = Agent(UCB1(), ":memory:", wait=0.01, silence=0.0)
    >>> with Scheduler({"shop": agent}):
    ...     ticket = agent.ask(["red", "blue"])
    ...     while agent.standing().outcomes == 0:
    ...         time.sleep(0.01)
    >>> agent.standing().pending
    0

    Source: our own. Differences: none.
    """

    def __init__(self, agents: Mapping[str, _Ticking]) -> None:
        self._agents, self._stop = agents, threading.Event()
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
            for name, agent in self._agents.items():
                try:
                    done &= agent.tick()
                    failing.discard(name)
                except Exception as error:
                    if name not in failing:
                        _LOG.warning("cannot see to %s; retrying: %s", name, error)
                    failing.add(name)
            self._stop.wait(_EVERY if done else 0.001)
