"""What is read of a journal to tell how an experiment goes: its outcomes, by number."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tailproof.live.journal import CANCELLED, Journal, Note
from tailproof.live.offer import Offer
from tailproof.live.recipe import Recipe
from tailproof.live.replay import offers

__all__ = ["Customer", "Ended", "Note", "Reader"]

_ENDED = (
    "SELECT r.id, r.offer, r.arm, r.at, r.ends, r.propensity, r.shares, r.grp, r.recipe, o.reward,"
    " o.why, (SELECT MIN(u.at) FROM request u WHERE u.unit = r.unit)"
    " FROM outcome o JOIN request r ON r.id = o.request"
)
_TOTALS = (
    "SELECT r.id, COUNT(*), SUM(CASE WHEN o.why = 'told' AND o.reward <> 0 THEN 1 ELSE 0 END),"
    " COUNT(o.reward), SUM(o.reward) FROM request r"
    " JOIN request u ON u.unit = r.unit AND u.at >= r.at AND u.at <= r.ends"
    " JOIN outcome o ON o.request = u.id AND o.why <> 'cancelled'"
    " WHERE r.id IN ({marks}) GROUP BY r.id"
)
_AT_ONCE = 500
"""Customers whose totals are read at once."""


class Ended(NamedTuple):
    """A request with its outcome.

    `since` is the time of the first request of its unit, None if it names none.
    """

    id: int
    offer: int
    arm: int
    asked: float
    ends: float
    propensity: float | None
    shares: str | None
    group: str | None
    recipe: int
    reward: float | None
    why: str
    since: float | None

    @property
    def again(self) -> bool:
        """Whether its unit had a request before."""
        return self.since is not None and self.since < self.asked


class Customer(NamedTuple):
    """The first request of a unit, and what its unit brought in the window of that request.

    Attributes
    ----------
    first : Ended
        Its arm is that of the customer.
    visits, orders : int
        Requests in the window, and those of them that were told a reward that is not zero.
    total : float or None
        The sum of their rewards; None if none is known.
    """

    first: Ended
    visits: int
    orders: int
    total: float | None

    @classmethod
    def of(cls, row: Ended) -> "Customer":
        """Return a request as a customer of its own."""
        return cls(row, 1, int(row.why == "told" and row.reward != 0), row.reward)


class Reader:
    """Reads outcomes of a journal in order, over a connection of its own; it takes no lock.

    Parameters
    ----------
    journal : Journal

    Examples
    --------
    >>> from tailproof import UCB1
    >>> from tailproof.live import Agent
    >>> agent = Agent(UCB1(), ":memory:", control=("red", 0.5))
    >>> agent.tell(agent.ask(["red", "blue"]).id, 3.5)
    'kept'
    >>> [(row.reward, row.why) for row in Reader(agent.journal).ended(0, 1)]
    [(3.5, 'told')]
    """

    def __init__(self, journal: Journal) -> None:
        self.journal, self.moment, self.close = journal, journal.moment, journal.close
        self.offer = offers(journal)
        self.arms, self.notes = journal.arms, journal.notes
        self.count, self.first, self.pending = journal.outcome_count, journal.first, journal.pending
        self.ignored = journal.ignored
        self._recipes: dict[int, Recipe] = {}
        self._evens: dict[tuple[int, int], float] = {}

    def ended(self, first: int, stop: int) -> list[Ended]:
        """Return requests by the numbers of their outcomes."""
        sql = f"{_ENDED} WHERE o.number >= ? AND o.number < ? ORDER BY o.number"
        return [Ended(*row) for row in self.journal.execute(sql, (first, stop))]

    def customers(self, requests: Sequence[int]) -> list[Customer]:
        """Return what the units of these first requests brought, in the same order."""
        found = {}
        for start in range(0, len(requests), _AT_ONCE):
            part = requests[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            sums = {row[0]: row[1:] for row in self._execute(_TOTALS.format(marks=marks), part)}
            for row in self._execute(f"{_ENDED} WHERE r.id IN ({marks})", part):
                first = Ended(*row)
                visits, orders, known, total = sums.get(first.id, (0, 0, 0, None))
                if known and total is None:  # ∞ − ∞
                    total = math.nan
                found[first.id] = Customer(first, visits, orders, total)
        return [found[request] for request in requests if request in found]

    def _execute(self, sql: str, values: Sequence[int]) -> list[tuple[Any, ...]]:
        return list(self.journal.execute(sql, list(values)))

    def late(self) -> dict[int, tuple[int, float]]:
        """Return how many rewards came too late, and their sum, by the numbers of the arms."""
        sql = (
            "SELECT r.arm, COUNT(*), SUM(e.value) FROM event e JOIN request r ON r.id = e.request"
            f" WHERE e.late = 1 AND e.name <> '{CANCELLED}' GROUP BY r.arm"
        )
        rows = self.journal.execute(sql)
        return {
            arm: (count, float("nan") if total is None else total) for arm, count, total in rows
        }

    def recipe(self, number: int | None = None) -> Recipe | None:
        """Return a recipe by its number, by default the one that decides now, if there is one."""
        known = self.journal.recipes() if number is None or number not in self._recipes else []
        for found, policy, rules, *_ in known:
            self._recipes[found] = self._recipes.get(found) or Recipe.of(policy, rules)
        latest = max(self._recipes, default=-1)
        return self._recipes.get(latest if number is None else number)

    def even(self, number: int, offer: int) -> float:
        """Return the share of uniformly random choices of a recipe for an offer."""
        key = number, offer
        if key not in self._evens:
            recipe: Any = self.recipe(number)
            if len(self._evens) > 10_000:  # offers with features that never come again
                self._evens.clear()
            self._evens[key] = recipe.even(Offer(self.offer(offer).names))
        return self._evens[key]
