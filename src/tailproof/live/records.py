"""Records of a journal: decisions and their outcomes."""

from typing import NamedTuple

from tailproof.live.offers import Offer
from tailproof.policies.base import Array

__all__ = ["Closing", "Decision", "Found", "HoldRow"]


class Decision(NamedTuple):
    """One decision: the arm, as an index into the offer, and its propensity."""

    hold: int
    offer: Offer
    arm: int
    propensity: float | None

    @property
    def name(self) -> str:
        """The name of the chosen arm."""
        return self.offer.names[self.arm]


class HoldRow(NamedTuple):
    """A decision with everything that determines it, except the seed.

    `explore` is the probability of a uniformly random arm, `after` the number of outcomes learned
    before, and `since` the first of the decisions whose pending rewards were imputed.
    """

    decision: Decision
    explore: float
    after: int
    since: int


class Closing(NamedTuple):
    """The outcome of a decision: its rewards, or none if it was given up (``learned=False``)."""

    decision: Decision
    learned: bool
    rewards: Array


class Found(NamedTuple):
    """A ticket: its decision, and its number among the tickets of that decision.

    `told` is the time of its reward, `closed` the number of the decision's outcome; None before.
    """

    hold: int
    number: int
    told: float | None
    closed: int | None
