"""Open decisions that several tickets share: which need more tickets."""

import logging
import math
from collections import deque
from dataclasses import dataclass
from statistics import median

from tailproof.live.journal.rows import Chosen, Told

__all__ = ["MOST_OPEN", "OpenDecision", "OpenDecisions"]

MOST_OPEN = 10_000
"""If more decisions wait, the oldest get no more tickets, to bound memory."""
_NEVER_TWICE = 100
"""After this many decisions in a row whose offer did not repeat, none is expected to."""
_DELAYS, _OFTEN = 256, 8
"""The median delay is that of the latest 256, updated after every 8 rewards."""
_LONG = 5
"""Patience in median delays: of exponential delays, one in 32 is longer."""
_SEEN = 64
"""Latest settled decisions, from which the share of lost rewards is estimated."""
_LOG = logging.getLogger("tailproof.live")


@dataclass(slots=True, eq=False)
class OpenDecision:
    """An open decision, whose arm goes to several tickets.

    Attributes
    ----------
    key : bytes
        Identifies the requests that may join: their offer, and their group.
    issued, told, missing : int
        How many tickets it has, how many of their rewards have come, and how many of the others
        are not expected any more.
    place : int
        The place of the next ticket; cancelled tickets keep theirs.
    last : float
        When the last ticket was issued.
    due : float
        The latest time at which we let it be seen to; see `Journal.due`.
    counted : bool
        Whether it was counted to estimate the share of lost rewards.
    """

    chosen: Chosen
    key: bytes
    issued: int = 0
    told: int = 0
    missing: int = 0
    place: int = 0
    last: float = -math.inf
    due: float = -math.inf
    counted: bool = False


