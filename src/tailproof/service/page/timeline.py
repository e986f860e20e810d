"""The history of an experiment in buckets, for charts."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.typing import Array, Index

__all__ = ["History", "plain"]

_BUCKETS, _SMALLEST = 32, 32
"""The most buckets, and the tickets in each at the start."""
_SAMPLED = 256
"""About how many rewards of each bucket are sampled, for quantiles."""
_FEWEST = 5
"""Rewards that an arm needs in a bucket to be drawn."""
_DRAWN = 6
"""The most arms in charts."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴/φ, φ the golden ratio: its multiples modulo 2⁶⁴ are spread evenly, whatever the period."""


class History:
    """Pulls and rewards of each arm in buckets with equal numbers of tickets.

    Buckets double in size as the journal grows. For a mean they keep sums; for the quantile `level`
    a sample of about 256 rewards each: ticket n is sampled if n/φ modulo 1 is below 2^−thin, φ the
    golden ratio; so each sample is part of those at smaller sizes.
    """

    def __init__(self, level: float | None = None) -> None:
        self.level, self.size, self.count = level, _SMALLEST, 0
        self._pulls: Index = np.zeros((_BUCKETS, 0), dtype=np.int64)
        self._known, self._sums = np.zeros((2, _BUCKETS, 0))
        self._begin, self._ends = math.nan, np.full(_BUCKETS, -math.inf)
        self._tickets, self._arms = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._rewards: Array = np.empty(0)

    def add(self, arms: Index, asked: Array, rewards: Array, number: int) -> None:
        """Add the next tickets; `known` is the number of arms so far.

        Rewards are as the aim takes them: capped for a mean.
        """
        first, self.count = self.count, self.count + len(arms)
        self._begin = self._begin if first else float(asked[0])
        more = (0, 0), (0, number - self._pulls.shape[1])
        self._pulls, self._known = np.pad(self._pulls, more), np.pad(self._known, more)
        self._sums = np.pad(self._sums, more)
        while self.count > _BUCKETS * self.size:
            self._double()
        tickets = first + np.arange(len(arms))
        buckets, known_ones = tickets // self.size, ~np.isnan(rewards)
        np.add.at(self._pulls, (buckets, arms), 1)
        np.maximum.at(self._ends, buckets, asked)
        cells = buckets[known_ones], arms[known_ones]
        np.add.at(self._known, cells, 1)
        with np.errstate(invalid="ignore"):
            np.add.at(self._sums, cells, rewards[known_ones])
        took = self._sampled(tickets) & known_ones
        self._tickets = np.append(self._tickets, tickets[took])
        self._arms = np.append(self._arms, arms[took])
        self._rewards = np.append(self._rewards, rewards[took])

    def _double(self) -> None:
        """Merge pairs of buckets, and keep half of the sample."""
        self.size, half = 2 * self.size, _BUCKETS // 2
        with np.errstate(invalid="ignore"):
            for name in ("_pulls", "_known", "_sums"):
                pairs = getattr(self, name).reshape(half, 2, -1).sum(axis=1)
                setattr(self, name, np.pad(pairs, ((0, half), (0, 0))))
        ends = self._ends.reshape(half, 2).max(axis=1)
        self._ends = np.pad(ends, (0, half), constant_values=-math.inf)
        keep = self._sampled(self._tickets)
        self._tickets, self._arms = self._tickets[keep], self._arms[keep]
        self._rewards = self._rewards[keep]

    def _sampled(self, tickets: Index) -> NDArray[np.bool_]:
        thin = max(0, (self.size // _SAMPLED).bit_length() - 1)
        return tickets.astype(np.uint64) * _GOLDEN <= np.uint64((2**64 - 1) >> thin)

    def to_dict(self, names: Sequence[str], best: Sequence[int]) -> dict[str, Any]:
        """Return pulls and rewards of the `best` and the recently most pulled arms."""
        buckets = -(-self.count // self.size)
        pulls = np.pad(self._pulls[:buckets], ((0, 0), (0, len(names) - self._pulls.shape[1])))
        lately = np.argsort(-pulls[buckets // 2 :].sum(axis=0), kind="stable").tolist()
        drawn = list(dict.fromkeys([*best, *lately]))[:_DRAWN]
        drawn = sorted(number for number in drawn if pulls[:, number].any())
        bands = self._means(drawn, buckets) if self.level is None else self._bands(drawn, buckets)
        finite = self._rewards[np.isfinite(self._rewards)]
        centre = _middle(finite)
        with np.errstate(over="ignore"):
            spread = _middle(np.abs(finite - centre))
        others = pulls.sum(axis=1) - pulls[:, drawn].sum(axis=1)
        return {
            "begin": plain(self._begin),
            "ends": np.maximum.accumulate(self._ends[:buckets]).tolist(),
            "centre": plain(centre),
            "spread": plain(spread),
            "arms": [
                {
                    "name": names[number],
                    "pulls": pulls[:, number].tolist(),
                    **{
                        quantile: [plain(x) for x in band[:, place].tolist()]
                        for quantile, band in bands.items()
                    },
                }
                for place, number in enumerate(drawn)
            ],
            "others": others.tolist(),
        }

    def _means(self, arms: Sequence[int], buckets: int) -> dict[str, Array]:
        """Return the mean reward in each bucket and arm, NaN where they are few."""
        known, sums = self._known[:buckets, arms], self._sums[:buckets, arms]
        means = np.where(known < _FEWEST, math.nan, sums / np.maximum(known, 1))
        if buckets > 1 and 0 < self.count % self.size < self.size // 2:
            means[-1] = math.nan  # too few requests so far
        rounded = [float(f"{x:.9g}") for x in means.ravel().tolist()]  # sums in any order
        return {"middle": np.reshape(rounded, means.shape)}

    def _bands(self, arms: Sequence[int], buckets: int) -> dict[str, Array]:
        """Return quantiles of the rewards in each bucket and arm, NaN where they are few.

        Beside the median, the middle 80 % of rewards.
        """
        levels = {"middle": self.level} | ({"low": 0.1, "high": 0.9} if self.level == 0.5 else {})
        mine = np.isin(self._arms, arms)
        place = np.searchsorted(arms, self._arms[mine])
        cell = self._tickets[mine] // self.size * len(arms) + place
        order = np.lexsort((self._rewards[mine], cell))
        ranked = self._rewards[mine][order]
        cells, first, count = np.unique(cell[order], return_index=True, return_counts=True)
        enough = count >= _FEWEST
        cells, first, count = cells[enough], first[enough], count[enough]
        bands = {}
        for name, level in levels.items():
            band = np.full(buckets * len(arms), np.nan)
            band[cells] = ranked[first + np.ceil(level * count).astype(np.int64) - 1]
            bands[name] = band.reshape(buckets, len(arms))
        return bands


def _middle(sample: Array) -> float:
    """Return the lower median, NaN for an empty sample."""
    half = (len(sample) - 1) // 2
    return float(np.partition(sample, half)[half]) if len(sample) else math.nan


def plain(x: float) -> float | str | None:
    """Return a number as JSON allows: None for NaN, strings for infinities."""
    if math.isfinite(x):
        return x
    return None if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
