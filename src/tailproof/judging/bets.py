"""Exact intervals: bets that cannot be won at the truth.

For R in [0, 1] a bettor whose capital Π(1 + λ_t (w_t R_t − m)) grows has refuted "the rule earns at
most m": with right propensities E[w_t R_t | past] is what the rule earns, so the capital is a
supermartingale that ever reaches 2/(1 − level) with a probability of at most (1 − level)/2 (Ville
1939). λ_t depends on earlier rows alone, so this holds for adaptive logs, and weights need no
bound. If weights have a known bound (from the floor of propensities), half of the capital bets on
w_t (R_t − m), which varies less.

Source: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2022. Differences: λ does not depend on
m, so that the interval's ends are found by bisection; two bets at once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailproof.bisection import bisect, first_integer
from tailproof.stats.betting import largest_bet, log_capital_needed
from tailproof.typing import Array, Index

__all__ = ["Bets"]

_AT_RISK = 0.75
"""The largest share of the capital that one unit can lose."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Bets:
    """Intervals for one rule. A unit, whose rows were decided together, is one bet.

    Parameters
    ----------
    weight : array of shape (n,)
        π/p, in the order of time.
    unit : array of shape (n,), optional
    level : float
    most : float, optional
        A bound on the weights.
    anytime : bool
        Whether the interval holds for all looks at a growing log at once, or for one look.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bets = Bets(weight=2.0 * rng.integers(0, 2, 4000), level=0.95, most=2.0)
    >>> [round(end, 2) for end in bets.mean(rng.random(4000))]
    [0.48, 0.52]
    """

    weight: Array
    unit: Index | None = None
    level: float = 0.95
    most: float | None = None
    anytime: bool = False

    @property
    def asked(self) -> float:
        """The logarithm of the capital that refutes."""
        return log_capital_needed(self.level)

    def mean(self, share: Array) -> tuple[float, float]:
        """Return an interval for the mean of rewards in [0, 1]."""
        w = self._of_units(self.weight)
        ends = []
        for r in (share, 1 - share):
            won = self._of_units(self.weight * r)
            centre = _past(won, 0.5)
            plain = self._stakes(_past(np.square(won - centre), 0.25), 1.0)
            quiet = None
            if self.most is not None:
                off = won - w * centre / _past(w, 1.0)
                quiet = self._stakes(_past(np.square(off), 0.25), self.most)
            ends.append(self._least(won, w, plain, quiet))
        return ends[0], 1 - ends[1]

    def quantile(self, reward: Array, tau: float) -> tuple[float, float]:
        """Return an interval for a quantile: all q for which F(q) = τ is not refuted."""
        w, values = self._of_units(self.weight), np.unique(reward)
        square = _past(np.square(w), 2.0)

        def sure(above: bool) -> Callable[[float], bool]:
            """Return a test of whether F(q) is surely above τ, or below."""
            m = tau if above else 1 - tau
            plain = self._stakes(m * square - m * m, m)
            quiet = None
            if self.most is not None:
                quiet = self._stakes(m * (1 - m) * square, m * self.most)

            def test(q: float) -> bool:
                hit = (reward <= q) if above else (reward > q)
                won = self._of_units(self.weight * hit)
                return self._refutes(m, won, w, plain, quiet)

            return test

        def first(test: Callable[[float], bool]) -> int:
            def holds(index: Index) -> NDArray[np.bool_]:
                return np.asarray(test(float(values[index])))

            return int(first_integer(holds, -1, len(values)))

        above, below = sure(True), sure(False)
        start, end = first(lambda q: not below(q)), first(above)
        bounded = start > 0 or below(-math.inf)
        low = float(values[start]) if bounded and start < len(values) else -math.inf
        return low, float(values[end]) if end < len(values) else math.inf

    def _of_units(self, values: Array) -> Array:
        if self.unit is None:
            return values
        return np.asarray(np.bincount(self.unit, values) / np.bincount(self.unit))

    def _stakes(self, variance: Array, loss: float) -> Array:
        """Return λ_t for outcomes of this variance that lose `loss` at most."""
        t = np.arange(1, len(variance) + 1)
        pace = t * np.log1p(t) if self.anytime else float(len(variance))
        best = np.sqrt(2 * self.asked / (np.maximum(variance, 1e-12) * pace))
        return np.minimum(best, largest_bet(loss, _AT_RISK))

    def _refutes(self, m: float, won: Array, w: Array, plain: Array, quiet: Array | None) -> bool:
        """Return whether the capital that bets on a mean above m reaches the required capital."""
        capital = np.cumsum(np.log1p(plain * (won - m)))
        if quiet is not None:
            other = np.cumsum(np.log1p(quiet * (won - m * w)))
            capital = np.logaddexp(capital, other) - math.log(2)
        return bool((capital.max() if self.anytime else capital[-1]) >= self.asked)

    def _least(self, won: Array, w: Array, plain: Array, quiet: Array | None) -> float:
        """Return the largest m that is refuted; zero if none is."""

        def possible(m: Array) -> NDArray[np.bool_]:
            return np.asarray(not self._refutes(float(m), won, w, plain, quiet))

        low, _ = bisect(possible, np.array(0.0), np.array(1.0), halvings=30)
        return float(low)


def _past(values: Array, start: float) -> Array:
    """Return the mean of the values before each place and of one made-up value."""
    before = np.cumsum(values) - values
    return np.asarray((before + start) / np.arange(1, len(values) + 1))
