"""Open holds: which of them want tickets, and which must wait no longer."""

import math
from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from statistics import median

from tailproof.live.records import Decision

__all__ = ["MOST_OPEN", "SEEN", "Desk", "Hold"]

MOST_OPEN = 100_000
"""Of more open holds the oldest are given up, so that memory stays bounded."""
MOST_HELD = 10_000
"""The same where a policy wants several pulls, and each hold keeps its offer."""
_NEVER_TWICE = 100
"""After so many offers in a row that came once each, the contexts never repeat."""
_DELAYS, _OFTEN = 256, 8
"""The rewards that tell how long one takes, and after how many that is reckoned anew."""
_LOOKS = 20
"""How often in the time of one's patience holds are looked through."""
_LONG = 5
"""So many times the median delay is long: if delays are exponential, one in 32 takes longer."""
SEEN = 64
"""The settled holds that tell how many rewards are lost."""


@dataclass(slots=True)
class Hold:
    """An arm that is kept for several tickets.

    Attributes
    ----------
    id : int
    key : bytes
        What is on offer, see `Offer.key`.
    decision : Decision or None
        What its tickets are told; None where there is one ticket only.
    issued, told : int
        Tickets, and those of them whose reward has come.
    awaited : dict
        By number of the ticket, when it was issued: those whose reward may still come.
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
        """Return the number of a new ticket."""
        number, self.issued, self.last = self.issued, self.issued + 1, now
        self.awaited[number] = now
        return number

    def expire(self, before: float) -> None:
        """Await nothing more of tickets issued before that."""
        while self.awaited:
            number, at = next(iter(self.awaited.items()))  # the first to be issued
            if at >= before:
                break
            del self.awaited[number]


class Desk:
    """The open holds of a journal.

    A hold wants tickets while the rewards that have come, and those expected of the tickets that
    are out, are fewer than the policy wants: told + (1 − loss)·awaited < pulls. A reward is lost
    after `wait`, and no longer expected after `patience`, five times the median of late, though it
    is still taken; for this a hold gets at most twice as many tickets. The loss is the share of
    rewards that did not come for the last holds whose tickets are all older than that.

    Parameters
    ----------
    pulls, least : int
        How many rewards a decision wants, and how few will do.
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
        self._new = 0  # holds that were opened since a request joined one
        self._once: dict[bytes, None] = {}

    def add(self, hold: Hold, *, new: bool) -> None:
        """Take a hold, which the next requests with its offer get."""
        self.open[hold.id] = hold
        self._by_offer[hold.key] = hold.id
        self._new += new and self.pulls > 1

    def wanting(self, key: bytes, now: float) -> Hold | None:
        """Return the hold that a request with this offer belongs to, if one wants a ticket.

        Holds that came off short are the first.
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
        """Take note that the reward of a ticket has come."""
        hold.told += 1
        asked = hold.awaited.pop(number, None)
        if asked is not None:
            self._delays.append(now - asked)
            self._told += 1
            if self._told % _OFTEN == 0:
                self.patience = min(self.wait, _LONG * median(self._delays))

    def clear(self) -> None:
        """Let go of all open holds, which are to be read anew."""
        self.open.clear()
        self._by_offer.clear()
        self._short.clear()
        self._looked = -math.inf

    def close(self, hold: Hold) -> None:
        """Let a hold go."""
        del self.open[hold.id]
        if self._by_offer.get(hold.key) == hold.id:
            del self._by_offer[hold.key]
        self.see(hold.id, hold.last)

    def see(self, hold: int, last: float) -> None:
        """Have an ended hold counted later, when its rewards have come or are lost."""
        if len(self._settling) < SEEN:
            self._settling.append((hold, last))

    def settled(self, now: float) -> list[int]:
        """Return some ended holds whose rewards have all come by now, or are lost."""
        found = []
        while self._settling and not now - self.patience <= self._settling[0][1] <= now:
            found.append(self._settling.popleft()[0])
        return found

    def count(self, issued: int, told: int) -> None:
        """Take note of how many of a hold's tickets have brought a reward in time."""
        self._seen.append((issued, told))
        every, came = map(sum, zip(*self._seen, strict=True))
        self.loss = 1 - (came + 1) / (every + 1)  # never quite all

    def due(self, now: float) -> list[tuple[Hold, bool]]:
        """Return the holds that must wait no longer, and whether they have rewards enough.

        A hold is due when its last ticket is too old. One with too few rewards goes on with the
        next requests that have its offer, unless the policy wants single pulls.
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
        if 0 <= now - self._looked < self.patience / _LOOKS:
            return []
        self._looked = now
        self._short, found, surplus = {}, [], len(self.open) - MOST_HELD
        for i, hold in enumerate(self.open.values()):
            hold.last = min(hold.last, now)  # a clock may have gone back
            enough = hold.told >= self.least
            if i < surplus or (enough and hold.last < now - self.wait):
                found.append((hold, enough))
            elif hold.last < now - self.patience:
                self._short.setdefault(hold.key, []).append(hold)
        return found

    def never_repeats(self, key: bytes) -> bool:
        """Return whether offers come once each, so that no hold is ever filled.

        One that comes again after all is taken.
        """
        if self._new < _NEVER_TWICE or key in self._once:
            return False
        self._once[key] = None
        if len(self._once) > MOST_HELD:
            del self._once[next(iter(self._once))]
        return True
