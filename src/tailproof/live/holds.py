"""Open decisions: which need more tickets, and which are due to end."""

import math
from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from statistics import median

from tailproof.live.records import Decision

__all__ = ["MOST_OPEN", "SEEN", "Desk", "Hold"]

MOST_OPEN = 100_000
"""If more decisions are open, the oldest are given up, to bound memory."""
MOST_HELD = 10_000
"""The same for policies with several pulls, where each open decision keeps its offer."""
_NEVER_TWICE = 100
"""After this many decisions in a row whose offer did not repeat, none is expected to."""
_DELAYS, _OFTEN = 256, 8
"""The median delay is that of the latest 256, updated after every 8 rewards."""
_SCANS = 20
"""Scans per patience interval."""
_LONG = 5
"""Patience in median delays: of exponential delays, one in 32 is longer."""
SEEN = 64
"""Latest settled decisions, from which the share of lost rewards is estimated."""


@dataclass(slots=True)
class Hold:
    """An open decision, whose arm goes to one or several tickets.

    Attributes
    ----------
    id : int
    key : bytes
        Identifies the offer; see `Offer.key`.
    decision : Decision or None
        What further tickets are answered with; None if there is only one ticket.
    issued, told : int
        Numbers of tickets, and of those whose reward has come.
    awaited : dict
        Tickets whose reward may still come: by number, when each was issued.
    last : float
        When the last ticket was issued.
    """

    id: int
    key: bytes
    decision: Decision | None = None
    issued: int = 0
    told: int = 0
    last: float = -math.inf
    awaited: dict[int, float] = field(default_factory=dict)

    def issue(self, now: float) -> int:
        """Issue a ticket and return its number."""
        number, self.issued, self.last = self.issued, self.issued + 1, now
        self.awaited[number] = now
        return number

    def expire(self, before: float) -> None:
        """Stop waiting for tickets issued before a time."""
        while self.awaited:
            number, at = next(iter(self.awaited.items()))  # the oldest
            if at >= before:
                break
            del self.awaited[number]


class Desk:
    """The open decisions of a journal.

    A decision needs more tickets while the rewards it has, plus those expected of its outstanding
    tickets, are fewer than the policy takes:

    told + (1 − loss)·awaited < pulls

    A reward counts as lost after `wait`. After `patience`, five times the recent median delay, it
    is no longer expected, but still used if it comes; a decision may get up to twice as many
    tickets for this reason. The loss is the share of rewards that did not come, over the latest
    decisions whose tickets are all older than `patience`.

    Parameters
    ----------
    pulls, least : int
        How many rewards a decision takes, and how few are enough.
    wait : float
        Seconds after which a reward counts as lost.
    """

    def __init__(self, pulls: int, least: int, wait: float) -> None:
        self.pulls, self.least, self.wait = pulls, least, wait
        self.open: dict[int, Hold] = {}
        self._by_offer: dict[bytes, int] = {}
        self._short: dict[bytes, list[Hold]] = {}
        self._seen: deque[tuple[int, int]] = deque(maxlen=SEEN)
        self.loss = 0.0
        self.patience = wait
        self._delays: deque[float] = deque(maxlen=_DELAYS)
        self._settling: deque[tuple[int, float]] = deque()
        self._told = 0
        self._looked = -math.inf
        self._new = 0  # decisions opened since a request last joined one
        self._once: dict[bytes, None] = {}

    def add(self, hold: Hold, *, new: bool) -> None:
        """Add an open decision, which the next requests with its offer join."""
        self.open[hold.id] = hold
        self._by_offer[hold.key] = hold.id
        self._new += new and self.pulls > 1

    def wanting(self, key: bytes, now: float) -> Hold | None:
        """Return the open decision that a request with this offer joins, if one needs tickets.

        Decisions that are short of rewards after `patience` come first.
        """
        if self.pulls == 1:
            return None
        short = self._short.get(key, [])
        while short and not self._wants(short[0], now):
            short.pop(0)
        found = short[0] if short else self.open.get(self._by_offer.get(key, -1))
        if found is None or not self._wants(found, now):
            return None
        self._new = 0
        return found

    def _wants(self, hold: Hold, now: float) -> bool:
        hold.expire(now - self.wait)
        awaited = len(hold.awaited)
        if hold.issued * (1 - self.loss) < 2 * self.pulls:
            limit = now - self.patience
            awaited -= sum(1 for _ in takewhile(lambda at: at < limit, hold.awaited.values()))
        expected = hold.told + (1 - self.loss) * awaited
        return hold.id in self.open and expected < self.pulls

    def tell(self, hold: Hold, number: int, now: float) -> None:
        """Record that the reward of a ticket has come."""
        hold.told += 1
        asked = hold.awaited.pop(number, None)
        if asked is not None:
            self._delays.append(now - asked)
            self._told += 1
            if self._told % _OFTEN == 0:
                self.patience = min(self.wait, _LONG * median(self._delays))

    def clear(self) -> None:
        """Drop open decisions before reloading."""
        self.open.clear()
        self._by_offer.clear()
        self._short.clear()
        self._looked = -math.inf

    def close(self, hold: Hold) -> None:
        """Remove a decision that has ended."""
        del self.open[hold.id]
        if self._by_offer.get(hold.key) == hold.id:
            del self._by_offer[hold.key]
        self.see(hold.id, hold.last)

    def see(self, hold: int, last: float) -> None:
        """Queue an ended decision, to be counted when its rewards have come or are lost."""
        if len(self._settling) < SEEN:
            self._settling.append((hold, last))

    def settled(self, now: float) -> list[int]:
        """Return queued decisions whose rewards have all come by now, or are lost."""
        found = []
        while self._settling and not now - self.patience <= self._settling[0][1] <= now:
            found.append(self._settling.popleft()[0])
        return found

    def count(self, issued: int, told: int) -> None:
        """Record how many of a decision's tickets got a reward in time, and update the loss."""
        self._seen.append((issued, told))
        every, came = map(sum, zip(*self._seen, strict=True))
        self.loss = 1 - (came + 1) / (every + 1)  # always below 1

    def due(self, now: float) -> list[tuple[Hold, bool]]:
        """Return the decisions to end now, and whether each has enough rewards.

        A decision is due when its last ticket is older than `wait`. If it has too few rewards, it
        stays open for the next requests with its offer, unless the policy takes single rewards.
        """
        if self.pulls == 1:
            surplus = len(self.open) - MOST_OPEN
            return [
                (hold, False)
                for i, hold in takewhile(
                    lambda one: one[0] < surplus or one[1].last < now - self.wait,
                    enumerate(self.open.values()),
                )
            ]
        if 0 <= now - self._looked < self.patience / _SCANS:
            return []
        self._looked = now
        self._short, found, surplus = {}, [], len(self.open) - MOST_HELD
        for i, hold in enumerate(self.open.values()):
            hold.last = min(hold.last, now)  # the clock may have been set back
            enough = hold.told >= self.least
            if i < surplus or (enough and hold.last < now - self.wait):
                found.append((hold, enough))
            elif hold.last < now - self.patience:
                self._short.setdefault(hold.key, []).append(hold)
        return found

    def never_repeats(self, key: bytes) -> bool:
        """Return whether offers do not repeat, so that no decision would get enough rewards.

        An offer that does come a second time is accepted.
        """
        if self._new < _NEVER_TWICE or key in self._once:
            return False
        self._once[key] = None
        if len(self._once) > MOST_HELD:
            del self._once[next(iter(self._once))]
        return True
