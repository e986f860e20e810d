"""The end of old records: their rows are removed, the learned state stays."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tailproof.checks import require
from tailproof.live.agent import Agent
from tailproof.live.journal import PAGE, Batch, Journal
from tailproof.live.ordering import as_orderer
from tailproof.live.recipe import Recipe, seconds
from tailproof.live.replay import restored

__all__ = ["Pruned", "prune", "pruning_notice"]


@dataclass(frozen=True)
class Pruned:
    """What was removed from a journal.

    Attributes
    ----------
    outcomes, events : int
        How many rows; an outcome goes with its request.
    since : int
        After how many outcomes `verify` begins to check.
    """

    outcomes: int
    events: int
    since: int


def pruning_notice(agent: Agent, before: str | float | datetime, *, page: bool = False) -> str:
    """Say what `prune` would remove, and which statements will no longer be possible.

    `page` says whether the counts of the page are kept, for "did it pay".

    >>> from tailproof import UCB1
    >>> pruning_notice(Agent(UCB1(), ":memory:"), 0.0)
    'There is nothing to remove.'
    """
    journal = agent.journal
    first = _first(journal, _time(before, journal.now()))
    count = first - journal.first()
    if count <= 0:
        return "There is nothing to remove."
    ((at,),) = journal.execute("SELECT at FROM outcome WHERE number = ?", (first,))
    sums = ', and so do the sums of "Did it pay?"' if page else ""
    lost = "" if page else '"Did it pay?", '
    return (
        f"This removes {count:,} outcomes with their requests. What was learned stays{sums}. "
        f'Afterwards {lost}"Who leads?" and `judge` speak of outcomes since {_date(at)} only, and '
        "a recipe that takes over later learns only those. Keep an export (`tailproof log`) to "
        "judge the rest."
    )


def prune(
    agent: Agent,
    before: str | float | datetime,
    *,
    page: Callable[[int], bytes] | None = None,
) -> Pruned:
    """Remove the records of requests that ended before a time, and keep the learned state.

    Tickets with their ids and units, rewards, and the features of their offers go; so do imported
    rows, which ended when they were imported. A snapshot of the state takes their place as the
    beginning of every replay, and a note says what was removed, with sums by arm. It is one
    transaction; others may use the journal. `pruning_notice` names the statements lost.

    The latest outcome always stays. A reward for a removed ticket is "unknown". A recipe that takes
    over later (`Agent`, `change`) can learn only the outcomes left.

    Parameters
    ----------
    agent : Agent
    before : str, float or datetime
        A date such as "2026-01-01" (in UTC), an age such as "90d", or seconds since 1970.
    page : callable, optional
        Returns the counts of the page before an outcome, so that "Did it pay?" goes on.

    Examples
    --------
    >>> from tailproof import UCB1
    >>> from tailproof.live import Agent
    >>> clock = iter(range(10_000))
    >>> agent = Agent(UCB1(), ":memory:", clock=lambda: float(next(clock)))
    >>> for i in range(600):
    ...     status = agent.tell(agent.ask(["red", "blue"]).id, i % 2)
    >>> removed = prune(agent, before=500.0)
    >>> checked = agent.verify()
    >>> removed.outcomes > 200, checked.ok, checked.since == removed.since
    (True, True, True)
    """
    now = agent.journal.now()
    end = _time(before, now)
    require(end <= now, "before", "a time that has passed", before)
    journal = agent.journal
    with agent.alone():
        with journal.moment():
            first = _first(journal, end)
            states = _states(agent, first) if first > journal.first() else {}
        if not states:
            return Pruned(0, 0, journal.first())
        states |= {} if page is None else {PAGE: page(first)}
        text = {"before": _date(end), "snapshot": first, "recipe": agent.number}

        def write(read: Batch) -> dict[str, Any]:
            removed = journal.prune(first, end)
            journal.keep_snapshots(first, states)
            journal.add_note("prune", text | removed, read.now)
            return removed

        removed = as_orderer(journal, write)
        journal.compact()
    return Pruned(removed["outcomes"], removed["events"], first)


def _first(journal: Journal, end: float) -> int:
    """Return the number of the first outcome that stays."""
    ((first,),) = journal.execute("SELECT MIN(number) FROM outcome WHERE at >= ?", (end,))
    # the latest request stays, so that its id is not given again
    ((last,),) = journal.execute(
        "SELECT MIN(number) FROM outcome WHERE request = (SELECT MAX(id) FROM request)"
    )
    kept = [int(number) for number in (first, last) if number is not None]
    return min([journal.outcome_count() - 1, *kept])


def _states(agent: Agent, start: int) -> dict[int, bytes]:
    """Return snapshots after `start` outcomes of all recipes with later requests."""
    journal, states = agent.journal, dict[int, bytes]()
    for number, text, rules, *_ in journal.recipes():
        recipe = agent.recipe if number == agent.number else Recipe.of(text, rules)
        ((later,),) = journal.execute(
            "SELECT COUNT(*) FROM request WHERE recipe = ? AND after >= ?", (number, start)
        )
        if not isinstance(recipe.policy, str) and (later or number == agent.number):
            states[number] = restored(recipe.policy, journal, number, start).to_bytes()
    return states


def _time(before: str | float | datetime, now: float) -> float:
    if not isinstance(before, str):
        return before.timestamp() if isinstance(before, datetime) else float(before)
    try:
        date = datetime.fromisoformat(before)
    except ValueError:
        try:
            return now - seconds(before)
        except ValueError:
            rule = "a date such as '2026-01-01' or an age such as '90d'"
            raise ValueError(f"before must be {rule}, got {before!r}") from None
    return date.replace(tzinfo=date.tzinfo or UTC).timestamp()


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
