"""What is read of a journal to tell how an experiment goes: its outcomes, by number."""

import math
from functools import lru_cache
from typing import Any

from tailproof.live.journal import CANCELLED, LARGE, PAGE, Journal, Note, Outcome
from tailproof.live.offer import Offer
from tailproof.live.recipe import Recipe
from tailproof.live.replay import offers

__all__ = ["Note", "Outcome", "Reader"]

_KEPT = 10_000
"""Offers with features never come again, so not all are kept."""


class Reader:
    """Reads outcomes of a journal in order, over a connection of its own; it takes no lock.

    >>> from tailproof import UCB1
    >>> from tailproof.live import Agent
    >>> agent = Agent(UCB1(), ":memory:", control=("red", 0.5))
    >>> agent.tell(agent.ask(["red", "blue"]).id, 3.5)
    'kept'
    >>> [(row.reward, row.why) for row in Reader(agent.journal).outcomes(0, 1)]
    [(3.5, 'told')]
    """

    def __init__(self, journal: Journal) -> None:
        self.journal, self.moment, self.close = journal, journal.moment, journal.close
        self.offer = offers(journal)
        self.arms, self.notes = journal.arms, journal.notes
        self.count, self.first, self.pending = journal.outcome_count, journal.first, journal.pending
        self.ignored, self.outcomes = journal.ignored, journal.outcomes
        self._recipes: dict[int, Recipe] = {}
        self.even = lru_cache(_KEPT)(self._even)

    def kept(self) -> bytes | None:
        """Return the page's counts that `prune` kept, if they end at the first outcome here."""
        kept = self.journal.snapshots(PAGE, kept=True)
        return next((state for after, state in kept if after == self.first()), None)

    def late(self) -> dict[int, tuple[int, float]]:
        """Return how many rewards came too late, and their sum, by the numbers of the arms."""
        sql = (
            f"SELECT r.arm, COUNT(*), SUM(e.value / {LARGE}) FROM event e"
            " JOIN request r ON r.id = e.request"
            f" WHERE e.late = 1 AND e.name <> '{CANCELLED}' GROUP BY r.arm"
        )
        rows = self.journal.execute(sql)
        return {
            arm: (count, math.nan if part is None else part * LARGE) for arm, count, part in rows
        }

    def recipe(self, number: int | None = None) -> Recipe | None:
        """Return a recipe by its number, by default the one that decides now, if there is one."""
        if number is None or number not in self._recipes:
            for known, policy, rules, *_ in self.journal.recipes()[len(self._recipes) :]:
                self._recipes[known] = Recipe.of(policy, rules)
        return self._recipes.get(len(self._recipes) - 1 if number is None else number)

    def _even(self, number: int, offer: int) -> float:
        """Return the share of uniformly random choices of a recipe for an offer."""
        recipe: Any = self.recipe(number)
        return float(recipe.even(Offer(self.offer(offer).names)))
