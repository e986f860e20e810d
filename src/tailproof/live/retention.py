"""The end of old records: what was learned stays, the rows go."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tailproof.checks import require
from tailproof.live.agent import Agent, seconds
from tailproof.live.journal import Glance, Journal
from tailproof.live.learner import RECENT, Learner
from tailproof.live.replay import blank, built, replay
from tailproof.live.scheduler import as_orderer

__all__ = ["Pruned", "prune"]


@dataclass(frozen=True)
class Pruned:
    """What was removed from a journal.

    Attributes
    ----------
    outcomes, tickets, events : int
        How many rows.
    since : int
        After how many outcomes `verify` begins to check.
    """

    outcomes: int
    tickets: int
    events: int
    since: int


def prune(agent: Agent, before: str | float | datetime) -> Pruned:
    """Remove the records of decisions that ended before some time, and keep what was learned.

    Tickets with their ids and units, rewards, decisions and the features of their offers go; so do
    imported rows, which ended when they were imported. A snapshot of the state takes their place as
    the beginning of every replay, and a note says what was removed, with sums by arm. It is one
    transaction; others may use the journal.

    Of a policy that imputes pending rewards, as most do, the latest 256 outcomes always stay; of
    others, the latest. A reward for a removed ticket is "unknown". A policy that takes over later
    (`Agent`, `change`) can learn only what is left.

    Parameters
    ----------
    agent : Agent
    before : str, float or datetime
        A date such as "2026-01-01" (in UTC), an age such as "90d", or seconds since 1970.

    Examples
    --------
    >>> from tailproof import UCB1
    >>> from tailproof.live import Agent
    >>> clock = iter(range(10_000))
    >>> agent = Agent(UCB1(), ":memory:", clock=lambda: float(next(clock)))
    >>> for i in range(600):
    ...     fate = agent.tell(agent.ask(["red", "blue"]).id, i % 2)
    >>> prune(agent, before=500.0).outcomes, agent.learner.learned
    (249, 599)
    >>> found = agent.verify()
    >>> found.ok, found.since
    (True, 505)

    Source: our own. Differences: none.
    """
    now = agent.journal.now()
    end = _time(before, now)
    require(end <= now, "before", "a time that has passed", before)
    journal = agent.journal
    with agent._alone():
        with journal.moment():
            first = _first(journal, end, RECENT if agent.learner.imputes else 1)
            start = first + (RECENT if agent.learner.imputes else 0)
            states = _states(agent, start) if first > journal.first() else {}
        if not states:
            return Pruned(0, 0, 0, journal.first())
        text = {"before": _date(end), "snapshot": start, "recipe": agent._recipe}

        def write(glance: Glance) -> dict[str, Any]:
            found = journal.prune(first, end)
            journal.keep_snapshots(start, states)
            journal.add_note("prune", text | found, glance.now)
            return found

        found = as_orderer(journal, write)
        journal.compact()
    return Pruned(found["outcomes"], found["tickets"], found["events"], start)


def _first(journal: Journal, end: float, keep: int) -> int:
    """Return the number of the first outcome that stays."""
    outcomes = journal.counts()[0]
    ((first,),) = journal.execute("SELECT MIN(number) FROM outcome WHERE at >= ?", (end,))
    # the latest decision stays, so that its id is not given again
    ((last,),) = journal.execute(
        "SELECT MIN(number) FROM outcome WHERE decision = (SELECT MAX(id) FROM decision)"
    )
    return min([outcomes - keep, *(int(one) for one in (first, last) if one is not None)])


def _states(agent: Agent, start: int) -> dict[int, bytes]:
    """Return snapshots after `start` outcomes of all recipes with later decisions."""
    journal, found = agent.journal, dict[int, bytes]()
    for number, text, *_ in journal.recipes():
        rule = agent.policy if number == agent._recipe else built(text)
        ((later,),) = journal.execute(
            "SELECT COUNT(*) FROM decision WHERE recipe = ? AND after >= ?", (number, start)
        )
        if rule is not None and (later or number == agent._recipe):
            learner = blank(rule, journal, recipe=number)
            _approach(learner, journal, start)
            replay(learner, journal, start)
            found[number] = learner.to_bytes()
    return found


def _approach(learner: Learner, journal: Journal, start: int) -> None:
    """Load the latest snapshot that is not later than `start`."""
    assert learner.recipe is not None
    for after, state in journal.snapshots(learner.recipe):
        if learner.learned < after <= start:
            learner.from_bytes(state, after)
            return


def _time(before: Any, now: float) -> float:
    if isinstance(before, datetime):
        return before.timestamp()
    if not isinstance(before, str):
        return float(before)
    try:
        date = datetime.fromisoformat(before)
    except ValueError:
        try:
            return now - seconds(before)
        except ValueError:
            raise ValueError(
                f"before must be a date such as '2026-01-01' or an age such as '90d', got "
                f"{before!r}"
            ) from None
    return date.replace(tzinfo=date.tzinfo or UTC).timestamp()


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
