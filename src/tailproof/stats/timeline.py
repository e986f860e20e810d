"""What arms were given and brought in the course of an experiment, in buckets for charts."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.formatting import json_number
from tailproof.typing import Array, Index

__all__ = ["Timeline"]

_BUCKETS, _SMALLEST = 32, 32
"""The most buckets, 10 pixels each on a phone, and the tickets in each at the start."""
_SAMPLED = 256
"""About how many rewards of each bucket are sampled: a decile is then known to 2 % of ranks."""
_FEWEST = 5
"""Rewards that an arm needs in a bucket to be drawn, so that no point is a single reward."""
_DRAWN = 6
"""The most arms in charts, as many as there are colours that a reader tells apart."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴/φ, φ the golden ratio: its multiples modulo 2⁶⁴ are spread evenly, whatever the period."""


class Timeline:
    """Pulls and rewards of each arm in buckets with equal numbers of tickets.

    Buckets double in size as the journal grows. For a mean they keep sums; for the quantile `level`
    a sample of about 256 rewards each: ticket n is sampled if n/φ modulo 1 is below 2^−thin, φ the
    golden ratio; so a larger thin keeps a part of the same sample.

    Examples
    --------
    >>> line = Timeline()
    >>> line.add(np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0]), 2)
    >>> [(arm["name"], arm["pulls"]) for arm in line.to_dict(["red", "blue"], [0])["arms"]]
    [('red', [2]), ('blue', [1])]
    """

    def __init__(self, level: float | None = None) -> None:
        self.level, self.size, self.count = level, _SMALLEST, 0
        self._cells = np.zeros((3, _BUCKETS, 0))  # pulls, known rewards, their sums
        self._begin, self._ends = math.nan, np.full(_BUCKETS, -math.inf)
        self._tickets, self._arms = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._rewards: Array = np.empty(0)

    def add(self, arms: Index, asked: Array, rewards: Array, number: int) -> None:
        """Add the next tickets; `number` is how many arms there are so far.

        Rewards are as the aim takes them: capped for a mean.
        """
        first, self.count = self.count, self.count + len(arms)
        self._begin = self._begin if first else float(asked[0])
        self._cells = np.pad(self._cells, ((0, 0), (0, 0), (0, number - self._cells.shape[2])))
        while self.count > _BUCKETS * self.size:
            self._double()
        tickets = first + np.arange(len(arms))
        buckets, known = tickets // self.size, ~np.isnan(rewards)
        np.maximum.at(self._ends, buckets, asked)
        pulls, counts, sums = self._cells
        np.add.at(pulls, (buckets, arms), 1)
        np.add.at(counts, (buckets[known], arms[known]), 1)
        with np.errstate(invalid="ignore"):
            np.add.at(sums, (buckets[known], arms[known]), rewards[known])
        took = self._sampled(tickets) & known
        self._tickets = np.append(self._tickets, tickets[took])
        self._arms = np.append(self._arms, arms[took])
        self._rewards = np.append(self._rewards, rewards[took])

    def _double(self) -> None:
        """Merge pairs of buckets, and keep half of the sample."""
        self.size, half = 2 * self.size, _BUCKETS // 2
        with np.errstate(invalid="ignore"):
            pairs = self._cells.reshape(3, half, 2, -1).sum(axis=2)
        self._cells = np.pad(pairs, ((0, 0), (0, half), (0, 0)))
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
        pulls = self._cells[0, :buckets].astype(np.int64)
        pulls = np.pad(pulls, ((0, 0), (0, len(names) - pulls.shape[1])))
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
            "begin": json_number(self._begin),
            "ends": np.maximum.accumulate(self._ends[:buckets]).tolist(),
            "centre": json_number(centre),
            "spread": json_number(spread),
            "arms": [
                {
                    "name": names[number],
                    "pulls": pulls[:, number].tolist(),
                    **{
                        quantile: [json_number(x) for x in band[:, place].tolist()]
                        for quantile, band in bands.items()
                    },
                }
                for place, number in enumerate(drawn)
            ],
            "others": others.tolist(),
        }

    def _means(self, arms: Sequence[int], buckets: int) -> dict[str, Array]:
        """Return the mean reward in each bucket and arm, NaN where they are few."""
        _, known, sums = self._cells[:, :buckets, arms]
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
