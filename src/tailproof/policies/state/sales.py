"""What K arms earned: a histogram of the rewards that are not zero, and a cap learned from it."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tailproof.chunking import chunks
from tailproof.policies.state.base import (
    ONE,
    ArmCounts,
    Array,
    Finite,
    Index,
    Rule,
    State,
    flat_index,
)

__all__ = ["AGAIN", "BINS", "DOUBT", "OCTAVE", "SalesHistogram"]

OCTAVE = 4
"""Bins between a reward and its double."""
BINS = 256
"""Bins of each sign: from 2⁻³² to 2³² times the first purchase."""
AGAIN = 1.1
"""The cap is learned anew when there are this many times the purchases."""
DOUBT = 16.0
"""b purchases of an arm count as b + DOUBT of its kind where the range is learned and where the
spread of the arm's mean is: a few say little about how often it sells, and an arm that sells rarely
and dear would be locked out where it sold less often than expected. Chosen on shops that no
benchmark reports."""
_MIDDLE = BINS / 2 + 0.5
"""Where the first purchase is: in the middle of a bin, so that the ratio of two prices, which is
rational, is never on the border of two bins and rounding does not decide."""
_MOST = 2.0 ** ((BINS - _MIDDLE) / OCTAVE)
"""The largest reward in units of the first purchase; larger and infinite rewards count as this
reward."""


@dataclass(eq=False)
class SalesHistogram(State):
    """Visitors, and a histogram of purchases, for each arm.

    A purchase is a reward that is not zero. Rewards are kept in units of the first finite purchase,
    so that their unit changes no bit. The histogram has bins a factor 2^¼ wide, in ascending order:
    refunds first, then gains.

    Attributes
    ----------
    visitors, bought : arrays of shape (paths, K)
        The decisions for each arm, and how many of them led to a purchase.
    counts, sizes : arrays of shape (paths, K, 2·BINS)
        The purchases in each bin, and their mean.
    unit, low, high, most, due : arrays of shape (paths,)
        The size of the first finite purchase, 0 before it; in units of it, the range and the
        largest purchase; the number of purchases at which the range is learned anew.
    sums, squares : arrays of shape (paths, K)
        The sums of rewards within the range, and of their squares.
    """

    visitors: ArmCounts
    bought: ArmCounts
    counts: Annotated[NDArray[np.int32], Rule(("arms", 2 * BINS), least=0)]
    sizes: Annotated[NDArray[np.float32], Rule(("arms", 2 * BINS), finite=True)]
    sums: Annotated[Array, Rule(("arms",), finite=True)]
    squares: Annotated[Array, Rule(("arms",), finite=True)]
    unit: Finite
    low: Finite
    high: Finite
    most: Finite
    due: Annotated[Index, Rule(least=1, blank=1)]

    @property
    def range(self) -> tuple[Array, Array]:
        """The ends of the range that rewards are clipped to, of shape (paths,) each."""
        return self.low * self.unit, self.high * self.unit

    @property
    def conversion(self) -> Array:
        """Purchases for each visitor, of shape (paths, K); 0 before the first visitor."""
        return self.bought / np.maximum(self.visitors, 1)

    @property
    def basket(self) -> Array:
        """The mean of purchases within the range, of shape (paths, K); 0 before the first."""
        return self.sums / np.maximum(self.bought, 1) * self.unit[:, None]

    @property
    def means(self) -> Array:
        """The mean reward within the range, of shape (paths, K); 0 before the first visitor."""
        return self.sums / np.maximum(self.visitors, 1) * self.unit[:, None]

    @property
    def doubt(self) -> Array:
        """The factor (b + DOUBT)/b by which b purchases of an arm count, of shape (paths, K)."""
        return 1 + DOUBT / np.maximum(self.bought, 1)

    @property
    def variances(self) -> Array:
        """The variance of rewards within the range, of shape (paths, K)."""
        n = np.maximum(self.visitors, 1)
        variances = self.squares / n - np.square(self.sums / n)
        return np.maximum(variances, 0) * np.square(self.unit)[:, None]

    def update(self, chosen: Index, rewards: Array, share: float) -> Index:
        """Add the reward of the chosen arm of each path; return the paths with a new range."""
        at = flat_index(chosen, self.arms)
        self.visitors.put(at, self.visitors.take(at) + ONE)
        rows = np.flatnonzero(rewards)
        if not len(rows):
            return rows
        x = self.relative(rows, rewards[rows])
        self.most[rows] = np.maximum(self.most[rows], x)
        at = at[rows]
        cut = np.clip(x, self.low[rows], self.high[rows])
        self.sums.put(at, self.sums.take(at) + cut)
        self.squares.put(at, self.squares.take(at) + cut * cut)
        self.bought.put(at, self.bought.take(at) + ONE)
        with np.errstate(divide="ignore"):
            place = OCTAVE * np.log2(np.abs(x)) + _MIDDLE
        place = np.clip(place, 0, BINS - 1).astype(np.int64)
        at = at * (2 * BINS) + np.where(rewards[rows] > 0, BINS + place, BINS - 1 - place)
        count, size = self.counts.take(at) + 1, self.sizes.take(at)
        self.counts.put(at, count)
        self.sizes.put(at, size + (x - size) / count)
        again: Index = rows[self.bought[rows].sum(axis=1) >= self.due[rows]]
        for part in chunks(len(again), 2 * BINS * self.arms):
            self._learn_range(again[part], share)
        return again

    def relative(self, rows: Index, rewards: Array) -> Array:
        """Return rewards of some paths in units of the first purchase, which may be among them.

        They are rounded to single precision, so that other units give the same numbers.
        """
        new = (self.unit[rows] == 0) & np.isfinite(rewards)
        if new.any():
            self.unit[rows[new]] = np.abs(rewards[new])
        unit = self.unit[rows]
        x = np.clip(rewards / np.where(unit > 0, unit, 1.0), -_MOST, _MOST)
        return x.astype(np.float32).astype(np.float64)

    def _learn_range(self, rows: Index, share: float) -> None:
        """Learn the range of some paths anew, and the sums with it."""
        filled = np.flatnonzero(self.counts[rows].reshape(-1, 2 * BINS).max(axis=0))
        span = slice(filled[0], filled[-1] + 1)  # a few tens of the bins
        counts = self.counts[rows, :, span].astype(np.float64)
        weight = self.doubt[rows] / np.maximum(self.visitors[rows], 1)
        even = counts * weight[..., None]
        reached = even.sum(axis=1).cumsum(axis=1)
        total = reached[:, -1:] * (1 - 1e-12)  # of rounding
        low, high = (
            filled[0] + np.count_nonzero(reached < level * total, axis=1)
            for level in (1 - share, share)
        )
        low = -np.where(low < BINS, _end(BINS - 1 - low), 0.0)
        high = np.where(high >= BINS, _end(high - BINS), 0.0)
        value = np.clip(self.sizes[rows, :, span], low[:, None, None], high[:, None, None])
        self.low[rows], self.high[rows] = low, high
        # cumsum adds one by one, so that bins that only other paths use change no bit
        self.sums[rows] = (counts * value).cumsum(axis=2)[..., -1]
        self.squares[rows] = (counts * value * value).cumsum(axis=2)[..., -1]
        bought = self.bought[rows].sum(axis=1)
        self.due[rows] = np.maximum((AGAIN * bought).astype(np.int64), bought + 1)


def _end(place: Index) -> Array:
    """Return the upper end of a bin, in units of the first purchase."""
    return np.asarray(np.exp2((place + 1 - _MIDDLE) / OCTAVE))
