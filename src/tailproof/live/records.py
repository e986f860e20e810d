"""What a journal tells of a hold: how it was decided, and what it brought."""

from typing import NamedTuple

from tailproof.live.offers import Offer
from tailproof.policies.base import Array

__all__ = ["Closing", "Decision", "Found", "HoldRow"]


class Decision(NamedTuple):
    """One hold: the arm of an offer, by its place there, and how probable it was."""

    hold: int
    offer: Offer
    arm: int
    propensity: float | None

    @property
    def name(self) -> str:
        """The name of the arm."""
        return self.offer.names[self.arm]


class HoldRow(NamedTuple):
    """A decision with what it depends on, but for the seed.

    It was made after so many closings, with the probability `explore` of any arm, expecting what
    holds from `since` on would bring.
    """

    decision: Decision
    explore: float
    after: int
    since: int


class Closing(NamedTuple):
    """The end of a hold: a lesson with its rewards, or nothing if it was given up."""

    decision: Decision
    learned: bool
    rewards: Array


class Found(NamedTuple):
    """A ticket: its hold and its number in it, and whether its reward came and its hold ended."""

    hold: int
    number: int
    told: float | None
    closed: int | None
