"""Acts of callers, such as asks and tells, and the answers of an agent."""

import math
import sys
from dataclasses import dataclass
from numbers import Real
from typing import Literal, NamedTuple

from tailproof.checks import require
from tailproof.live.offer import Features, Offer

__all__ = ["LONGEST_ID", "Act", "Ask", "Cancel", "Standing", "Status", "Tell", "Ticket"]

LONGEST_ID = 200

Status = Literal["kept", "duplicate", "late", "unknown", "cancelled"]
"""What happened to a reward.

"kept": stored, and it counts; "duplicate": ignored, the ticket already has this reward; "late":
stored, but not learned, as its window had ended; "unknown": there is no such ticket; "cancelled":
ignored, as the ticket was cancelled.
"""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The answer to an ask: an arm, and the id to tell its reward to.

    Attributes
    ----------
    id : str
        Pass it to `Agent.tell` with the reward.
    arm : str
    propensity : float or None
        The probability that a request with this offer gets this arm, over everything that is drawn:
        control group, floor, explore and policy. None if the policy does not report it.
    default : bool
        Whether this is the default arm of a `Client` that got no answer.
    """

    id: str
    arm: str
    propensity: float | None
    default: bool = False


class Standing(NamedTuple):
    """Requests without an outcome, outcomes and alarms so far."""

    pending: int
    outcomes: int
    alarms: int


class Ask:
    """A request for an arm; see `Agent.ask`."""

    __slots__ = ("offer", "ticket", "unit")

    def __init__(
        self, offer: Features | Offer, ticket: str | None = None, unit: str | None = None
    ) -> None:
        self.offer, self.ticket, self.unit = Offer.of(offer), ticket, unit
        if ticket is not None:
            _check_id("ticket", ticket)
        if unit is not None:
            _check_id("unit", unit)


class Tell:
    """The reward of a ticket; see `Agent.tell`."""

    __slots__ = ("event", "reward", "ticket")

    def __init__(self, ticket: str, reward: float, event: str | None = None) -> None:
        _check_id("ticket", ticket)
        if event is not None:
            _check_id("event", event)
        if type(reward) is not float or math.isnan(reward):
            ok = isinstance(reward, Real) and not isinstance(reward, bool)
            ok = ok and (abs(reward) <= sys.float_info.max or abs(reward) == math.inf)
            require(ok, "reward", "a float (±inf allowed, NaN not)", reward)
        self.ticket, self.event = ticket, event
        self.reward = float(reward) + 0.0  # -0.0 becomes 0.0


class Cancel:
    """A ticket whose arm was not used; see `Agent.cancel`."""

    __slots__ = ("ticket",)

    def __init__(self, ticket: str) -> None:
        _check_id("ticket", ticket)
        self.ticket: str = ticket


Act = Ask | Tell | Cancel


def _check_id(name: str, given: str) -> None:
    if not (isinstance(given, str) and 0 < len(given) <= LONGEST_ID and given.isprintable()):
        rule = f"a string of 1 to {LONGEST_ID} printable characters"
        require(False, name, rule, given)