class OpenDecisions:
    """The open decisions of one worker, for policies that take several rewards at once.

    If no reward is ever lost, a decision gets as many tickets as the policy takes rewards.
    Otherwise it gets tickets while

    told + (1 − loss)·awaited < pulls

    where `told` is the number of rewards so far, and `awaited` that of the tickets whose reward is
    still expected: for `patience`, five times the recent median delay, or until the end of the
    window once a decision has twice as many tickets as it would need. The loss is the share of
    rewards that did not come in time, over the latest decisions that have ended and whose tickets
    are all older than `patience`.

    Parameters
    ----------
    pulls, least : int
        How many rewards a decision takes, and how few are enough at the end of its windows.
    wait : float
        The length of the window in seconds.
    lossless : bool
        Whether a ticket without a reward has one all the same; see `Rules`.
    """

    def __init__(self, pulls: int, least: int, wait: float, lossless: bool) -> None:
        self.pulls, self.least, self.wait, self.lossless = pulls, least, wait, lossless
        self.loss, self.patience = 0.0, wait
        self._seen: deque[tuple[int, int]] = deque(maxlen=_SEEN)
        self._delays: deque[float] = deque(maxlen=_DELAYS)
        self._told = 0
        self._new = 0  # decisions opened since a request last joined one
        self._once: dict[bytes, None] = {}
        self.clear()

    def clear(self) -> None:
        """Drop all decisions, before they are read again."""
        self._wanting: dict[bytes, deque[OpenDecision]] = {}
        self._filling: dict[int, OpenDecision] = {}
        self._waiting: deque[OpenDecision] = deque()

    def open(self, chosen: Chosen, key: bytes) -> OpenDecision:
        """Add a new decision, which the next requests with its offer join."""
        self._new += 1
        return self._fill(OpenDecision(chosen, key))

    def adopt(self, chosen: Chosen, key: bytes, tickets: list[Told]) -> None:
        """Add an open decision from the journal."""
        one = OpenDecision(chosen, key)
        _count_tickets(one, tickets)
        one.last = max((ticket.asked for ticket in tickets), default=-math.inf)
        if self._wants(one):
            self._fill(one)
        else:
            self._wait(one)

    def wanting(self, key: bytes) -> OpenDecision | None:
        """Return the decision that a request with this offer joins, if one needs tickets.

        Those that were found to be short of rewards come first.
        """
        while key in self._wanting:
            one = self._wanting[key][0]
            if self._wants(one):
                self._new = 0
                return one
            self._stop(one)
        return None

    def issue(self, one: OpenDecision, now: float) -> int:
        """Issue a ticket and return its place."""
        place, one.last = one.place, now
        one.place += 1
        one.issued += 1
        if not self._wants(one):
            self._stop(one)
        return place

    def cancel(self, decision: int) -> bool:
        """Let another ticket replace one of a decision; return whether the next request joins."""
        if decision in self._filling:
            self._filling[decision].issued -= 1
        return decision in self._filling

    def ended(self, decision: int) -> None:
        """Issue no more tickets for a decision that has its outcome."""
        if decision in self._filling:
            self._stop(self._filling[decision])

    def tell(self, decision: int, delay: float) -> None:
        """Record that a reward came, and how long it took."""
        if decision in self._filling:
            self._filling[decision].told += 1
        self._delays.append(delay)
        self._told += 1
        if self._told % _OFTEN == 0:
            self.patience = min(self.wait, _LONG * median(self._delays))

    def overdue(self, now: float) -> list[OpenDecision]:
        """Remove and return decisions whose rewards should have come by now."""
        found = []
        while self._waiting and not now - self.patience <= self._waiting[0].last <= now:
            found.append(self._waiting.popleft())
        return found

    def check(self, one: OpenDecision, tickets: list[Told], now: float, *, ended: bool) -> None:
        """Count an overdue decision, and issue more tickets for it if it is short of rewards."""
        tickets = _count_tickets(one, tickets)
        over = all(ticket.ends <= now for ticket in tickets)
        if (ended or over) and not one.counted:
            one.counted = True
            self._count(one.issued, one.told)
        if ended or (over and one.told >= self.least):  # it ends by itself
            return
        many = one.issued * (1 - self.loss) >= 2 * self.pulls
        oldest = now - (self.wait if many else self.patience)
        one.missing = sum(
            not _in_time(ticket) and not oldest <= ticket.asked <= now for ticket in tickets
        )
        if self._wants(one):
            self._fill(one)
        else:
            one.last = now
            self._wait(one)

    def never_repeats(self, key: bytes) -> bool:
        """Return whether offers do not repeat, so that no decision would get enough rewards.

        An offer that does come a second time is accepted.
        """
        if self._new < _NEVER_TWICE or key in self._once:
            return False
        self._once[key] = None
        if len(self._once) > MOST_OPEN:
            del self._once[next(iter(self._once))]
        return True

    def _wants(self, one: OpenDecision) -> bool:
        if self.lossless:
            return one.issued < self.pulls
        awaited = one.issued - one.told - one.missing
        return one.told + (1 - self.loss) * awaited < self.pulls

    def _count(self, issued: int, told: int) -> None:
        """Record how many of a decision's tickets got a reward in time, and update the loss."""
        self._seen.append((issued, told))
        every, came = map(sum, zip(*self._seen, strict=True))
        self.loss = 1 - (came + 1) / (every + 1)  # always below 1

    def _fill(self, one: OpenDecision) -> OpenDecision:
        """Give the next requests with its offer to a decision."""
        some = self._wanting.setdefault(one.key, deque())
        (some.appendleft if one.missing else some.append)(one)
        self._filling[one.chosen.id] = one
        return one

    def _stop(self, one: OpenDecision) -> None:
        """Issue no more tickets for a decision, and wait for its rewards."""
        del self._filling[one.chosen.id]
        some = self._wanting[one.key]
        some.remove(one)
        if not some:
            del self._wanting[one.key]
        self._wait(one)

    def _wait(self, one: OpenDecision) -> None:
        if self.lossless:
            return
        self._waiting.append(one)
        if len(self._waiting) > MOST_OPEN:
            one = self._waiting.popleft()
            _LOG.warning("decision %s gets no more tickets: too many are open", one.chosen.id)


def _count_tickets(one: OpenDecision, tickets: list[Told]) -> list[Told]:
    """Read the numbers of a decision from its tickets, and return those that count."""
    valid = [ticket for ticket in tickets if not ticket.cancelled]
    one.place = 1 + max((ticket.place for ticket in tickets), default=-1)
    one.issued, one.told = len(valid), sum(map(_in_time, valid))
    return valid


def _in_time(ticket: Told) -> bool:
    return any(at <= ticket.ends for *_, at in ticket.events)
