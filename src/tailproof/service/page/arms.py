"""An arm as the page shows it: requests, customers, and what they brought."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tailproof.live.reading import Note
from tailproof.service.page.timeline import plain
from tailproof.stats.comparison import LEVEL, Comparison, Lead
from tailproof.stats.histograms import Histogram
from tailproof.stats.intervals import mean_difference
from tailproof.typing import Array

__all__ = ["Arm", "Lift", "added", "first", "least", "lift_shown", "lifts", "state"]

_ROUNDED = 1e-8
"""The shares of a journal have nine digits."""
_MOST = 12
"""With more arms than this no lift gets an interval; each takes some hundredths of a second."""

Lift = tuple[float, float, float]


@dataclass
class Arm:
    """One arm: its requests with an outcome, their rewards, and its customers.

    `sample` has the total of each customer: see `Summary._by_unit`.

    `rewards` includes the rewards of silence; `came` does not.
    """

    name: str
    requests: int = 0
    rewards: int = 0
    came: int = 0
    offered: int = -1
    """The number of the last request that could have got it."""
    sample: Histogram = field(default_factory=Histogram)
    pending: int = 0
    pruned: int = 0
    """Requests that were removed from the journal before they were read."""
    late: int = 0
    late_sum: float = 0.0
    orders: int = 0
    sold: float = 0.0
    """Rewards that are not zero, and their sum."""
    customers: int = 0
    buyers: int = 0
    revenue: float = 0.0

    @property
    def asked(self) -> int:
        """All requests so far."""
        return self.requests + self.pending + self.pruned

    def to_dict(
        self, estimate: Array, lift: dict[str, Any] | None, *, here: bool
    ) -> dict[str, Any]:
        """Return the row of the page, with an estimate and its interval."""
        return {
            "name": self.name,
            "here": here,
            "pulls": self.asked,
            "rewards": self.rewards,
            "pending": self.pending,
            "missing": self.requests - self.came,
            "late": self.late,
            "late_sum": plain(self.late_sum),
            "customers": self.customers,
            "orders": self.orders,
            "conversion": plain(_share(self.buyers, self.customers)),
            "basket": plain(_share(self.sold, self.orders)),
            "per_customer": plain(_share(self.revenue, self.customers)),
            "lift": lift,
            **dict(zip(("estimate", "low", "high"), map(plain, estimate.tolist()), strict=True)),
        }


def lifts(comparison: Comparison, control: str) -> dict[str, Lift]:
    """Return how much more each arm earns than the control, with intervals for any look.

    All of them hold together with 95 %. None are given for quantiles, or without a cap or bounds.

    >>> import numpy as np
    >>> from tailproof.stats.comparison import MeanWithin
    >>> sales = [np.repeat([0.0, 10.0], [1900, 100]), np.repeat([0.0, 10.0], [1800, 200])]
    >>> arms = Comparison.of(MeanWithin(0, 10), ["old", "new"], sales, any_look=True)
    >>> [round(end, 2) for end in lifts(arms, "old")["new"]]
    [0.5, 0.21, 0.8]
    """
    names = list(comparison.names)
    if comparison.statistic.range is None or control not in names or not 1 < len(names) <= _MOST:
        return {}
    base, level = names.index(control), 1 - (1 - LEVEL) / (len(names) - 1)
    told, (lows, highs) = {}, (comparison.lows, comparison.highs)
    for place, name in enumerate(names):
        if place != base and lows[place].n and lows[base].n:
            low = mean_difference(lows[place], highs[base], level)[0]
            high = mean_difference(highs[place], lows[base], level)[1]
            told[name] = float(comparison.values[place] - comparison.values[base]), low, high
    return told


def lift_shown(gains: Lift | None, value: float, arms: Sequence[Arm]) -> dict[str, Any] | None:
    """Return a lift over the control as the page shows it, and in per cent of the control."""
    if gains is None:
        return None
    base, samples = value - gains[0], [arm.sample.lows for arm in arms]
    ok = base > 0 and all(lows[0] >= 0 for lows in samples if len(lows))
    percents = [100 * gain / base if ok else math.nan for gain in gains]
    return {"gain": [plain(x) for x in gains], "percent": [plain(x) for x in percents]}


def added(total: float, more: Array) -> float:
    """Return a sum in order, which does not depend on how its terms are split between calls."""
    with np.errstate(invalid="ignore"):
        return float(np.cumsum(np.append(total, more))[-1])


def _share(part: float, of: float) -> float:
    return part / of if of else math.nan


def state(notes: Sequence[Note]) -> dict[str, Any]:
    """Return the arm that every request gets now, if any, and the arms that were dropped."""
    fixed: dict[str, Any] | None = None
    for note in notes:
        if note.kind in ("fix", "resume"):
            fixed = note.text if note.kind == "fix" else None
    return {"fixed": fixed, "dropped": [drop.text["arm"] for drop in notes if drop.kind == "drop"]}


def least(shares: str | None) -> float:
    """Return a lower bound on the propensities, which are rounded; NaN if they are not known."""
    return math.nan if shares is None else min(json.loads(shares)) * (1 - _ROUNDED)


def first(names: Sequence[str], here: Sequence[int], table: Array, *, costs: bool) -> Lead:
    """Return the arm on offer with the best value, sure if its interval is above all others."""
    value, low, high = -table[here][:, [0, 2, 1]].T if costs else table[here].T
    if np.isnan(value).any():
        return Lead(None, False, tuple(names[arm] for arm in here))
    best = int(value.argmax())
    rivals = [i for i in range(len(here)) if i != best and high[i] >= low[best]]
    return Lead(names[here[best]], not rivals, tuple(names[here[i]] for i in rivals))
