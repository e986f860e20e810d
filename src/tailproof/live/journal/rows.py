"""What a journal stores and returns."""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from tailproof.live.offers import Offer
from tailproof.typing import Array

__all__ = [
    "BEFORE",
    "CANCELLED",
    "REPEATED",
    "Chosen",
    "Counts",
    "Decision",
    "DecisionRow",
    "Earlier",
    "Ended",
    "Found",
    "Note",
    "Outcome",
    "Told",
    "seal",
]


CANCELLED = "\n"
"""The id of an event that says that its ticket was cancelled; those of rewards are printable."""
BEFORE = -1
"""The decision of a cancelled ticket that was not asked for yet; the event has its id."""
REPEATED = -2
"""What `after` says of a decision that repeats that of a unit, `since`."""


def seal(*values: Any) -> int:
    """Return a checksum of a row, stored with it, so that `verify` notices a changed row.

    >>> seal(17, 0.5, None) == seal(17, 0.5, None) != seal(17, 0.25, None)
    True
    """
    found = blake2b(repr(values).encode(), digest_size=8).digest()
    return int.from_bytes(found, "little", signed=True)


class Decision(NamedTuple):
    """One decision: the arm, as an index into the offer, and its propensity."""

    id: int
    offer: Offer
    arm: int
    propensity: float | None

    @property
    def name(self) -> str:
        """The name of the chosen arm."""
        return self.offer.names[self.arm]


class DecisionRow(NamedTuple):
    """A decision with everything that determines it, except the seed.

    Attributes
    ----------
    shares : bytes or None
        The propensity of every arm of the offer, as float32.
    explore : float
        The probability of a uniformly random arm, outside the control group.
    group : str or None
        None if the policy chose; otherwise the group that the request belongs to.
    recipe : int
        The number of the recipe that chose.
    worker : int
        Who chose; only what a worker has pending itself influences its choices.
    after : int
        How many outcomes it had learned; −1 if the choice cannot be made again, −2 if it repeats
        that of an earlier decision for the same unit.
    since : int
        Its first decision whose pending reward was imputed, or the decision that is repeated.
    at : float
    """

    decision: Decision
    shares: bytes | None
    explore: float
    group: str | None
    recipe: int
    worker: int
    after: int
    since: int
    at: float


class Note(NamedTuple):
    """What was done to an experiment, such as an arm that was dropped."""

    number: int
    at: float
    kind: str
    text: dict[str, Any]


class Outcome(NamedTuple):
    """What is learned from a decision: its rewards, or None if it was given up."""

    number: int
    decision: Decision
    rewards: Array | None


class Chosen(NamedTuple):
    """What is kept of a decision to answer its tickets; `arm` is the number of the arm."""

    id: int
    arm: int
    propensity: float | None


@dataclass
class Found:
    """A ticket: its decision, its place among the tickets of that decision, its window.

    Attributes
    ----------
    events : dict
        When each event was told, by its id.
    told : int
        Events of all tickets of the decision.
    ended : bool
        Whether the decision has an outcome.
    """

    chosen: Chosen
    place: int
    ends: float
    events: dict[str, float] = field(default_factory=dict)
    told: int = 0
    ended: bool = False


class Earlier(NamedTuple):
    """The decision that a unit got before, its shares, and the digest of its offer."""

    chosen: Chosen
    shares: bytes | None
    key: bytes


class Told(NamedTuple):
    """A ticket of an open or ended decision, with its events (id, reward, time) in order."""

    place: int
    asked: float
    ends: float
    events: list[tuple[str, float, float]]

    @property
    def cancelled(self) -> bool:
        """Whether the ticket does not count."""
        return any(id_ == CANCELLED for id_, *_ in self.events)


class Ended(NamedTuple):
    """A ticket of an ended decision, with what its summary needs of that; see `DecisionRow`."""

    decision: int
    offer: int
    arm: int
    at: float
    """When the decision had its outcome."""
    propensity: float | None
    shares: bytes | None
    explore: float
    group: str | None
    worker: int
    again: bool
    """Whether the unit of the ticket had one before."""
    ticket: Told


@dataclass
class Counts:
    """Tickets, rewards in time, late rewards and their sum, of one arm."""

    asked: int = 0
    told: int = 0
    late: int = 0
    late_sum: float = 0.0
