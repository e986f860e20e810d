"""Customers in the order in which they are known: one number for each, whoever comes back."""

import heapq
import math
from collections.abc import Sequence

from tailproof.live.reading import Customer, Ended, Reader
from tailproof.stats.comparison import LEVEL, Comparison
from tailproof.stats.intervals import mean_difference

__all__ = ["Stream", "lifts"]

_MOST = 12
"""With more arms than this no lift gets an interval; each takes some hundredths of a second."""

Lift = tuple[float, float, float]


class Stream:
    """Turns requests with an outcome into customers.

    A request that names no unit is a customer of its own. A unit is one customer, who has the arm
    of its first request, and brings what all its requests within the window of that one bring. It
    is counted once they all have their outcome: two windows after the first request, in the order
    of first requests. So each customer is one finished number, whatever was learned meanwhile.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._open: list[tuple[float, int]] = []
        self._clock = -math.inf
        self.named = 0
        """Requests that name a unit."""
        self.outside = 0
        """Those that came after the window of the first one, and are not counted."""

    @property
    def waiting(self) -> int:
        """How many customers may still bring something."""
        return len(self._open)

    def add(self, rows: Sequence[Ended]) -> list[tuple[int, Customer]]:
        """Take requests, and return the customers that are known now, each with the row it ended.

        Both depend on the order of the rows only, not on how they are split between calls.
        """
        found: list[tuple[int, Customer | int]] = []
        for place, row in enumerate(rows):
            span = row.ends - row.asked
            self.named += row.since is not None
            self.outside += row.since is not None and row.asked > row.since + span
            if not row.again:
                if row.since is not None and row.group != "history" and math.isfinite(span):
                    heapq.heappush(self._open, (row.asked + 2 * span, row.id))
                else:
                    found.append((place, Customer.of(row)))
            self._clock = max(self._clock, self._time(row))
            while self._open and self._open[0][0] <= self._clock:
                found.append((place, heapq.heappop(self._open)[1]))
        closed = self._reader.customers([one for _, one in found if isinstance(one, int)])
        known = {one.first.id: one for one in closed}
        done = [(place, known.get(one) if isinstance(one, int) else one) for place, one in found]
        return [(place, one) for place, one in done if one is not None]

    def _time(self, row: Ended) -> float:
        """Return a time up to which all windows are over."""
        recipe = self._reader.recipe(row.recipe)
        early = row.why == "cancelled" or (row.why == "told" and (recipe is None or recipe.at_once))
        return row.asked if early else row.ends


def lifts(found: Comparison, control: str) -> dict[str, Lift]:
    """Return what each arm earns beyond the control per customer, with intervals for any look.

    All of them hold together with 95 %. None are given for quantiles, or without a cap or bounds.

    >>> import numpy as np
    >>> from tailproof.stats.comparison import MeanWithin
    >>> sales = [np.repeat([0.0, 10.0], [1900, 100]), np.repeat([0.0, 10.0], [1800, 200])]
    >>> arms = Comparison.of(MeanWithin(0, 10), ["old", "new"], sales, any_look=True)
    >>> [round(end, 2) for end in lifts(arms, "old")["new"]]
    [0.5, 0.21, 0.8]
    """
    names = list(found.names)
    if found.statistic.range is None or control not in names or not 1 < len(names) <= _MOST:
        return {}
    base, level = names.index(control), 1 - (1 - LEVEL) / (len(names) - 1)
    told = {}
    for place, name in enumerate(names):
        arms = [found.lows[place], found.highs[place], found.lows[base], found.highs[base]]
        if place == base or not all(arm.n for arm in arms):
            continue
        low = mean_difference(arms[0], arms[3], level)[0]
        high = mean_difference(arms[1], arms[2], level)[1]
        told[name] = float(found.values[place] - found.values[base]), low, high
    return told
